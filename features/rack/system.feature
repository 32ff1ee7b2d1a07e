Feature: ComputerSystem
  Reset, boot override, boot order and BIOS settings.

  Background:
    Given a rack of 2 servers

  @C1
  Scenario: ResetType On and ForceOff
    When the client resets the system with ResetType On
    Then GET Systems/1 has "PowerState": "PoweringOn"
    When 10 minutes pass
    Then GET Systems/1 has "PowerState": "On"
    And GET Systems/1 of the second BMC has "PowerState": "Off"
    When the client resets the system with ResetType ForceOff
    And 1 minute passes
    Then GET Systems/1 has "PowerState": "Off"

  @C1
  Scenario: ResetType GracefulShutdown: the operating system powers off
    Given the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    And the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Cd"}}
    When the client resets the system with ResetType On
    And 10 minutes pass
    Then GET Systems/1 has "BootProgress/LastState": "OSRunning"
    When the client resets the system with ResetType GracefulShutdown
    And 10 minutes pass
    Then GET Systems/1 has "PowerState": "Off"

  @C2
  Scenario: BootProgress/LastState passes through the boot
    Given the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    And the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideEnabled": "Continuous", "BootSourceOverrideTarget": "Cd"}}
    When the client resets the system with ResetType On
    Then BootProgress/LastState takes at least 3 values and ends with "OSRunning"

  @C3 @fault-5
  Scenario: BootSourceOverrideEnabled Once is Disabled after one boot
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}}
    Then GET Systems/1 has "Boot/BootSourceOverrideEnabled": "Once"
    And GET Systems/1 has "Boot/BootSourceOverrideTarget": "Pxe"
    When the client resets the system with ResetType On
    And 10 minutes pass
    Then GET Systems/1 has "Boot/BootSourceOverrideEnabled": "Disabled"
    And GET Systems/1 has "Boot/BootSourceOverrideTarget": "None"

  @C3 @fault-5
  Scenario: BootSourceOverrideEnabled Continuous lasts
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideEnabled": "Continuous", "BootSourceOverrideTarget": "Pxe"}}
    And the client resets the system with ResetType On
    And 10 minutes pass
    Then GET Systems/1 has "Boot/BootSourceOverrideEnabled": "Continuous"
    And GET Systems/1 has "Boot/BootSourceOverrideTarget": "Pxe"
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Moon"}}
    Then the response is 400 with "PropertyValueNotInList"
    And GET Systems/1 has "Boot/BootSourceOverrideEnabled": "Continuous"
    And GET Systems/1 has "Boot/BootSourceOverrideTarget": "Pxe"

  @C4
  Scenario: Boot/BootOrder is set and survives a restart of the lab
    When the client moves the last option of Boot/BootOrder to the front
    Then GET Systems/1 has the saved "Boot/BootOrder"
    When the lab is restarted
    Then GET Systems/1 has the saved "Boot/BootOrder"
    When the client sends PATCH Systems/1 {"Boot": {"BootOrder": ["Boot9999"]}}
    Then the response is 400 with "PropertyValueNotInList"

  @A19 @A20 @C5
  Scenario: A BIOS attribute is pending until the next reset
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"ProcHyperThreading": "Disabled"}}
    Then GET Systems/1/Bios has "Attributes/ProcHyperThreading": "Enabled"
    And GET Systems/1/Bios/Settings has "Attributes/ProcHyperThreading": "Disabled"
    When the client resets the system with ResetType On
    And 10 minutes pass
    Then GET Systems/1/Bios has "Attributes/ProcHyperThreading": "Disabled"
    And no BIOS attribute is pending

  @C5
  Scenario: The attribute registry lists the BIOS attributes, and others are refused
    Then the attribute registry of the BIOS has at least 20 attributes
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"NotAnAttribute": "Disabled"}}
    Then the response is 400 with a message
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"SetupPromptSeconds": 3600}}
    Then the response is 400 with a message
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"SystemSerialNumber": "mine"}}
    Then the response is 400 with a message
    And no BIOS attribute is pending

  @C6
  Scenario: Bios.ResetBios restores the defaults at the next reset
    Given the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"ProcHyperThreading": "Disabled"}}
    And the client resets the system with ResetType On
    And 10 minutes pass
    When the client sends POST Systems/1/Bios/Actions/Bios.ResetBios {}
    And 10 minutes pass
    Then GET Systems/1/Bios has "ResetBiosToDefaultsPending": true
    And GET Systems/1/Bios has "Attributes/ProcHyperThreading": "Disabled"
    When the client resets the system with ResetType ForceRestart
    And 10 minutes pass
    Then GET Systems/1/Bios has "Attributes/ProcHyperThreading": "Enabled"
    And GET Systems/1/Bios has "ResetBiosToDefaultsPending": false

  @C6
  Scenario: Bios.ChangePassword sets a password, without which PATCH changes no attribute
    When the client sends POST Systems/1/Bios/Actions/Bios.ChangePassword {"PasswordName": "AdminPassword", "OldPassword": "", "NewPassword": "bios-secret"}
    Then the response is 204
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"ProcHyperThreading": "Disabled"}}
    Then the response is 400 with "PropertyMissing"
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"ProcHyperThreading": "Disabled", "AdminPassword": "a-guess"}}
    Then the response is 400 with "PropertyValueError"
    And no BIOS attribute is pending
    When the client sends POST Systems/1/Bios/Actions/Bios.ChangePassword {"PasswordName": "AdminPassword", "OldPassword": "a-guess", "NewPassword": ""}
    Then the response is 400 with "ActionParameterValueError"
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"ProcHyperThreading": "Disabled", "AdminPassword": "bios-secret"}}
    Then the response is 200
    And the response does not contain 'bios-secret'
    And GET Systems/1/Bios/Settings has "Attributes/ProcHyperThreading": "Disabled"
    When the client sends POST Systems/1/Bios/Actions/Bios.ChangePassword {"PasswordName": "AdminPassword", "OldPassword": "bios-secret", "NewPassword": ""}
    And the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"ProcHyperThreading": "Enabled"}}
    Then the response is 200

  @C8
  Scenario: A system has processors, memory, interfaces and storage
    Then Systems/1/Processors has at least 1 member
    And Systems/1/Memory has at least 1 member
    And Systems/1/EthernetInterfaces has at least 1 member
    And Systems/1/Storage has at least 1 member

  @C9 @F4
  Scenario: AssetTag and LocationIndicatorActive survive a restart of the lab
    When the client sends PATCH Systems/1 {"AssetTag": "row 7", "LocationIndicatorActive": true}
    And the lab is restarted
    Then GET Systems/1 has "AssetTag": "row 7"
    And GET Systems/1 has "LocationIndicatorActive": true

  @C10
  Scenario Outline: PowerRestorePolicy <policy>: a server that was <before> is <after> after an outage
    Given the client sends PATCH Systems/1 {"PowerRestorePolicy": "<policy>", "PowerOnDelaySeconds": 0}
    And these requests succeed: <before the outage>
    When the mains power fails
    And 1 minute passes
    And the client sends, response or not: GET Systems/1
    Then there is no response
    When the mains power is back
    And 30 minutes pass
    Then GET Systems/1 has "PowerState": "<after>"
    And GET Systems/1 has "PowerRestorePolicy": "<policy>"

    Examples:
      | policy    | before | before the outage                                                         | after |
      | AlwaysOn  | Off    | none                                                                      | On    |
      | AlwaysOn  | On     | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 10m | On    |
      | AlwaysOff | Off    | none                                                                      | Off   |
      | AlwaysOff | On     | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 10m | Off   |
      | LastState | Off    | none                                                                      | Off   |
      | LastState | On     | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 10m | On    |

  @C10
  Scenario: PowerOnDelaySeconds delays the start after an outage
    Given the client sends PATCH Systems/1 {"PowerRestorePolicy": "AlwaysOn", "PowerOnDelaySeconds": 0}
    When the mains power fails
    And the mains power is back
    Then the system is on again after a while
    When 5 minutes pass
    And the client sends PATCH Systems/1 {"PowerOnDelaySeconds": 90}
    And the mains power fails
    And the mains power is back
    Then the system is on again after 90 seconds more

  @C10
  Scenario Outline: HostWatchdogTimer, TimeoutAction <action>: the system is <after> when its software stops
    Given the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    And the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideEnabled": "Continuous", "BootSourceOverrideTarget": "Cd"}}
    And the client sends PATCH Systems/1 {"HostWatchdogTimer": {"FunctionEnabled": true, "TimeoutAction": "<action>"}}
    And the client resets the system with ResetType On
    And 10 minutes pass
    When the system's software resets the watchdog timer to 60 seconds
    And 50 seconds pass
    And the system's software resets the watchdog timer to 60 seconds
    And 59 seconds pass
    Then GET Systems/1 has "BootProgress/LastState": "OSRunning"
    When 20 seconds pass
    Then GET Systems/1 has "PowerState": "<after>"
    And GET Systems/1 has "BootProgress/LastState" matching <boot>
    When the mains power fails
    And the mains power is back
    And 10 minutes pass
    Then GET Systems/1 has "HostWatchdogTimer/FunctionEnabled": true
    And GET Systems/1 has "HostWatchdogTimer/TimeoutAction": "<action>"

    Examples:
      | action      | after | boot           |
      | None        | On    | ^OSRunning$    |
      | ResetSystem | On    | Initialization |
      | PowerDown   | Off   | ^None$         |

  @C10
  Scenario: AutomaticRetryAttempts limits how often a boot without a bootable source is repeated
    When the client sends PATCH Systems/1 {"Boot": {"AutomaticRetryConfig": "RetryAttempts", "AutomaticRetryAttempts": 2}}
    And the client resets the system with ResetType On
    And 10 minutes pass
    Then the system has tried to boot 3 times
    When the client sends PATCH Systems/1 {"Boot": {"AutomaticRetryConfig": "Disabled"}}
    And the client resets the system with ResetType ForceRestart
    And 10 minutes pass
    Then the system has tried to boot 4 times

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
    And the client resets the system with ResetType ForceRestart
    And 10 minutes pass
    Then GET Systems/1/Bios has "Attributes/ProcHyperThreading": "Enabled"

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

Feature: Dialect of HPE's iLO
  Where iLO deviates from the standard, and which request it accepts instead.

  @dialect
  Scenario Outline: <profile> answers <status> to <request>
    Given a rack of 1 server of the profile "<profile>"
    When these requests succeed: <before>
    And the client sends <request>
    Then the response is <status> with "<message>"
    When the client sends <retry>
    Then the response is 200 with "<message of the retry>"

    Examples:
      | profile         | before                                                                             | request                                                                                                                              | status | message                        | retry                                                                                                                                                                       | message of the retry |
      | hpe-dl360-gen10 | none                                                                               | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}} | 400    | PropertyNotWritableOrUnknown   | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}                                                                          | Success              |
      | hpe-dl360-gen10 | none                                                                               | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "ForceOff"}                                                                | 400    | InvalidOperationForSystemState | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}                                                                                                             | Success              |
      | hpe-dl360-gen10 | none                                                                               | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "PowerCycle"}                                                              | 400    | ActionParameterValueNotInList  | POST Systems/1/Actions/Oem/Hpe/HpeComputerSystemExt.PowerButton {"PushType": "Press"}                                                                                       | Success              |
      | hpe-dl360-gen10 | POST Managers/1/VirtualMedia/2/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"} | POST Managers/1/VirtualMedia/2/Actions/VirtualMedia.EjectMedia                                                                       | 400    | MalformedJSON                  | POST Managers/1/VirtualMedia/2/Actions/VirtualMedia.EjectMedia {}                                                                                                           | Success              |
      | hpe-dl360-gen10 | none                                                                               | PATCH systems/1/bios/settings/ {"@Redfish.SettingsApplyTime": {"ApplyTime": "OnReset"}, "Attributes": {"AdminName": "joe"}}          | 400    | PropertyNotWritableOrUnknown   | PATCH systems/1/bios/settings/ {"Attributes": {"AdminName": "joe"}}                                                                                                         | SystemResetRequired  |
      | hpe-dl360-gen10 | none                                                                               | PATCH Systems/1 {"Boot": {"HttpBootUri": "http://boot.test/a.efi"}}                                                                  | 400    | PropertyNotWritableOrUnknown   | PATCH systems/1/bios/settings/ {"Attributes": {"UrlBootFile": "http://boot.test/a.efi"}}                                                                                    | SystemResetRequired  |
      | hpe-dl360-gen10 | none                                                                               | POST Systems/1/Storage/DE00A000/Volumes {"RAIDType": "RAID1"}                                                                        | 405    | OperationNotAllowed            | PATCH Systems/1/SmartStorageConfig/Settings {"DataGuard": "Disabled", "LogicalDrives": [{"DataDrives": ["1I:1:1", "1I:1:2"], "LogicalDriveName": "root", "Raid": "Raid1"}]} | SystemResetRequired  |
      | hpe-dl360-gen11 | none                                                                               | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}} | 400    | PropertyNotWritableOrUnknown   | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}                                                                          | Success              |
      | hpe-dl360-gen12 | POST Managers/1/VirtualMedia/2/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"} | POST Managers/1/VirtualMedia/2/Actions/VirtualMedia.EjectMedia                                                                       | 400    | MalformedJSON                  | POST Managers/1/VirtualMedia/2/Actions/VirtualMedia.EjectMedia {}                                                                                                           | Success              |
      | hpe-dl360-gen9  | none                                                                               | POST Managers/1/VirtualMedia/2/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                                                   | 404    | ActionNotSupported             | PATCH Managers/1/VirtualMedia/2 {"Image": "IMAGE"}                                                                                                                          | Success              |

  @dialect
  Scenario: PATCH is refused while the system is in POST
    Given a rack of 1 server of the profile "hpe-dl360-gen11"
    When the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}
    And 10 seconds pass
    And the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    Then the response is 400 with "UnableToModifyDuringSystemPOST"
    And the client sends PATCH systems/1/bios/settings/ {"Attributes": {"AdminName": "joe"}}
    Then the response is 400 with "UnableToModifyDuringSystemPOST"

  @dialect
  Scenario: A Smart Array creates its logical drives at the next boot
    Given a rack of 1 server of the profile "hpe-dl360-gen10"
    When the client sends PATCH Systems/1/SmartStorageConfig/Settings {"DataGuard": "Disabled", "LogicalDrives": [{"DataDrives": ["1I:1:1", "1I:1:2"], "LogicalDriveName": "root", "Raid": "Raid1"}]}
    And the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}
    Then within 5 minutes GET Systems/1/SmartStorageConfig has "LogicalDrives/0/LogicalDriveName": "root"

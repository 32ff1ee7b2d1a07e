Feature: Dialects of OpenBMC, iRMC and iBMC
  Where they deviate from the standard, and which request they accept instead.

  @dialect
  Scenario: OpenBMC has no InsertMedia at Slot_0, and takes images by HTTPS alone
    Given a rack of 1 server of the profile "openbmc-tiogapass"
    When the client sends POST Managers/bmc/VirtualMedia/Slot_0/Actions/VirtualMedia.InsertMedia {"Image": "SECURE-IMAGE"}
    Then the response is 404
    When the client sends POST Managers/bmc/VirtualMedia/Slot_1/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 400 with "ResourceAtUriInUnknownFormat"
    When the client sends POST Managers/bmc/VirtualMedia/Slot_1/Actions/VirtualMedia.InsertMedia {"Image": "SECURE-IMAGE", "TransferMethod": "Stream"}
    Then the response is 204
    When the client sends GET Managers/bmc/VirtualMedia/Slot_1
    Then the response contains '"Inserted":true'

  @dialect
  Scenario: OpenBMC has neither BIOS settings nor POST of volumes
    Given a rack of 1 server of the profile "openbmc-mtjade"
    When the client sends GET Systems/system/Bios
    Then the response is 200
    When the client sends PATCH Systems/system/Bios/Settings {"Attributes": {"HyperThreading": "Disabled"}}
    Then the response is 404
    When the client sends POST Systems/system/Storage/1/Volumes {"RAIDType": "RAID0"}
    Then the response is 404

  @dialect
  Scenario Outline: iRMC needs If-Match, and has an OEM boot override and reset: <profile>
    Given a rack of 1 server of the profile "<profile>"
    When the client sends PATCH Systems/0 {"Boot": {"BootSourceOverrideTarget": "Pxe"}}
    Then the response is 428
    When the client sends PATCH Systems/0/Oem/<oem>/BootConfig {"BootDevice": "Cd", "NextBootOnlyEnabled": true} with If-Match: ETAG
    Then the response is 200
    When the client sends GET Systems/0
    Then the response contains '"BootSourceOverrideTarget":"Cd"'
    When the client sends POST Systems/0/Actions/Oem/<prefix>ComputerSystem.Reset {"<prefix>ResetType": "PowerOn"}
    Then the response is 204
    When 30 seconds pass
    And the client sends GET Systems/0/Bios
    Then the response contains '"IsBiosInPostPhase":true'

    Examples:
      | profile           | oem        | prefix |
      | fujitsu-rx2540-m5 | ts_fujitsu | FTS    |
      | fujitsu-rx2540-m7 | Fsas       | Fsas   |

  @dialect
  Scenario: An eLCM profile of iRMC sets the BIOS and creates a volume
    Given a rack of 1 server of the profile "fujitsu-rx2540-m5"
    When the client sends POST /rest/v1/Oem/eLCM/ProfileManagement/set {"Server": {"SystemConfig": {"BiosConfig": {"@Processing": "execute", "CpuConfig": {"CpuVtEnabled": false}}}}}
    Then the response is 202
    And the response contains '"Session":{"Id":"1"'
    When the client sends GET /sessionInformation/1/status
    Then the response contains '"Status":"terminated regularly"'
    When the client sends POST Systems/0/Actions/ComputerSystem.Reset {"ResetType": "On"}
    And 300 seconds pass
    And the client sends GET Systems/0/Bios
    Then the response contains '"CpuVtEnabled":false'
    When the client sends POST /rest/v1/Oem/eLCM/ProfileManagement/set {"Server": {"HWConfigurationIrmc": {"Adapters": {"RAIDAdapter": [{"@AdapterId": "RAIDAdapter0", "LogicalDrives": {"LogicalDrive": [{"@Action": "Create", "Name": "pool", "RaidLevel": "1"}]}}]}}}}
    Then the response is 202
    When 60 seconds pass
    And the client sends GET Systems/0/Storage/0/Volumes?$expand=.
    Then the response contains '"DisplayName":"pool"'

  @dialect
  Scenario: iBMC inserts images by VmmControl, and by HTTPS alone
    Given a rack of 1 server of the profile "huawei-2288h-v5"
    When the client sends POST Managers/1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia {"Image": "SECURE-IMAGE"}
    Then the response is 404
    When the client sends POST Managers/1/VirtualMedia/CD/Oem/Huawei/Actions/VirtualMedia.VmmControl {"VmmControlType": "Connect", "Image": "IMAGE"}
    Then the response is 400 with "FileTransferProtocolMismatch"
    When the client sends POST Managers/1/VirtualMedia/CD/Oem/Huawei/Actions/VirtualMedia.VmmControl {"VmmControlType": "Connect", "Image": "SECURE-IMAGE"}
    Then the response is 202
    When the client sends GET Managers/1/VirtualMedia/CD
    Then the response contains '"Inserted":true'

  @dialect
  Scenario: iBMC has ForcePowerCycle, and creates volumes by OEM properties
    Given a rack of 1 server of the profile "huawei-1288h-v5"
    When the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}
    Then the response is 200 with "Success"
    When 300 seconds pass
    And the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "PowerCycle"}
    Then the response is 400 with "ActionParameterNotSupported"
    When the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "ForcePowerCycle"}
    Then the response is 200 with "Success"
    When 300 seconds pass
    And the client sends POST Systems/1/Storages/RAIDStorage0/Volumes {"Oem": {"Huawei": {"VolumeName": "os", "VolumeRaidLevel": "RAID1", "Drives": [0, 1]}}}
    Then the response is 202
    When 60 seconds pass
    And the client sends GET Systems/1/Storages/RAIDStorage0/Volumes/LogicalDrive1
    Then the response contains '"VolumeRaidLevel":"RAID1"'

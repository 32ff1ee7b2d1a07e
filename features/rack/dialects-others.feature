Feature: OpenBMC, iRMC and iBMC
  What a client sees that knows the standard and no vendor, and how one goes on
  that knows how to cope.

  @dialect
  Scenario: OpenBMC has a slot of the browser's, and takes images by HTTPS
    Given a rack of 1 server of the profile "openbmc-tiogapass"
    When a client posts to "/redfish/v1/Managers/bmc/VirtualMedia/Slot_0/Actions/VirtualMedia.InsertMedia", sending {"Image": "SECURE-IMAGE"}
    Then it is answered 404 with ""
    When a client posts to "/redfish/v1/Managers/bmc/VirtualMedia/Slot_1/Actions/VirtualMedia.InsertMedia", sending {"Image": "IMAGE"}
    Then it is answered 400 with "ResourceAtUriInUnknownFormat"
    When a client posts to "/redfish/v1/Managers/bmc/VirtualMedia/Slot_1/Actions/VirtualMedia.InsertMedia", sending {"Image": "SECURE-IMAGE", "TransferMethod": "Stream"}
    Then it is answered 204 with ""
    When a client reads "/redfish/v1/Managers/bmc/VirtualMedia/Slot_1"
    Then the answer holds "'Inserted':true"

  @dialect
  Scenario: OpenBMC tells of a BIOS that it cannot change, and of storage that it only reads
    Given a rack of 1 server of the profile "openbmc-mtjade"
    When a client reads "/redfish/v1/Systems/system/Bios"
    Then it is answered 200 with ""
    When a client changes "/redfish/v1/Systems/system/Bios/Settings", sending {"Attributes": {"HyperThreading": "Disabled"}}
    Then it is answered 404 with ""
    When a client posts to "/redfish/v1/Systems/system/Storage/1/Volumes", sending {"RAIDType": "RAID0"}
    Then it is answered 404 with ""

  @dialect
  Scenario Outline: iRMC changes nothing without an ETag, and boots by its own resource
    Given a rack of 1 server of the profile "<profile>"
    When a client changes "/redfish/v1/Systems/0", sending {"Boot": {"BootSourceOverrideTarget": "Pxe"}}
    Then it is answered 428 with ""
    When a client changes "/redfish/v1/Systems/0/Oem/<oem>/BootConfig" with its ETag, sending {"BootDevice": "Cd", "NextBootOnlyEnabled": true}
    Then it is answered 200 with ""
    When a client reads "/redfish/v1/Systems/0"
    Then the answer holds "'BootSourceOverrideTarget':'Cd'"
    When a client posts to "/redfish/v1/Systems/0/Actions/Oem/<prefix>ComputerSystem.Reset", sending {"<prefix>ResetType": "PowerOn"}
    Then it is answered 204 with ""
    When 30 seconds pass
    And a client reads "/redfish/v1/Systems/0/Bios"
    Then the answer holds "'IsBiosInPostPhase':true"

    Examples:
      | profile           | oem        | prefix |
      | fujitsu-rx2540-m5 | ts_fujitsu | FTS    |
      | fujitsu-rx2540-m7 | Fsas       | Fsas   |

  @dialect
  Scenario: A profile of iRMC's eLCM sets the BIOS and makes a volume
    Given a rack of 1 server of the profile "fujitsu-rx2540-m5"
    When a client posts to "/rest/v1/Oem/eLCM/ProfileManagement/set", sending {"Server": {"SystemConfig": {"BiosConfig": {"@Processing": "execute", "CpuConfig": {"CpuVtEnabled": false}}}}}
    Then it is answered 202 with ""
    And the answer holds "'Session':{'Id':'1'"
    When a client reads "/sessionInformation/1/status"
    Then the answer holds "'Status':'terminated regularly'"
    When a client posts to "/redfish/v1/Systems/0/Actions/ComputerSystem.Reset", sending {"ResetType": "On"}
    And 300 seconds pass
    And a client reads "/redfish/v1/Systems/0/Bios"
    Then the answer holds "'CpuVtEnabled':false"
    When a client posts to "/rest/v1/Oem/eLCM/ProfileManagement/set", sending {"Server": {"HWConfigurationIrmc": {"Adapters": {"RAIDAdapter": [{"@AdapterId": "RAIDAdapter0", "LogicalDrives": {"LogicalDrive": [{"@Action": "Create", "Name": "pool", "RaidLevel": "1"}]}}]}}}}
    Then it is answered 202 with ""
    When 60 seconds pass
    And a client reads "/redfish/v1/Systems/0/Storage/0/Volumes?$expand=."
    Then the answer holds "'DisplayName':'pool'"

  @dialect
  Scenario: iBMC takes images by an action of its own, and not by HTTP
    Given a rack of 1 server of the profile "huawei-2288h-v5"
    When a client posts to "/redfish/v1/Managers/1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia", sending {"Image": "SECURE-IMAGE"}
    Then it is answered 404 with ""
    When a client posts to "/redfish/v1/Managers/1/VirtualMedia/CD/Oem/Huawei/Actions/VirtualMedia.VmmControl", sending {"VmmControlType": "Connect", "Image": "IMAGE"}
    Then it is answered 400 with "FileTransferProtocolMismatch"
    When a client posts to "/redfish/v1/Managers/1/VirtualMedia/CD/Oem/Huawei/Actions/VirtualMedia.VmmControl", sending {"VmmControlType": "Connect", "Image": "SECURE-IMAGE"}
    Then it is answered 202 with ""
    When a client reads "/redfish/v1/Managers/1/VirtualMedia/CD"
    Then the answer holds "'Inserted':true"

  @dialect
  Scenario: iBMC calls a power cycle otherwise, and makes volumes in its own words
    Given a rack of 1 server of the profile "huawei-1288h-v5"
    When a client posts to "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", sending {"ResetType": "On"}
    Then it is answered 200 with "Success"
    When 300 seconds pass
    And a client posts to "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", sending {"ResetType": "PowerCycle"}
    Then it is answered 400 with "ActionParameterNotSupported"
    When a client posts to "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", sending {"ResetType": "ForcePowerCycle"}
    Then it is answered 200 with "Success"
    When 300 seconds pass
    And a client posts to "/redfish/v1/Systems/1/Storages/RAIDStorage0/Volumes", sending {"Oem": {"Huawei": {"VolumeName": "os", "VolumeRaidLevel": "RAID1", "Drives": [0, 1]}}}
    Then it is answered 202 with ""
    When 60 seconds pass
    And a client reads "/redfish/v1/Systems/1/Storages/RAIDStorage0/Volumes/LogicalDrive1"
    Then the answer holds "'VolumeRaidLevel':'RAID1'"

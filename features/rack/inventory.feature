Feature: Firmware and software inventory
  Which firmware runs in each component, and which other images it holds.

  @E13
  Scenario Outline: FirmwareInventory of <profile> has the firmware of each component
    Given a rack of 1 server of the profile "<profile>"
    Then each item of the inventory has Version, Updateable and RelatedItem
    And the firmware version of each resource is that of an item

    Examples:
      | profile   |
      | generic   |
      | raid      |
      | dell-r650 |

  @E13
  Scenario: LowestSupportedVersion bounds the version that can be installed
    Given a rack of 1 server
    Then GET UpdateService/FirmwareInventory/BIOS has "Version": "2.3.1"
    And GET UpdateService/FirmwareInventory/BIOS has "LowestSupportedVersion": "2.0.0"
    When the client sends POST UpdateService/Actions/UpdateService.SimpleUpdate {"ImageURI": "OLD-FIRMWARE"}
    And 20 minutes pass
    Then GET TASK has "TaskState": "Exception"
    And GET UpdateService/FirmwareInventory/BIOS has "Version": "2.3.1"

  @E13
  Scenario: The previous version is kept as a rollback image, and can be activated
    Given a rack of 1 server
    And GET UpdateService/SoftwareInventory/BIOS.Backup has "Version": "2.2.4"
    When the client sends POST UpdateService/Actions/UpdateService.SimpleUpdate {"ImageURI": "FIRMWARE"}
    And 10 minutes pass
    Then GET UpdateService/SoftwareInventory/BIOS.Staged has "Version": "2.4.0"
    And GET UpdateService/FirmwareInventory/BIOS has "Version": "2.3.1"
    When the client resets the system with ResetType On
    And 20 minutes pass
    Then GET UpdateService/FirmwareInventory/BIOS has "Version": "2.4.0"
    And GET UpdateService/SoftwareInventory/BIOS.Staged is answered with 404
    And GET UpdateService/SoftwareInventory/BIOS.Backup has "Version": "2.3.1"
    When the client sends POST UpdateService/SoftwareInventory/BIOS.Backup/Actions/SoftwareInventory.Activate {}
    And 1 minute passes
    And the client resets the system with ResetType ForceRestart
    And 20 minutes pass
    Then GET UpdateService/FirmwareInventory/BIOS has "Version": "2.3.1"
    And GET Systems/1 has "BiosVersion": "2.3.1"

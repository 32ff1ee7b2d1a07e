Feature: Storage and virtual media

  @D1
  Scenario: Drives have Manufacturer, CapacityBytes and Health
    Given a rack of 1 server of the profile "raid"
    Then every drive has Manufacturer, CapacityBytes and the Health OK

  @D2 @fault-4
  Scenario: Creating a volume leaves the others alone
    Given a rack of 1 server of the profile "raid"
    When the client resets the system with ResetType On
    And 5 minutes pass
    And the client creates a volume of RAIDType RAID1 on drives 4, 5
    And the client creates a volume of RAIDType RAID5 on drives 0, 1, 2
    Then there are the volumes 1, 2, with different Identifiers
    When the client creates a volume of RAIDType RAID0 on drives 2, 3
    Then the response is 409 with "PropertyValueResourceConflict"
    And there are the volumes 1, 2, with different Identifiers

  @D1 @D2
  Scenario: A hot spare replaces a failed drive
    Given a rack of 1 server of the profile "raid"
    When the client resets the system with ResetType On
    And 5 minutes pass
    And the client creates a volume of RAIDType RAID1 on drives 4, 5
    And the client sends PATCH Systems/1/Storage/1/Drives/Disk.6 {"HotspareType": "Global"}
    And "the books" is written to volume 1
    When drive 4 fails
    Then GET Systems/1/Storage/1/Volumes/1 has "Status/Health": "Warning"
    And volume 1 holds "the books"
    When 100 hours pass
    Then GET Systems/1/Storage/1/Volumes/1 has "Status/Health": "OK"
    When drive 5 is pulled
    Then GET Systems/1/Storage/1/Drives/Disk.5 is answered with 404
    And GET Systems/1/Storage/1/Volumes/1 has "Status/Health": "Warning"
    And volume 1 holds "the books"
    When the lab is restarted
    Then volume 1 holds "the books"
    When a new drive is inserted into bay 5
    And 100 hours pass
    Then GET Systems/1/Storage/1/Volumes/1 has "Status/Health": "OK"

  @D5
  Scenario: InsertMedia fetches the image, and the server boots it
    Given a rack of 1 server
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then GET Systems/1/VirtualMedia/Cd has "Inserted": true
    And the server's virtual CD has the bytes of the image
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 409 with "ResourceInUse"
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Cd"}}
    And the client resets the system with ResetType On
    And 10 minutes pass
    Then GET Systems/1 has "BootProgress/LastState": "OSRunning"
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia {}
    Then GET Systems/1/VirtualMedia/Cd has "Image": null

  @D5
  Scenario: InsertMedia of an image that its server does not have is refused
    Given a rack of 1 server
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "MISSING-IMAGE"}
    Then the response is 400 with "ResourceMissingAtURI"
    And GET Systems/1/VirtualMedia/Cd has "Image": null

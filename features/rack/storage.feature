Feature: Drives and virtual media

  @D1
  Scenario: Drives tell what they are
    Given a rack of 1 server with RAID
    Then the drives tell their maker, their size and their health

  @D2 @fault-4
  Scenario: A volume more leaves the others alone
    Given a rack of 1 server with RAID
    When the operator switches the server on
    And 5 minutes pass
    And the operator makes a mirror of drives 4, 5
    And the operator makes a RAID 5 of drives 0, 1, 2
    Then there are volumes 1, 2, each with a name of its own in the world
    When the operator makes a stripe of drives 2, 3
    Then it is refused because of "drive in use"
    And there are volumes 1, 2, each with a name of its own in the world

  @D1 @D2
  Scenario: A hot spare takes the place of a drive that fails
    Given a rack of 1 server with RAID
    When the operator switches the server on
    And 5 minutes pass
    And the operator makes a mirror of drives 4, 5
    And the operator makes drive 6 a hot spare
    And "the books" is written on volume 1
    When drive 4 fails
    Then volume 1 is degraded
    And volume 1 holds "the books"
    When 100 hours pass
    Then volume 1 is OK
    When drive 5 is pulled
    Then drive 5 is not there
    And volume 1 is degraded
    And volume 1 holds "the books"
    When the lab is restarted
    Then volume 1 holds "the books"
    When a new drive is put into bay 5
    And 100 hours pass
    Then volume 1 is OK

  @D5
  Scenario: An image is really fetched, and boots
    Given a rack of 1 server
    When the operator inserts a live image into the virtual CD
    Then the virtual CD holds the image, byte by byte
    When the operator inserts another image into the virtual CD
    Then it is refused because of "slot in use"
    When the operator has the next start boot from the virtual CD
    And the operator switches the server on
    And 10 minutes pass
    Then the server runs the live system
    When the operator ejects the virtual CD
    Then the virtual CD is empty

  @D5
  Scenario: An image that no server has
    Given a rack of 1 server
    When the operator inserts an image that no server has
    Then it is refused because of "resource does not exist"
    And the virtual CD is empty

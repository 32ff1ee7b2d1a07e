Feature: Drives and virtual media

  @D1
  Scenario: Drives tell what they are
    Given a rack of 1 server with RAID
    Then the drives tell their maker, their size and their health

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

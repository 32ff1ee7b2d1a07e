Feature: Where a BMC is, and what time it has
  Its services, its address, its names and its clock.

  Background:
    Given a rack of 2 servers

  @E2
  Scenario: A BMC that listens at another port
    When the operator has the BMC listen at another port
    Then the BMC answers there
    And nobody answers where it was
    When the lab is restarted
    Then the BMC answers there
    And the other server's BMC answers as ever

  @E2
  Scenario: Who asks without encryption is sent to where there is one
    When the operator opens the port without encryption
    Then who asks there is sent to the one with encryption
    When the operator closes the port without encryption
    Then nobody answers there

  @E2
  Scenario: Virtual media that are switched off
    When the operator switches virtual media off
    And the operator inserts a live image into the virtual CD
    Then it is refused because of "service switched off"
    And the virtual CD is empty
    When the operator switches virtual media on
    And the operator inserts a live image into the virtual CD
    Then the virtual CD holds the image, byte by byte

  @E3
  Scenario: A BMC that moves to another address
    When the operator gives the BMC the address 127.99.7.5
    Then the BMC answers there
    And nobody answers where it was
    When the lab is restarted
    Then the BMC answers there
    And the other server's BMC answers as ever

  @E3
  Scenario: An address that is taken
    When the operator tries to give the BMC the address of its neighbour
    Then it is refused as 400
    And the BMC answers there
    And the other server's BMC answers as ever

  @E3
  Scenario: Names and a VLAN that outlive a restart of the BMC
    When the operator names the BMC, its name servers and its VLAN
    And the operator restarts the BMC
    And 5 minutes pass
    Then the BMC has that name, those name servers and that VLAN

  @E4
  Scenario: A clock that is set goes on from there
    When the operator sets the BMC's clock to "2040-01-02T03:04:05+02:00"
    Then the BMC's clock shows "2040-01-02T01:04:05Z"
    When the operator sets the BMC's time zone to "-03:30"
    And 2 hours pass
    Then the BMC's clock shows "2040-01-01T23:34:05-03:30"
    When the operator sets the BMC's clock to "yesterday"
    Then it is refused as 400
    And the BMC's clock shows "2040-01-01T23:34:05-03:30"

  @E4
  Scenario: Logs have the time that the BMC has
    When the operator sets the BMC's clock to "2040-01-02T03:00:00Z"
    And 1 minute passes
    And the operator makes an account "carol" with the role Operator
    Then the manager's log tells that it was made at "2040-01-02T03:01:00Z"

  @E4
  Scenario: A clock that follows a time server is right
    Given the operator sets the BMC's clock to "2040-01-02T03:00:00Z"
    When the operator has the BMC's clock follow a time server
    Then the BMC's clock shows the time
    When the operator sets the BMC's clock to "2040-01-02T03:00:00Z"
    Then it is refused as 409
    And the BMC's clock shows the time

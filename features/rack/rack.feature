Feature: Faults, persistence and identities
  What the emulator has that a BMC has not.

  Background:
    Given a rack of 3 servers

  @F1
  Scenario: A fault answers once with 503 and Retry-After
    Given the fault {"status": 503, "count": 1, "retryAfter": "7s"}
    When the client sends GET Systems/1
    Then the response is 503
    And the response has the header Retry-After: 7
    And GET Systems/1 is answered with 200

  @F1
  Scenario: A BMC is offline, and its neighbour is not
    Given the fault {"offline": true}
    When the client sends, response or not: GET Systems/1
    Then there is no response
    And GET Systems/1 of the second BMC is answered with 200
    When the fault is removed
    Then GET Systems/1 is answered with 200

  @F1
  Scenario Outline: The fault <fault> breaks the JSON of a response
    Given the fault <fault>
    When the client sends, response or not: GET Systems/1
    Then the response is not valid JSON

    Examples:
      | fault                 |
      | {"truncate": "50%"}   |
      | {"invalidJSON": true} |

  @F1
  Scenario: The fault stale shows the state of before
    When the client resets the system with ResetType On
    And 10 minutes pass
    Given the fault {"stale": true}
    When the client resets the system with ResetType ForceOff
    Then GET Systems/1 has "PowerState": "On"
    When 1 minute passes
    And the fault is removed
    Then GET Systems/1 has "PowerState": "Off"

  @F1
  Scenario: The fault limit answers requests beyond one per second with 429
    Given the fault {"limit": "1/1s"}
    Then GET Systems/1 is answered with 200
    And GET Systems/1 is answered with 429

  @F5
  Scenario: Each BMC of a rack has an address of its own
    Then every BMC answers at a different address with a different SerialNumber

  @F5
  Scenario: A rack of 10,000 BMCs runs in one process
    Given a rack of 10000 servers
    Then the BMCs have 10000 addresses, which IPMI shares
    And every 100th BMC answers Redfish and IPMI at its address with its UUID

  @F7
  Scenario: The journal records the user and the address of a reset
    When the client resets the system with ResetType On
    Then the journal has POST Systems/1/Actions/ComputerSystem.Reset by "admin" from 127.0.0.1

  @C8 @F10
  Scenario: The same definition gives the same serial numbers, UUIDs and MAC addresses
    Given the client saves the identities of the servers
    When the lab is created again from the same definition
    Then the servers have the saved identities
    And no two servers share a serial number, a UUID or a MAC address

  @F4
  Scenario: The power state survives a restart of the lab
    When the client resets the system with ResetType On
    And 10 minutes pass
    And the lab is restarted
    Then GET Systems/1 has "PowerState": "On"
    And GET Systems/1 of the second BMC has "PowerState": "Off"

Feature: A rack of servers that are not there
  What an emulator gives beside the servers: faults on demand, a life beyond its
  process, and the same again.

  Background:
    Given a rack of 3 servers

  @F1
  Scenario: A busy BMC asks for patience
    Given the first server's BMC answers once that it is busy
    When the operator tries to read the system
    Then he is asked to come again in 7 seconds
    When the operator reads the system
    Then the answer comes as asked

  @F1
  Scenario: A BMC is offline, and its neighbour is not
    Given the BMC is offline
    When the operator tries to read the system
    Then he gets no answer
    And the other server's BMC answers as ever
    When the fault is mended
    And the operator reads the system
    Then the answer comes as asked

  @F1
  Scenario Outline: Answers that cannot be read
    Given the BMC <does>
    When the operator tries to read the system
    Then he gets an answer that he cannot read

    Examples:
      | does                             |
      | breaks off its answers           |
      | answers with JSON that is broken |

  @F1
  Scenario: A BMC shows what was true before
    When the operator switches the server on
    And 10 minutes pass
    Given the BMC shows what was true before
    When the operator switches the server off
    Then the operator is told that the server is on
    When 1 minute passes
    And the fault is mended
    Then the operator is told that the server is off

  @F1
  Scenario: A BMC that has enough of its clients
    Given the BMC answers only one request per second
    Then one of two requests at the same time is refused as too many

  @F5
  Scenario: Many BMCs in one process
    Then every BMC answers at an address of its own

  @F7
  Scenario: The journal tells who did what
    When the operator switches the server on
    Then the journal tells who switched the server on, and from where

  @C8 @F10
  Scenario: The same definition gives the same servers
    Given the operator takes down what the servers are made of
    When the lab is thrown away and made again from the same definition
    Then the servers are made of the same
    And no two servers have a serial number, a UUID or a MAC in common

  @F4
  Scenario: A lab comes back as it was
    When the operator switches the server on
    And 10 minutes pass
    And the lab is restarted
    Then the server is on
    And the other server is off

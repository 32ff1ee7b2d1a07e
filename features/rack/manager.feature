Feature: What the management controller keeps
  Logs and firmware.

  Background:
    Given a rack of 1 server

  @E7
  Scenario: The event log tells what happened, and its numbers grow
    When the operator switches the server on
    And 10 minutes pass
    Then the event log tells that the server was switched on
    When the operator clears the event log
    Then the event log is empty
    When the operator switches the server off
    And 1 minute passes
    Then new entries have numbers that were never there

  @A18 @E11 @E13
  Scenario: A firmware update goes its way
    When the operator updates the BIOS
    Then a task goes on, and its monitor says so
    When 10 minutes pass
    And the operator switches the server on
    And 20 minutes pass
    Then the task has gone well
    And the BIOS has version "2.4.0"
    And the inventory of firmware says "2.4.0" of the BIOS

  @E11
  Scenario: A damaged image is not installed
    When the operator updates the BIOS with an image that was damaged
    And 20 minutes pass
    Then the task has failed
    And the inventory of firmware says "2.3.1" of the BIOS

  @A7 @E11 @fault-7
  Scenario: An update on a condition that holds
    When the operator updates the BIOS, whatever has become of the update service
    Then a task goes on, and its monitor says so

  @A7 @E11 @fault-7
  Scenario: An update on the version that was read
    When the operator updates the BIOS as the update service was when he read it
    Then a task goes on, and its monitor says so

  @E1
  Scenario: A BMC that restarts is really gone for a while
    When the operator restarts the BMC
    And 5 seconds pass
    And the operator tries to read the system
    Then he gets no answer
    When 5 minutes pass
    And the operator reads the system
    Then the answer comes as asked

  @E1 @B2
  Scenario: A BMC that restarts forgets its sessions
    When a client logs in with nothing but a name and a password
    Then it holds a token, and reads the system with it
    When the client restarts the BMC
    And 5 minutes pass
    Then the token is worth nothing any longer

  @E5
  Scenario: Sensors follow what the server does
    Then no sensor tells how warm the processors are
    When the operator switches the server on
    And 30 minutes pass
    Then the processors are warmer than the air around them

  @B7
  Scenario: The BMC tells where its certificates are
    Then the service lists the certificate that it shows

  @C10
  Scenario: After the power was gone a server does what it was told
    Given the operator has the server start by itself when the power is back
    When the power fails
    And the operator tries to read the system
    Then he gets no answer
    When the power is back
    And 30 minutes pass
    Then the server is on

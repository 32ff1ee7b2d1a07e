Feature: powering off before delete
  A server is switched off when its host is deleted.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-31 @B-70 @B-83
  Scenario: The server is switched off before its host is deleted
    Given the server is on
    When the operator deletes the host
    Then the host is deleted
    And it passed through "powering off before delete, deleting"
    And the server is off

  @B-70 @B-125
  Scenario: With disablePowerOff the server stays on
    Given the operator edits the host:
      """
      spec: {disablePowerOff: true}
      """
    And the server is on
    When the operator deletes the host
    Then the host is deleted
    And the server stays on

  @B-70 @fault
  Scenario: A host whose server cannot be switched off is deleted in the end
    Given the server is on
    And the BMC refuses to change the power
    When the operator deletes the host
    Then the host reports "power management error"
    And the host is deleted
    And the server stays on

  @B-70 @fault
  Scenario: A host whose BMC is offline is deleted
    Given the BMC is offline
    When the operator deletes the host
    Then the host is deleted
    And the server stays on

  @B-70 @B-14 @fault
  Scenario: The BMC restarts meanwhile
    Given the BMC restarts as soon as the host is "powering off before delete"
    When the operator deletes the host
    Then the host is deleted
    And the server is off

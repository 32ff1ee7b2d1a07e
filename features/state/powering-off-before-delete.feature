Feature: powering off before delete
  A server that nobody looks after any longer shall be off.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-31 @B-70 @B-83
  Scenario: The server is switched off before its host goes
    Given the server is on
    When the operator deletes the host
    Then the host is gone
    And it passed through "powering off before delete, deleting"
    And the server is off

  @B-70 @B-125
  Scenario: A server that shall never be off stays on
    Given the operator edits the host:
      """
      spec: {disablePowerOff: true}
      """
    And the server is on
    When the operator deletes the host
    Then the host is gone
    And the server is on

  @B-70 @fault
  Scenario: A server that cannot be switched off is let go in the end
    Given the server is on
    And the BMC refuses to switch the server
    When the operator deletes the host
    Then the host reports "power management error"
    And the host is gone
    And the server is on

  @B-70 @fault
  Scenario: A BMC that is gone holds nobody back
    Given the BMC is silent
    When the operator deletes the host
    Then the host is gone
    And the server is on

  @B-70 @B-14 @fault
  Scenario: A BMC that restarts in the middle
    Given the BMC restarts as soon as the host is "powering off before delete"
    When the operator deletes the host
    Then the host is gone
    And the server is off

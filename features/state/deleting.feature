Feature: deleting
  A host goes with all that belongs to it, and with nothing else.

  Background:
    Given a lab with 1 server

  @B-32 @B-71 @B-113
  Scenario: What belongs to a host goes with it
    Given the operator has registered the server
    When the operator deletes the host
    Then the host is gone
    And its HardwareData is gone
    And the secret is gone

  @B-113
  Scenario: A secret that is in use stays until its host goes
    Given the operator has registered the server
    When the operator deletes the secret
    Then the secret is still there
    And the host stays "available"
    When the operator deletes the host
    Then the host is gone
    And the secret is gone

  @B-71 @B-69
  Scenario: A host whose secret never was there
    Given the operator registers the server without its secret
    And the host reports "registration error"
    When the operator deletes the host
    Then the host is gone

  @B-69 @B-70 @fault
  Scenario: A host whose BMC is gone
    Given the operator has provisioned the server
    And the BMC is silent
    When the operator deletes the host
    Then the host is gone
    And it passed through "deprovisioning, powering off before delete, deleting"

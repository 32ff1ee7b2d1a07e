Feature: deleting
  A host is deleted with the objects that belong to it, and no others.

  Background:
    Given a lab with 1 server

  @B-32 @B-71 @B-113
  Scenario: HardwareData and Secret are deleted with the host
    Given the operator has registered the server
    When the operator deletes the host
    Then the host is deleted
    And the HardwareData is deleted
    And the Secret is deleted

  @B-113
  Scenario: A Secret in use is kept until its host is deleted
    Given the operator has registered the server
    When the operator deletes the Secret
    Then the Secret is still there
    And the host stays "available"
    When the operator deletes the host
    Then the host is deleted
    And the Secret is deleted

  @B-71 @B-69
  Scenario: A host without a Secret is deleted
    Given the operator registers the server without its Secret
    And the host reports "registration error"
    When the operator deletes the host
    Then the host is deleted

  @B-69 @B-70 @fault
  Scenario: A host whose BMC is offline is deleted
    Given the operator has provisioned the server
    And the BMC is offline
    When the operator deletes the host
    Then the host is deleted
    And it passed through "deprovisioning, powering off before delete, deleting"

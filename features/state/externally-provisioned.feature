Feature: externally provisioned
  Somebody else looks after what is on the disks. The controllers look after the
  power, and no more.

  Background:
    Given a lab with 1 server
    And the operator registers the server with:
      """
      spec: {externallyProvisioned: true}
      """
    And the host becomes "externally provisioned"

  @B-29 @B-44 @B-83 @B-190 @B-260
  Scenario: It is neither inspected nor cleaned
    Then it never was "inspecting"
    And it never was "preparing"
    And the conditions say that "Manageable, Provisioned, Ready" are true
    And the host's status has "hardwareProfile" as "unknown"
    And the server is on

  @B-120 @B-260
  Scenario: Power follows the specification
    When the server is on
    And the operator sets online to false
    Then the server is off
    When the operator sets online to true
    Then the server is on

  @B-260
  Scenario: No image is written
    When the operator asks for the lab's image
    And 10 minutes pass
    Then the host stays "externally provisioned"
    And the server's disks hold no partition table

  @B-64
  Scenario: The server is handed over
    When the operator asks for the lab's image
    And the operator edits the host:
      """
      spec: {externallyProvisioned: false}
      """
    Then the host becomes "provisioned"
    And it never was "provisioning"
    And the host reports no error

  @B-72
  Scenario: Deletion switches it off, and erases nothing
    Given the server is on
    When the operator deletes the host
    Then the host is gone
    And it never was "deprovisioning"
    And it passed through "externally provisioned, powering off before delete, deleting"
    And the server is off

  @B-63 @B-46 @fault
  Scenario: A password that no longer works
    When the operator changes the password of the secret to a wrong one
    Then the host reports "registration error"
    And the host stays "externally provisioned"
    When the operator corrects the password
    Then the host reports no error

Feature: externally provisioned
  Somebody else provisions the disks. The controllers manage the power only.

  Background:
    Given a lab with 1 server
    And the operator registers the server with:
      """
      spec: {externallyProvisioned: true}
      """
    And the host becomes "externally provisioned"

  @B-29 @B-44 @B-83 @B-190 @B-260
  Scenario: An externally provisioned host is neither inspected nor prepared
    Then it was never "inspecting"
    And it was never "preparing"
    And the conditions "Manageable, Provisioned, Ready" are true
    And the host's status field "hardwareProfile" is "unknown"
    And the server is on

  @B-120 @B-260
  Scenario: Power follows spec.online
    When the server is on
    And the operator sets online to false
    Then the server is off
    When the operator sets online to true
    Then the server is on

  @B-260
  Scenario: spec.image is not written
    When the operator sets the image
    And 10 minutes pass
    Then the host stays "externally provisioned"
    And the server's disks have no partition table

  @B-64
  Scenario: A host with an image becomes provisioned when externallyProvisioned is cleared
    When the operator sets the image
    And the operator edits the host:
      """
      spec: {externallyProvisioned: false}
      """
    Then the host becomes "provisioned"
    And it was never "provisioning"
    And the host reports no error

  @B-72
  Scenario: Deletion switches the server off and erases nothing
    Given the server is on
    When the operator deletes the host
    Then the host is deleted
    And it was never "deprovisioning"
    And it passed through "externally provisioned, powering off before delete, deleting"
    And the server is off

  @B-63 @B-46 @fault
  Scenario: A password that no longer works is reported
    When the operator changes the password of the Secret to a wrong one
    Then the host reports "registration error"
    And the host stays "externally provisioned"
    When the operator corrects the password
    Then the host reports no error

Feature: deprovisioning
  The disks are cleaned and the image is forgotten.

  Background:
    Given a lab with 1 server
    And the operator has provisioned the server

  @B-30 @B-62 @B-65 @B-83 @B-126
  Scenario: Removing the image cleans the disks
    When the operator removes the image
    Then the host becomes "deprovisioning"
    And the conditions "Manageable, Progressing" are true
    And the host becomes "available"
    And the server's disks have no partition table
    And the server's virtual CD is empty
    And the host has lost its status field "provisioning.image.url"
    And the events include "DeprovisioningStarted, DeprovisioningComplete"
    And the server is on

  @B-65
  Scenario: With cleaning disabled the disks keep their content
    When the operator edits the host:
      """
      spec: {automatedCleaningMode: disabled, image: null}
      """
    Then the host becomes "available"
    And the server's first disk begins with the image

  @B-67
  Scenario: Cleaning that was disabled before deletion is skipped
    When the operator edits the host:
      """
      spec: {automatedCleaningMode: disabled}
      """
    And the operator deletes the host
    Then the host is deleted
    And the server's first disk begins with the image
    And the server is off

  @B-66 @fault
  Scenario: The agent does not report
    Given the server's agent will not report
    When the operator removes the image
    Then the host reports "provisioning error"
    And the host stays "deprovisioning"
    And the host has reported the error message "the agent did not report"
    When the server's agent will report again
    Then the host becomes "available"
    And the server's disks have no partition table
    And the host reports no error

  @B-66 @fault
  Scenario Outline: The BMC <trouble>
    Given the BMC <trouble>
    When the operator removes the image
    Then the host reports "provisioning error"
    And the host stays "deprovisioning"
    When the BMC works again
    Then the host becomes "available"
    And the server's disks have no partition table
    And the host reports no error

    Examples:
      | trouble                     |
      | refuses virtual media       |
      | refuses to change the power |

  @B-14 @fault
  Scenario Outline: The BMC <trouble> meanwhile
    Given the BMC <trouble> as soon as the host is "deprovisioning"
    When the operator removes the image
    Then the host becomes "available"
    And the server's disks have no partition table
    And the host reports no error

    Examples:
      | trouble                          |
      | is offline for two minutes       |
      | restarts                         |
      | accepts a reset and does nothing |

  @B-68 @B-69
  Scenario: A provisioned host is deprovisioned before it is deleted
    When the operator deletes the host
    Then the host is deleted
    And it passed through "provisioned, deprovisioning, powering off before delete, deleting"
    And the server's disks have no partition table
    And the server is off

  @B-69 @fault
  Scenario: A host that cannot be cleaned is deleted in the end
    Given the BMC refuses virtual media
    When the operator deletes the host
    Then the host is deleted
    And it passed through "deprovisioning, powering off before delete, deleting"
    And the server is off

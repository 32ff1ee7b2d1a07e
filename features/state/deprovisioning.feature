Feature: deprovisioning
  The server is made as if it had never had the image.

  Background:
    Given a lab with 1 server
    And the operator has provisioned the server

  @B-30 @B-62 @B-65 @B-83 @B-126
  Scenario: The image is taken away
    When the operator takes the image away
    Then the host becomes "deprovisioning"
    And the conditions say that "Manageable, Progressing" are true
    And the host becomes "available"
    And the server's disks hold no partition table
    And the server's virtual CD is empty
    And the host's status has "provisioning.image.url" as ""
    And the events tell of "DeprovisioningStarted, DeprovisioningComplete"
    And the server is on

  @B-65
  Scenario: Without cleaning the disks stay as they are
    When the operator edits the host:
      """
      spec: {automatedCleaningMode: disabled, image: null}
      """
    Then the host becomes "available"
    And the server's first disk begins with the image

  @B-67
  Scenario: What counts is how cleaning is set when it begins
    When the operator edits the host:
      """
      spec: {automatedCleaningMode: disabled}
      """
    And the operator deletes the host
    Then the host is gone
    And the server's first disk begins with the image
    And the server is off

  @B-66 @fault
  Scenario: An agent that is silent
    Given the server's agent will be silent
    When the operator takes the image away
    Then the host reports "provisioning error"
    And the host stays "deprovisioning"
    And the host's error says "the agent did not report"
    When the server's agent will speak
    Then the host becomes "available"
    And the server's disks hold no partition table
    And the host reports no error

  @B-66 @fault
  Scenario Outline: A BMC that <trouble>
    Given the BMC <trouble>
    When the operator takes the image away
    Then the host reports "provisioning error"
    And the host stays "deprovisioning"
    When the BMC is as it was
    Then the host becomes "available"
    And the server's disks hold no partition table
    And the host reports no error

    Examples:
      | trouble                      |
      | refuses virtual media        |
      | refuses to switch the server |

  @B-14 @fault
  Scenario Outline: A BMC that <trouble> in the middle
    Given the BMC <trouble> as soon as the host is "deprovisioning"
    When the operator takes the image away
    Then the host becomes "available"
    And the server's disks hold no partition table
    And the host reports no error

    Examples:
      | trouble                        |
      | is silent for two minutes      |
      | restarts                       |
      | takes a reset and does nothing |

  @B-68 @B-69
  Scenario: A host with an image is deleted
    When the operator deletes the host
    Then the host is gone
    And it passed through "provisioned, deprovisioning, powering off before delete, deleting"
    And the server's disks hold no partition table
    And the server is off

  @B-69 @fault
  Scenario: A host that cannot be cleaned is let go in the end
    Given the BMC refuses virtual media
    When the operator deletes the host
    Then the host is gone
    And it passed through "deprovisioning, powering off before delete, deleting"
    And the server is off

Feature: preparing
  RAID, BIOS settings and firmware updates are applied before a host is available.

  Background:
    Given a lab with 1 server

  @B-25 @B-52
  Scenario: A host without RAID, settings or updates passes through
    When the operator registers the server
    Then the host becomes "available"
    And it passed through "preparing, available"
    And the server's virtual CD is empty
    And the host reports no error

  @B-14 @B-53 @fault
  Scenario Outline: The BMC <trouble> meanwhile
    Given the BMC <trouble> as soon as the host is "preparing"
    When the operator registers the server
    Then the host becomes "available"
    And the host reports no error
    And the server's virtual CD is empty

    Examples:
      | trouble                          |
      | is offline for two minutes       |
      | restarts                         |
      | refuses to change the power once |

  @B-46 @B-114
  Scenario: The password is rotated between registration and provisioning
    Given the operator has registered the server
    When the BMC's password becomes "another-Secret-1"
    And the operator changes the password of the Secret to "another-Secret-1"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the host reports no error

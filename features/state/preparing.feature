Feature: preparing
  What the operator wants of RAID, BIOS and firmware is set before a host is
  offered. A host of which nothing is wanted passes through.

  Background:
    Given a lab with 1 server

  @B-25 @B-52
  Scenario: Nothing is to be prepared
    When the operator registers the server
    Then the host becomes "available"
    And it passed through "preparing, available"
    And the server's virtual CD is empty
    And the host reports no error

  @B-14 @B-53 @fault
  Scenario Outline: A BMC that <trouble> in the middle
    Given the BMC <trouble> as soon as the host is "preparing"
    When the operator registers the server
    Then the host becomes "available"
    And the host reports no error
    And the server's virtual CD is empty

    Examples:
      | trouble                               |
      | is silent for two minutes             |
      | restarts                              |
      | refuses to switch the server once     |

  @B-46 @B-114
  Scenario: The password is changed in the middle
    Given the operator has registered the server
    When the BMC's password becomes "another-Secret-1"
    And the operator changes the password of the secret to "another-Secret-1"
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the host reports no error

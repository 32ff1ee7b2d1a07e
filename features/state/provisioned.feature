Feature: provisioned
  The server runs its image. It is reset only when the operator asks for it.

  Background:
    Given a lab with 1 server
    And the operator has provisioned the server
    And the server runs from its first disk

  @B-28 @B-83
  Scenario: Status of a provisioned host
    Then the conditions "Manageable, Provisioned, Ready" are true
    And the conditions "AvailableForProvisioning, Progressing" are false
    And the host's status field "poweredOn" is "true"

  @B-120 @B-121 @B-122 @B-123
  Scenario: Power follows spec.online, and a power off at the BMC is corrected
    When the operator sets online to false
    Then the server is off
    And the events include "PowerOff"
    When the operator sets online to true
    Then the server runs from its first disk
    When somebody powers the server off at its BMC
    And a minute passes
    Then the server runs from its first disk

  @B-62
  Scenario: A new checksum or userData does not start a deployment
    When resets of the server are counted
    And the operator edits the host:
      """
      spec:
        image: {checksum: "0000000000000000000000000000000000000000000000000000000000000000"}
        userData: {name: other-user-data}
      """
    And 10 minutes pass
    Then the host stays "provisioned"
    And the server was not reset

  @B-62
  Scenario: A new image URL starts a deployment
    When the operator sets the image as qcow2
    Then the host becomes "deprovisioning"
    And the host becomes "provisioned"
    And it passed through "provisioned, deprovisioning, available, provisioning, provisioned"
    And the server's first disk begins with the image

  @B-46 @B-114 @B-82 @fault
  Scenario: A password that no longer works does not reset the server
    When resets of the server are counted
    And the operator changes the password of the Secret to a wrong one
    Then the host reports "registration error"
    And the host stays "provisioned"
    And the condition "Manageable" is False with reason "RegistrationFailed"
    When the operator corrects the password
    Then the host reports no error
    And the host stays "provisioned"
    And the server was not reset

  @B-114
  Scenario: The password is rotated
    When resets of the server are counted
    And the BMC's password becomes "another-Secret-1"
    And the operator changes the password of the Secret to "another-Secret-1"
    And 2 minutes pass
    Then the host reports no error
    And the host stays "provisioned"
    And the server was not reset
    When the operator sets online to false
    Then the server is off

  @B-123 @fault
  Scenario: An operating system that ignores the power button is switched off
    Given the server's operating system ignores the power button
    When the operator sets online to false
    Then the server is off
    And the events include "PowerOff"
    And the host reports no error

  @B-123 @fault
  Scenario Outline: The BMC <trouble>
    Given the BMC <trouble>
    When the operator sets online to false
    Then the server is off
    And the host reports no error

    Examples:
      | trouble                          |
      | accepts a reset and does nothing |
      | refuses a graceful shutdown      |

  @B-124 @B-13 @fault
  Scenario: The BMC refuses to switch the server on
    Given the operator sets online to false
    And the server is off
    And the BMC refuses to change the power
    When the operator sets online to true
    Then the host reports "power management error"
    And the host has reported the error message "PowerOn operation failed"
    When the BMC works again
    Then the server runs from its first disk
    And the host reports no error

  @B-125
  Scenario: With disablePowerOff a reboot is a single reset
    When the operator edits the host:
      """
      spec: {disablePowerOff: true}
      """
    And resets of the server are counted
    And the operator annotates the host with "reboot.metal3.io"
    Then the annotation "reboot.metal3.io" is removed
    And the server was reset 1 time
    And the server runs from its first disk

  @B-14 @fault
  Scenario Outline: A BMC that <trouble> does not reset the server
    When resets of the server are counted
    And the BMC <trouble>
    And 10 minutes pass
    And the BMC works again
    And 10 minutes pass
    Then the host stays "provisioned"
    And the host reports no error
    And the server was not reset

    Examples:
      | trouble    |
      | is offline |
      | restarts   |

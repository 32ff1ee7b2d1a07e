Feature: provisioned
  The server runs what the operator has asked for. It is reset for nothing but
  what the operator asks.

  Background:
    Given a lab with 1 server
    And the operator has provisioned the server
    And the server runs what its first disk holds

  @B-28 @B-83
  Scenario: What a provisioned host shows
    Then the conditions say that "Manageable, Provisioned, Ready" are true
    And the conditions say that "AvailableForProvisioning, Progressing" are false
    And the host's status has "poweredOn" as "true"

  @B-120 @B-121 @B-122 @B-123
  Scenario: Power follows the specification, and drift is corrected
    When the operator sets online to false
    Then the server is off
    And the events tell of "PowerOff"
    When the operator sets online to true
    Then the server runs what its first disk holds
    When somebody switches the server off by its BMC
    And a minute passes
    Then the server runs what its first disk holds

  @B-62
  Scenario: What is not the image's address changes nothing
    When the operator counts how often the server is reset
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
  Scenario: Another image
    When the operator asks for the lab's image as qcow2
    Then the host becomes "deprovisioning"
    And the host becomes "provisioned"
    And it passed through "provisioned, deprovisioning, available, provisioning, provisioned"
    And the server's first disk begins with the image

  @B-46 @B-114 @B-82 @fault
  Scenario: A password that no longer works leaves the server alone
    When the operator counts how often the server is reset
    And the operator changes the password of the secret to a wrong one
    Then the host reports "registration error"
    And the host stays "provisioned"
    And the condition "Manageable" is False because of "RegistrationFailed"
    When the operator corrects the password
    Then the host reports no error
    And the host stays "provisioned"
    And the server was not reset

  @B-114
  Scenario: The password is rotated
    When the operator counts how often the server is reset
    And the BMC's password becomes "another-Secret-1"
    And the operator changes the password of the secret to "another-Secret-1"
    And 2 minutes pass
    Then the host reports no error
    And the host stays "provisioned"
    And the server was not reset
    When the operator sets online to false
    Then the server is off

  @B-123 @fault
  Scenario: A system that does not hear that it shall go down
    Given the server's system does not listen to the power button
    When the operator sets online to false
    Then the server is off
    And the events tell of "PowerOff"
    And the host reports no error

  @B-123 @fault
  Scenario Outline: A BMC that <trouble>
    Given the BMC <trouble>
    When the operator sets online to false
    Then the server is off
    And the host reports no error

    Examples:
      | trouble                                |
      | takes a reset and does nothing         |
      | refuses to ask the system to shut down |

  @B-124 @B-13 @fault
  Scenario: The server cannot be switched on
    Given the operator sets online to false
    And the server is off
    And the BMC refuses to switch the server
    When the operator sets online to true
    Then the host reports "power management error"
    And the host's error says "PowerOn operation failed"
    When the BMC is as it was
    Then the server runs what its first disk holds
    And the host reports no error

  @B-125
  Scenario: A server that shall never be off is restarted
    When the operator edits the host:
      """
      spec: {disablePowerOff: true}
      """
    And the operator counts how often the server is reset
    And the operator annotates the host with "reboot.metal3.io"
    Then the annotation "reboot.metal3.io" is gone
    And the server was reset 1 time
    And the server runs what its first disk holds

  @B-14 @fault
  Scenario Outline: A BMC that <trouble> leaves the server alone
    When the operator counts how often the server is reset
    And the BMC <trouble>
    And 10 minutes pass
    And the BMC is as it was
    And 10 minutes pass
    Then the host stays "provisioned"
    And the host reports no error
    And the server was not reset

    Examples:
      | trouble   |
      | is silent |
      | restarts  |

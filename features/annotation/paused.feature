Feature: baremetalhost.metal3.io/paused
  Whoever moves or repairs something by hand has the controllers leave a host
  alone. It goes on where it was.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-90
  Scenario: A paused host is left alone
    When the operator pauses the host
    And the operator asks for the lab's image
    And ten minutes pass
    Then the host stays "available"
    When the operator resumes the host
    Then the host becomes "provisioned"

  @B-90 @B-121
  Scenario: Its power is not looked after, and its BMC is asked nothing
    When the operator pauses the host
    And somebody switches the server off by its BMC
    And the BMC of the server is asked nothing from now on
    And ten minutes pass
    Then the BMC was asked nothing
    And the server is off
    When the operator resumes the host
    Then the server is on

  @B-90
  Scenario: Its deletion waits
    When the operator pauses the host
    And the operator deletes the host
    And ten minutes pass
    Then the host stays "available"
    When the operator resumes the host
    Then the host is gone

  @B-90
  Scenario: A host that is made paused
    When the operator deletes the host
    And the host is gone
    And the secret is gone
    And the operator registers the server with:
      """
      metadata: {annotations: {baremetalhost.metal3.io/paused: metal3.io/capm3}}
      """
    And ten minutes pass
    Then the host stays ""
    When the operator resumes the host
    Then the host becomes "available"

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

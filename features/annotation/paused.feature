Feature: baremetalhost.metal3.io/paused
  A paused host is not managed. It continues where it was when it is resumed.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-90
  Scenario: A paused host is not provisioned
    When the operator pauses the host
    And the operator sets the image
    And ten minutes pass
    Then the host stays "available"
    When the operator resumes the host
    Then the host becomes "provisioned"

  @B-90 @B-121
  Scenario: A paused host's power is not managed and its BMC gets no request
    When the operator pauses the host
    And somebody powers the server off at its BMC
    And requests to the BMC are counted
    And ten minutes pass
    Then the BMC has received no request
    And the server stays off
    When the operator resumes the host
    Then the server is on

  @B-90
  Scenario: A paused host's deletion waits
    When the operator pauses the host
    And the operator deletes the host
    And ten minutes pass
    Then the host stays "available"
    When the operator resumes the host
    Then the host is deleted

  @B-90
  Scenario: A host that is created paused
    When the operator deletes the host
    And the host is deleted
    And the Secret is deleted
    And the operator registers the server with:
      """
      metadata: {annotations: {baremetalhost.metal3.io/paused: metal3.io/capm3}}
      """
    And ten minutes pass
    Then the host stays ""
    When the operator resumes the host
    Then the host becomes "available"

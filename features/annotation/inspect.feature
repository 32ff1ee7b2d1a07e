Feature: inspect.metal3.io
  A server that was changed is inspected again; one that is known need not be.

  Background:
    Given a lab with 1 server

  @B-98 @B-48 @B-55
  Scenario: An available host is inspected again
    Given the operator has registered the server
    When the operator annotates the host with "inspect.metal3.io"
    Then the host becomes "inspecting"
    And the annotation "inspect.metal3.io" is gone
    And the host becomes "available"
    And it passed through "available, inspecting, preparing, available"
    And the inspection found what the server is made of

  @B-98
  Scenario: A provisioned host is not
    Given the operator has provisioned the server
    And the server runs what its first disk holds
    When the operator counts how often the server is reset
    And the operator annotates the host with "inspect.metal3.io"
    And ten minutes pass
    Then the host stays "provisioned"
    And the annotation "inspect.metal3.io" is still there
    And the server was not reset

  @B-98 @B-44
  Scenario: A host that is never to be inspected
    When the operator registers the server with:
      """
      metadata: {annotations: {inspect.metal3.io: disabled}}
      """
    Then the host becomes "available"
    And it never was "inspecting"

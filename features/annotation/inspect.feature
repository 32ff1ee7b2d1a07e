Feature: inspect.metal3.io
  The annotation starts or disables inspection.

  Background:
    Given a lab with 1 server

  @B-98 @B-48 @B-55
  Scenario: The annotation starts an inspection of an available host
    Given the operator has registered the server
    When the operator annotates the host with "inspect.metal3.io"
    Then the host becomes "inspecting"
    And the annotation "inspect.metal3.io" is removed
    And the host becomes "available"
    And it passed through "available, inspecting, preparing, available"
    And the inspection found the server's hardware

  @B-98
  Scenario: A provisioned host is not inspected
    Given the operator has provisioned the server
    And the server runs from its first disk
    When resets of the server are counted
    And the operator annotates the host with "inspect.metal3.io"
    And ten minutes pass
    Then the host stays "provisioned"
    And the annotation "inspect.metal3.io" is still there
    And the server was not reset

  @B-98 @B-44
  Scenario: The value disabled skips inspection
    When the operator registers the server with:
      """
      metadata: {annotations: {inspect.metal3.io: disabled}}
      """
    Then the host becomes "available"
    And it was never "inspecting"

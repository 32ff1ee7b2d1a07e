Feature: unmanaged
  A host without BMC details is not managed until they are added.

  Background:
    Given a lab with 1 server

  @B-21 @B-41 @B-42 @B-80 @B-83
  Scenario: A host without BMC details is registered when they are added
    When the operator registers the server without its BMC
    Then the host becomes "unmanaged"
    And the host's operational status is "discovered"
    And the events include "Discovered"
    When the operator adds the BMC
    Then the host becomes "available"
    And it passed through "unmanaged, registering, inspecting"
    And the host reports no error

  @B-68
  Scenario: A host without a BMC is deleted
    Given the operator registers the server without its BMC
    And the host becomes "unmanaged"
    When the operator deletes the host
    Then the host is deleted

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

  @B-21 @B-80 @B-112
  Scenario: A host with the name of a Secret and without a BMC address
    When the operator registers the server with:
      """
      spec: {bmc: {address: ""}}
      """
    Then the host becomes "unmanaged"
    And the host reports "registration error"
    And the host has reported the error message "Empty BMC address Missing BMC connection detail 'Address'"
    And the host's operational status is "discovered"
    And the host stays "unmanaged"
    When the operator edits the host:
      """
      spec: {bmc: {credentialsName: ""}}
      """
    Then its error count is 0
    And the host's operational status is "discovered"
    When the operator edits the host's BMC details
    Then the host becomes "available"
    And it passed through "unmanaged, registering, inspecting"
    And the host reports no error

  @B-68
  Scenario: A host without a BMC is deleted
    Given the operator registers the server without its BMC
    And the host becomes "unmanaged"
    When the operator deletes the host
    Then the host is deleted

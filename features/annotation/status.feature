Feature: baremetalhost.metal3.io/status
  A host is moved between clusters with its status. Its server is not touched.

  Background:
    Given a lab with 1 server

  @B-100
  Scenario: A provisioned host is moved to another cluster
    Given the operator has provisioned the server
    And the server runs from its first disk
    When resets of the server are counted
    And the operator moves the host to another cluster
    Then the host becomes "provisioned"
    And the annotation "baremetalhost.metal3.io/status" is removed
    And it was never "inspecting"
    And it was never "deprovisioning"
    And the host reports no error
    And the server was not reset
    And the server runs from its first disk
    When the operator removes the image
    Then the host becomes "available"
    And the server's disks have no partition table

  @B-100
  Scenario: An available host is moved to another cluster
    Given the operator has registered the server
    When the operator moves the host to another cluster
    Then the host becomes "available"
    And it was never "inspecting"

  @B-100
  Scenario: The annotation does not change an existing status
    Given the operator has registered the server
    When the operator annotates the host with "baremetalhost.metal3.io/status" set to '{"provisioning":{"state":"provisioned","ID":"","image":{"url":""}},"operationalStatus":"OK","errorMessage":"","poweredOn":true,"triedCredentials":{},"goodCredentials":{},"errorCount":0}'
    Then the annotation "baremetalhost.metal3.io/status" is removed
    And the host stays "available"

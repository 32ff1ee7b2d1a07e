Feature: baremetalhost.metal3.io/status
  A host can be moved between clusters. Its server notices nothing.

  Background:
    Given a lab with 1 server

  @B-100
  Scenario: A provisioned host is moved
    Given the operator has provisioned the server
    And the server runs what its first disk holds
    When the operator counts how often the server is reset
    And the operator moves the host to another cluster
    Then the host becomes "provisioned"
    And the annotation "baremetalhost.metal3.io/status" is gone
    And it never was "inspecting"
    And it never was "deprovisioning"
    And the host reports no error
    And the server was not reset
    And the server runs what its first disk holds
    When the operator takes the image away
    Then the host becomes "available"
    And the server's disks hold no partition table

  @B-100
  Scenario: An available host is moved
    Given the operator has registered the server
    When the operator moves the host to another cluster
    Then the host becomes "available"
    And it never was "inspecting"

  @B-100
  Scenario: A host that has a status keeps it
    Given the operator has registered the server
    When the operator annotates the host with "baremetalhost.metal3.io/status" saying '{"provisioning":{"state":"provisioned","ID":"","image":{"url":""}},"operationalStatus":"OK","errorMessage":"","poweredOn":true,"triedCredentials":{},"goodCredentials":{},"errorCount":0}'
    Then the annotation "baremetalhost.metal3.io/status" is gone
    And the host stays "available"

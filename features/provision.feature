Feature: The life of a server
  An operator registers a server, provisions it, removes the image and deletes the
  host. Tags are numbers of statements.

  Background:
    Given a lab with 1 server

  @B-40 @B-43 @B-44 @B-48 @B-52 @B-56 @B-58 @B-61 @B-62 @B-65 @B-68 @B-70 @B-71 @B-250 @B-281
  Scenario: A server is registered, provisioned, deprovisioned and deleted
    When the operator registers the server
    Then the host becomes "available"
    And it passed through "registering, inspecting, preparing, available"
    And the inspection found the server's hardware
    And the events include "Registered, BMCAccessValidated, InspectionStarted, InspectionComplete"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the server runs from its first disk
    And the server's virtual CD is empty
    And the events include "ProvisioningStarted, ProvisioningComplete"
    When the operator removes the image
    Then the host becomes "available"
    And the server's disks have no partition table
    When the operator sets the image
    Then the host becomes "provisioned"
    When the operator deletes the host
    Then the host is deleted
    And it passed through "deprovisioning, powering off before delete, deleting"
    And the server is off
    And the server's disks have no partition table

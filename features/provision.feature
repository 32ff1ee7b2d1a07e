Feature: The life of a server
  An operator registers a server, gives it an image, takes the image away again
  and hands the server back. The numbers are those of the reference statements.

  Background:
    Given a lab with 1 server

  @B-40 @B-43 @B-44 @B-48 @B-52 @B-56 @B-58 @B-61 @B-62 @B-65 @B-68 @B-70 @B-71 @B-250 @B-281
  Scenario: From a Secret and a BareMetalHost to a running image, and back
    When the operator registers the server
    Then the host becomes "available"
    And it passed through "registering, inspecting, preparing, available"
    And the inspection found what the server is made of
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the server runs what its first disk holds
    And the server's virtual CD is empty
    And the events tell of "Registered, BMCAccessValidated, InspectionStarted, InspectionComplete, ProvisioningStarted, ProvisioningComplete"
    When the operator takes the image away
    Then the host becomes "available"
    And the server's disks hold no partition table
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    When the operator deletes the host
    Then the host is gone
    And it passed through "deprovisioning, powering off before delete, deleting"
    And the server is off
    And the server's disks hold no partition table

Feature: The life of a server
  An operator registers a server, gives it an image, takes the image away again
  and hands the server back. The numbers are those of the reference statements.

  Background:
    Given a lab with 1 server

  @B-40 @B-43 @B-44 @B-48 @B-52 @B-56 @B-58 @B-61 @B-62 @B-65 @B-68 @B-70 @B-71 @B-250
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

  @B-120 @B-121 @B-122 @B-123
  Scenario: Power follows the specification, and drift is corrected
    Given the operator has provisioned the server
    When the operator sets online to false
    Then the server is off
    And the events tell of "PowerOff"
    When the operator sets online to true
    Then the server runs what its first disk holds
    When somebody switches the server off by its BMC
    And a minute passes
    Then the server runs what its first disk holds

  @B-45 @B-112 @B-114
  Scenario: A wrong password is told, and mended
    When the operator registers the server with a wrong password
    Then the host reports "registration error"
    And the host stays "registering"
    And the message of the error holds no password
    When the operator corrects the password
    Then the host becomes "available"
    And the host reports no error

  @B-111
  Scenario: A secret that comes late
    When the operator registers the server without its secret
    Then the host reports "registration error"
    When the operator creates the secret
    Then the host becomes "available"
    And the host reports no error

  @B-59 @B-13 @B-66
  Scenario: A wrong checksum never ends in a provisioned server
    Given the operator has registered the server
    When the operator asks for the lab's image with a wrong checksum
    Then an event tells of "ProvisioningError" and names the checksum
    And the server's first disk does not boot
    When the operator corrects the checksum
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the host reports no error

  Scenario: The controller is killed while the image is written
    Given the operator has registered the server
    And the image server stops in the middle of the image
    When the operator asks for the lab's image
    And the image is being written
    And the controller is killed
    And another controller starts
    And the image server goes on
    Then the host becomes "provisioned"
    And the image was downloaded once
    And the server's first disk begins with the image
    And the server booted its agent once for it

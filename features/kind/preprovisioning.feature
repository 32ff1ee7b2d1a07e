Feature: PreprovisioningImage
  Where the controllers are told to, they have an image built for a host before
  its agent is booted, and say where it is or why there is none.

  Background:
    Given a lab with 1 server whose controllers build pre-provisioning images

  @B-240 @B-03 @B-04
  Scenario: A host waits for its image, and takes it along
    When the operator registers the server
    Then the host's pre-provisioning image is ready
    And the host becomes "available"
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    When the operator deletes the host
    Then the host is gone
    And the pre-provisioning image is gone

  @B-240 @B-101 @B-47 @fault
  Scenario: An image that cannot be built is told at the host
    When the operator registers the server with network data for its agent
    Then the pre-provisioning image says "Cannot generate image: the agent's image takes no network data: clear preprovisioningNetworkDataName, and have DHCP configure it" because of "ImageBuildInvalid"
    And it has the label "rack" of its host
    And the host reports "registration error"
    When the operator needs no network data for its agent
    Then the host becomes "available"
    And the host reports no error

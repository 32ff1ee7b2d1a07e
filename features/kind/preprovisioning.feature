Feature: PreprovisioningImage
  When the controllers are configured for it, an image is built for each host
  before its agent boots.

  Background:
    Given a lab with 1 server whose controllers build pre-provisioning images

  @B-240 @B-03 @B-04
  Scenario: A host waits for its PreprovisioningImage, which is deleted with it
    When the operator registers the server
    Then the host's PreprovisioningImage is ready
    And the host becomes "available"
    When the operator sets the image
    Then the host becomes "provisioned"
    When the operator deletes the host
    Then the host is deleted
    And the PreprovisioningImage is deleted

  @B-02
  Scenario: The objects of a host have its name
    When the operator registers the server
    And the host becomes "available"
    And the operator runs kubectl get ppimg,hfs,hostfirmwarecomponents,hd SERVER -o name
    Then kubectl prints preprovisioningimage.metal3.io/SERVER
    And kubectl prints hostfirmwaresettings.metal3.io/SERVER
    And kubectl prints hostfirmwarecomponents.metal3.io/SERVER
    And kubectl prints hardwaredata.metal3.io/SERVER

  @B-240 @B-101 @B-47 @fault
  Scenario: An image that cannot be built is reported at the host
    When the operator registers the server with network data for the agent
    Then the PreprovisioningImage has the error "Cannot generate image: the agent's image does not support network data: clear preprovisioningNetworkDataName, and configure the agent's network by DHCP" with reason "ImageBuildInvalid"
    And it has the label "rack" of its host
    And the host reports "registration error"
    When the operator removes the network data for the agent
    Then the host becomes "available"
    And the host reports no error

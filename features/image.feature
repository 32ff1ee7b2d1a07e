Feature: Images and configuration
  Config drives, live ISOs and custom deployment methods.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-115 @B-155
  Scenario: The config drive holds user data and metadata
    When the operator sets user data "#cloud-config" and the name "web-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    And the server's first disk ends with a config drive that holds "#cloud-config" and "web-0"

  @B-155
  Scenario: Without Secrets the config drive names the host
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    And the server's first disk ends with a config drive that names the host

  @B-115 @B-155
  Scenario: The config drive holds data from Secrets of another namespace
    When the operator sets user data "#cloud-config" and the name "web-0" from Secrets of another namespace
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's first disk ends with a config drive that holds "#cloud-config" and "web-0"
    And the host reports no error

  @B-155 @B-14
  Scenario: Provisioning waits for a Secret with user data
    When the operator refers to user data that does not exist
    And the operator sets the image
    Then the host becomes "provisioning"
    When the operator sets user data "#cloud-config" and the name "web-0"
    Then the host becomes "provisioned"
    And the host reports no error

  @B-153
  Scenario: A live ISO is booted and not written to a disk
    When the operator sets a live ISO
    Then the host becomes "provisioned"
    And the server runs from its virtual CD
    And the server's disks have no partition table
    And the server's boot override is continuous
    When the operator removes the image
    Then the host becomes "available"
    And the server's virtual CD is empty
    And the server has no boot override

  @B-156 @B-59
  Scenario: An unknown deployment method is reported
    When the operator sets the deployment method "install_nothing"
    Then the host reports "provisioning error"
    When the operator sets the deployment method "erase_devices_metadata"
    Then the host becomes "provisioned"
    And the host reports no error

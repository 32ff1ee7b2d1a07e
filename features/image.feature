Feature: What a server is given to run
  Beside the image, an operator hands a server its configuration; or has it run
  something that is written nowhere.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-115 @B-155
  Scenario: A server finds its configuration on its disk
    When the operator gives the server user data "#cloud-config" and the name "web-0"
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server runs what its first disk holds
    And the server's first disk ends with a config drive that holds "#cloud-config" and "web-0"

  @B-155 @B-14
  Scenario: Configuration that comes late
    When the operator names user data that is not there
    And the operator asks for the lab's image
    Then the host becomes "provisioning"
    When the operator gives the server user data "#cloud-config" and the name "web-0"
    Then the host becomes "provisioned"
    And the host reports no error

  @B-153
  Scenario: A live ISO is booted, and written nowhere
    When the operator asks for a live ISO
    Then the host becomes "provisioned"
    And the server runs what its virtual CD holds
    And the server's disks hold no partition table
    When the operator takes the image away
    Then the host becomes "available"
    And the server's virtual CD is empty

  @B-156 @B-59
  Scenario: A method of deployment that the agent does not know
    When the operator asks for the deployment method "install_nothing"
    Then the host reports "provisioning error"
    When the operator asks for the deployment method "erase_devices_metadata"
    Then the host becomes "provisioned"
    And the host reports no error

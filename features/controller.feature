Feature: A controller that dies
  Another one finds everything that it needs in the objects, in the BMC and at
  the agent. It goes on: nothing is lost, and nothing is done twice.

  Background:
    Given a lab with 1 server

  @B-10 @B-11 @killed
  Scenario Outline: On the way to an image, at "<state>"
    Given the controller will be killed when the host becomes "<state>"
    When the operator registers the server
    And the operator asks for the lab's image
    And another controller starts
    Then the host becomes "provisioned"
    And the host reports no error
    And the server runs what its first disk holds
    And the server's first disk begins with the image
    And the image was downloaded once
    And the server came up 3 times in all

    Examples:
      | state         |
      | registering   |
      | inspecting    |
      | match profile |
      | preparing     |
      | provisioning  |
      | provisioned   |

  @B-10 @B-11 @killed
  Scenario: While the image is written
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

  @B-10 @B-11 @killed
  Scenario Outline: On the way out, at "<state>"
    Given the operator has provisioned the server
    And the server runs what its first disk holds
    And the controller will be killed when the host becomes "<state>"
    When the operator deletes the host
    And another controller starts
    Then the host is gone
    And the server is off
    And the server's disks hold no partition table
    And the server's virtual CD is empty
    And the server came up 5 times in all

    Examples:
      | state                      |
      | deprovisioning             |
      | powering off before delete |

  @B-10 @B-46 @killed
  Scenario: In a settled state
    Given the operator has provisioned the server
    And the server runs what its first disk holds
    When the operator counts how often the server is reset
    And the controller is killed
    And another controller starts
    And ten minutes pass
    Then the host stays "provisioned"
    And the server was not reset

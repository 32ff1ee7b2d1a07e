Feature: The controller is killed
  The next controller finds all that it needs in the objects, the BMC and the
  agent. Nothing is lost, and nothing is done twice.

  Background:
    Given a lab with 1 server

  @B-10 @B-11 @killed
  Scenario Outline: On the way to provisioned, in the state "<state>"
    Given the controller will be killed when the host becomes "<state>"
    When the operator registers the server
    And the operator sets the image
    And another controller starts
    Then the host becomes "provisioned"
    And the host reports no error
    And the server runs from its first disk
    And the server's first disk begins with the image
    And the image was downloaded once
    And the server has booted 3 times in total

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
    And the image server stalls in the middle of the image
    When the operator sets the image
    And the image is being written
    And the controller is killed
    And another controller starts
    And the image server continues
    Then the host becomes "provisioned"
    And the image was downloaded once
    And the server's first disk begins with the image
    And the server booted the agent once for the image

  @B-10 @B-11 @killed
  Scenario Outline: On the way to deletion, in the state "<state>"
    Given the operator has provisioned the server
    And the server runs from its first disk
    And the controller will be killed when the host becomes "<state>"
    When the operator deletes the host
    And another controller starts
    Then the host is deleted
    And the server is off
    And the server's disks have no partition table
    And the server's virtual CD is empty
    And the server has booted 5 times in total

    Examples:
      | state                      |
      | deprovisioning             |
      | powering off before delete |

  @B-10 @B-46 @killed
  Scenario: While nothing is to do
    Given the operator has provisioned the server
    And the server runs from its first disk
    When resets of the server are counted
    And the controller is killed
    And another controller starts
    And ten minutes pass
    Then the host stays "provisioned"
    And the server was not reset

Feature: Network boot
  A server whose BMC address has no virtual media boots its agent by PXE or HTTP
  for each operation, and its disk otherwise.

  Background:
    Given a lab with 1 server

  @B-40 @B-43 @B-48 @B-58 @B-65 @B-70 @B-131 @B-250 @C7
  Scenario Outline: A server is registered, provisioned, deprovisioned and deleted
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    And the inspection found the server's hardware
    And the inspection found that the server booted from <NIC>
    And the server has nothing to boot
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the server runs from its first disk
    And the server has booted "agent from <source>, agent from <source>, disk from Hdd Disk.0"
    And the BMC has received no request for virtual media
    When the operator removes the image
    Then the host becomes "available"
    And the server's disks have no partition table
    When the operator deletes the host
    Then the host is deleted
    And the server is off

    Examples:
      | scheme           | source     | NIC    |
      | ipmi             | Pxe 1      | "eno1" |
      | redfish          | Pxe 1      | "eno1" |
      | redfish-uefihttp | UefiHttp 1 | no NIC |

  @B-125 @B-131
  Scenario Outline: With disablePowerOff a server at <scheme>:// is restarted, never switched off
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    When the operator edits the host:
      """
      spec: {disablePowerOff: true}
      """
    And boots of the server are counted
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    And the server has booted 2 times since, and was never off
    When the operator removes the image
    Then the host becomes "available"
    And the server has booted 3 times since, and was never off
    And the server's disks have no partition table
    When the operator deletes the host
    Then the host is deleted
    And the server stays on

    Examples:
      | scheme  |
      | ipmi    |
      | redfish |

  @B-131 @B-133 @sample-3
  Scenario Outline: The agent boots by PXE at <scheme>://
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    And the inspection found the server's hardware
    And the server has booted "agent from Pxe 1"
    And the BMC has received no request for virtual media

    Examples:
      | scheme        |
      | libvirt       |
      | ilo5-redfish  |
      | idrac-redfish |
      | ibmc          |
      | idrac         |
      | ilo4          |
      | ilo5          |
      | irmc          |

  @B-131
  Scenario: A server without bootMACAddress is recognised by its UUID
    When the operator registers the server by "ipmi" without its MAC address
    Then the host becomes "available"
    And the server has booted "agent from Pxe 1"

  @B-47 @B-141
  Scenario: A second host with the same MAC address is refused
    Given a second host has the MAC address of the server
    When the operator registers the server by "ipmi"
    Then the host reports "registration error"
    And the host stays "registering"

  @B-48 @B-58
  Scenario: The controller is killed while a server boots by the network
    When the operator registers the server by "ipmi"
    And the host becomes "inspecting"
    And the controller is killed
    And another controller starts
    Then the host becomes "available"
    When the operator sets the image
    And the host becomes "provisioning"
    And the controller is killed
    And another controller starts
    Then the host becomes "provisioned"
    And the server runs from its first disk

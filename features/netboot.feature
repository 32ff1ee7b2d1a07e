Feature: Servers that boot their agent by the network
  Not every BMC has virtual media. A server behind one that has none boots its
  agent by PXE or over HTTP, once for each piece of work, and its disk otherwise.

  Background:
    Given a lab with 1 server

  @B-40 @B-43 @B-48 @B-58 @B-65 @B-70 @B-131 @B-250
  Scenario Outline: From a Secret and a BareMetalHost to a running image, and back
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    And the inspection found what the server is made of
    And the inspection found that the server was loaded through <NIC>
    And the server has nothing to boot
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the server runs what its first disk holds
    And the server has started "agent from <source>, agent from <source>, disk from Hdd Disk.0"
    And nobody has asked the server's BMC for virtual media
    When the operator takes the image away
    Then the host becomes "available"
    And the server's disks hold no partition table
    When the operator deletes the host
    Then the host is gone
    And the server is off

    Examples:
      | scheme           | source     | NIC    |
      | ipmi             | Pxe 1      | "eno1" |
      | redfish          | Pxe 1      | "eno1" |
      | redfish-uefihttp | UefiHttp 1 | no NIC |

  @B-125 @B-131
  Scenario Outline: A server at <scheme>:// that shall never be off is restarted
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    When the operator edits the host:
      """
      spec: {disablePowerOff: true}
      """
    And the operator counts how often the server starts
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server runs what its first disk holds
    And the server has started 2 times since, and was never off
    When the operator takes the image away
    Then the host becomes "available"
    And the server has started 3 times since, and was never off
    And the server's disks hold no partition table
    When the operator deletes the host
    Then the host is gone
    And the server is on

    Examples:
      | scheme  |
      | ipmi    |
      | redfish |

  @B-131 @B-133
  Scenario Outline: Every other kind of address that boots by the network
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    And the inspection found what the server is made of
    And the server has started "agent from Pxe 1"
    And nobody has asked the server's BMC for virtual media

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
  Scenario: A server whose MAC address nobody has told is known by its UUID
    When the operator registers the server by "ipmi" without its MAC address
    Then the host becomes "available"
    And the server has started "agent from Pxe 1"

  @B-47 @B-141
  Scenario: Two hosts cannot have one MAC address
    Given a second host has the MAC address of the server
    When the operator registers the server by "ipmi"
    Then the host reports "registration error"
    And the host stays "registering"

  @B-48 @B-58
  Scenario: The controller is killed while servers boot by the network
    When the operator registers the server by "ipmi"
    And the host becomes "inspecting"
    And the controller is killed
    And another controller starts
    Then the host becomes "available"
    When the operator asks for the lab's image
    And the host becomes "provisioning"
    And the controller is killed
    And another controller starts
    Then the host becomes "provisioned"
    And the server runs what its first disk holds

Feature: Kinds of BMC addresses
  Whatever kind of address a host has, its server is registered, inspected,
  provisioned, made free again and let go. The emulated BMCs speak Redfish over
  TLS alone, and lead those there who come without, as many do: rows with +http
  are of BMCs that have no TLS, and in dialects.feature.

  Background:
    Given a lab with 1 server

  @B-131 @B-132 @B-133 @sample-3
  Scenario Outline: By virtual media: <address>
    When the operator registers the server at the address "<address>"
    Then the host becomes "available"
    And the inspection found what the server is made of
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server runs what its first disk holds
    When the operator deletes the host
    Then the host is gone
    And the server's disks hold no partition table
    And the server is off

    Examples:
      | address                                       |
      | redfish-virtualmedia://HOST:PORT/SYSTEM       |
      | redfish-virtualmedia+https://HOST:PORT/SYSTEM |
      | redfish-virtualmedia://HOST:PORT              |
      | redfish-virtualmedia://HOST:PORT/redfish/v1   |
      | ilo5-virtualmedia://HOST:PORT/SYSTEM          |
      | ilo5-virtualmedia+https://HOST:PORT           |
      | idrac-virtualmedia://HOST:PORT/SYSTEM         |
      | idrac-virtualmedia+https://HOST:PORT          |
      | ilo4-virtualmedia://HOST:PORT                 |
      | ilo4-virtualmedia+https://HOST:PORT           |

  @B-131 @B-132 @B-133 @sample-5
  Scenario Outline: By network: <address>
    When the operator registers the server at the address "<address>"
    Then the host becomes "available"
    And the inspection found what the server is made of
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server runs what its first disk holds
    When the operator deletes the host
    Then the host is gone
    And the server's disks hold no partition table
    And the server is off

    Examples:
      | address                               |
      | ipmi://IPMI                           |
      | IPMI                                  |
      | redfish://HOST:PORT/SYSTEM            |
      | redfish+https://HOST:PORT             |
      | ilo5-redfish://HOST:PORT/SYSTEM       |
      | ilo5-redfish+https://HOST:PORT/SYSTEM |
      | idrac-redfish://HOST:PORT/SYSTEM      |
      | idrac-redfish+https://HOST:PORT       |
      | redfish-uefihttp://HOST:PORT/SYSTEM   |
      | redfish-uefihttp+https://HOST:PORT    |
      | ibmc://HOST:PORT/SYSTEM               |
      | ibmc+https://HOST:PORT                |
      | idrac://HOST:PORT                     |
      | idrac+https://HOST:PORT               |
      | ilo4://HOST:PORT                      |
      | ilo4+https://HOST:PORT                |
      | ilo5://HOST:PORT                      |
      | ilo5+https://HOST:PORT                |
      | irmc://HOST:PORT                      |

  @B-131 @B-190
  Scenario: By network: libvirt, whose servers have a disk of another name
    When the operator registers the server at the address "libvirt://IPMI"
    Then the host becomes "available"
    And the host's status has "hardwareProfile" as "libvirt"
    When the operator edits the host:
      """
      spec: {rootDeviceHints: {deviceName: /dev/sda}}
      """
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server runs what its first disk holds
    When the operator deletes the host
    Then the host is gone
    And the server is off

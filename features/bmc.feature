Feature: BMC addresses
  With every form of spec.bmc.address a server is registered, inspected,
  provisioned and deleted. The emulated BMCs serve HTTPS and redirect HTTP to it;
  rows with +http, for BMCs without TLS, are in dialects.feature.

  Background:
    Given a lab with 1 server

  @B-131 @B-132 @B-133 @C7 @sample-3
  Scenario Outline: Virtual media: <address>
    When the operator registers the server at the address "<address>"
    Then the host becomes "available"
    And the inspection found the server's hardware
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    When the operator deletes the host
    Then the host is deleted
    And the server's disks have no partition table
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
  Scenario Outline: Network boot: <address>
    When the operator registers the server at the address "<address>"
    Then the host becomes "available"
    And the inspection found the server's hardware
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    When the operator deletes the host
    Then the host is deleted
    And the server's disks have no partition table
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

  @B-131
  Scenario: An operator's IPMI session, whose boot overrides are for one boot only
    When the operator registers the server at the address "ipmi://IPMI?privilegelevel=OPERATOR"
    Then the host becomes "available"
    And the inspection found the server's hardware
    When the operator sets the image
    Then the host becomes "provisioned"
    And it passed through "available, provisioning, provisioned"
    And it was never "deprovisioning"
    And the host reports no error
    And the server runs from its first disk
    When the operator annotates the host with "reboot.metal3.io"
    Then the annotation "reboot.metal3.io" is removed
    And the server runs from its first disk
    When the operator deletes the host
    Then the host is deleted
    And the server's disks have no partition table
    And the server is off

  # B-112: nothing is tried again before an edit
  @B-131 @B-45
  Scenario Outline: A privilege level that is too low for a host: <level>
    When the operator registers the server at the address "ipmi://IPMI?privilegelevel=<level>"
    Then the host reports "registration error"
    And the host's error message contains "privilegelevel=<level> of the BMC address"
    And the host's error message contains "use privilegelevel=OPERATOR or ADMINISTRATOR"
    When 100 hours pass
    Then its error count is 1
    And the host stays "registering"

    Examples:
      | level    |
      | USER     |
      | CALLBACK |

  @B-131 @B-190
  Scenario: Network boot: libvirt, of a server that is none of libvirt's
    When the operator registers the server at the address "libvirt://IPMI"
    Then the host becomes "available"
    And the host's status field "hardwareProfile" is "unknown"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    When the operator deletes the host
    Then the host is deleted
    And the server is off

Feature: match profile
  The inspected hardware is compared with the hardware profiles. A profile selects
  the disk for the image when there are no root device hints.

  Background:
    Given a lab with 1 server

  @B-24
  Scenario: Profiles are matched between inspection and preparation
    When the operator registers the server
    Then the host becomes "available"
    And it passed through "inspecting, match profile, preparing, available"

  @B-190
  Scenario Outline: The profile "<profile>" selects the first disk
    When the operator registers the server with:
      """
      spec: {hardwareProfile: <profile>}
      """
    And the host becomes "available"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the host's status field "hardwareProfile" is "<profile>"
    And the server's first disk begins with the image

    Examples:
      | profile |
      | unknown |
      | dell    |
      | empty   |

  @B-162 @B-190 @fault
  Scenario Outline: The profile "<profile>" selects a disk that the server does not have
    When the operator registers the server with:
      """
      spec: {hardwareProfile: <profile>}
      """
    And the host becomes "available"
    Then the host's status field "hardwareProfile" is "unknown"
    When the operator sets the image
    Then the host reports "provisioning error"
    And the host has reported the error message "no disk matches the root device hints"
    And the server's disks have no partition table
    When the operator edits the host:
      """
      spec: {<repair>}
      """
    Then the host becomes "provisioned"
    And the server's <disk> disk begins with the image

    Examples:
      | profile   | repair                                  | disk   |
      | libvirt   | rootDeviceHints: {deviceName: /dev/sdb} | second |
      | dell-raid | hardwareProfile: dell                   | first  |
      | openstack | hardwareProfile: default                | first  |

  @B-55 @B-190
  Scenario: Another profile prepares an available host again
    Given the operator has registered the server
    When the operator edits the host:
      """
      spec: {hardwareProfile: dell}
      """
    Then the host's status field "hardwareProfile" is "dell"
    And it passed through "available, preparing, available"
    And the host's status field "provisioning.rootDeviceHints.hctl" is "0:0:0:0"

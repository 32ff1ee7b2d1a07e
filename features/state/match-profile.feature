Feature: match profile
  What inspection found is compared with the hardware profiles. A profile says
  which disk an image is written to, where hints do not.

  Background:
    Given a lab with 1 server

  @B-24
  Scenario: Between inspection and preparation
    When the operator registers the server
    Then the host becomes "available"
    And it passed through "inspecting, match profile, preparing, available"

  @B-190
  Scenario Outline: The profile "<profile>" leads to a disk
    When the operator registers the server with:
      """
      spec: {hardwareProfile: <profile>}
      """
    And the host becomes "available"
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the host's status has "hardwareProfile" as "<profile>"
    And the server's first disk begins with the image

    Examples:
      | profile |
      | unknown |
      | dell    |
      | empty   |

  @B-162 @B-190 @fault
  Scenario Outline: The profile "<profile>" names a disk that the server does not have
    When the operator registers the server with:
      """
      spec: {hardwareProfile: <profile>}
      """
    And the host becomes "available"
    And the operator asks for the lab's image
    Then the host reports "provisioning error"
    And the host's error says "no disk matches the root device hints"
    And the server's disks hold no partition table
    When the operator edits the host:
      """
      spec: {rootDeviceHints: {deviceName: /dev/sdb}}
      """
    Then the host becomes "provisioned"
    And the server's second disk begins with the image

    Examples:
      | profile   |
      | libvirt   |
      | dell-raid |
      | openstack |

  @B-190
  Scenario: A profile stays
    Given the operator has registered the server
    When the operator edits the host:
      """
      spec: {hardwareProfile: libvirt}
      """
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the host's status has "hardwareProfile" as "unknown"

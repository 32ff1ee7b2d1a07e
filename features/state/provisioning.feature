Feature: provisioning
  The server boots the agent, which erases the disks and writes the image. Failures
  are reported, undone and retried.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-27 @B-58 @B-61 @B-83 @B-153
  Scenario Outline: A <format> image is written
    When the operator sets the image as <format>
    Then the host becomes "provisioning"
    And the conditions "Manageable, Progressing" are true
    And the host becomes "provisioned"
    And the server's first disk begins with the image
    And the server runs from its first disk
    And the server booted the agent once for the image
    And the events include "ProvisioningStarted, ProvisioningComplete"

    Examples:
      | format |
      | raw    |
      | qcow2  |

  @B-61
  Scenario: The console shows what the agent does
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server's console has shown, in this order:
      """
      agent started
      registered with the controller
      job started" job=…-inspect kind=inventory
      job done" job=…-inspect
      agent started
      registered with the controller
      job started" job=…-clean… kind=clean
      job done" job=…-clean…
      job started" job=…-write… kind=write
      job done" job=…-write…
      """
    And the server's console shows no token

  @B-151 @B-152
  Scenario Outline: A <kind> checksum whose type is <named>
    When the operator sets the image with its <kind> checksum, whose type is <named>
    Then the host becomes "provisioned"
    And the server's first disk begins with the image

    Examples:
      | kind   | named     |
      | md5    | named     |
      | md5    | not named |
      | sha256 | named     |
      | sha512 | named     |

  @B-160
  Scenario Outline: The image is written to the disk of the root device hint: <hint>
    When the operator sets a root device hint with the <hint> of the second disk
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's second disk begins with the image

    Examples:
      | hint          |
      | serial number |
      | WWN           |
      | device name   |

  @B-162 @B-59 @fault
  Scenario: No disk matches the root device hints
    When the operator edits the host:
      """
      spec: {rootDeviceHints: {minSizeGigabytes: 100000}}
      """
    And the operator sets the image
    Then the host reports "provisioning error"
    And the host has reported the error message "no disk matches the root device hints"
    And the server's disks have no partition table
    When the operator edits the host:
      """
      spec: {rootDeviceHints: {minSizeGigabytes: 100}}
      """
    Then the host becomes "provisioned"
    And the host reports no error

  @B-59 @fault
  Scenario: The image is larger than the disk
    When the operator sets an image that is larger than any disk
    Then the host reports "provisioning error"
    And the host has reported the error message "only 480103981056"
    And the server's first disk does not boot
    When the operator sets the image
    Then the host becomes "provisioned"

  @B-59 @B-13 @fault
  Scenario: An image that does not exist is reported
    When the operator sets an image that does not exist
    Then the host reports "provisioning error"
    And the host has reported the error message "404"
    And the host has reported the error message "Image provisioning failed (url: "
    And it passed through "provisioning, deprovisioning, available, provisioning"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the host reports no error

  @B-59 @B-13 @B-66 @fault
  Scenario: A wrong checksum never ends in a provisioned server
    When the operator sets the image with a wrong checksum
    Then an event "ProvisioningError" names the checksum
    And the server's first disk does not boot
    When the operator corrects the checksum
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the host reports no error

  @B-59 @fault
  Scenario: The agent does not report
    Given the server's agent will not report
    When the operator sets the image
    Then the host reports "provisioning error"
    And the host has reported the error message "the agent did not report"
    When the server's agent will report again
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the host reports no error

  @B-59 @fault
  Scenario Outline: The BMC <trouble>
    Given the BMC <trouble>
    When the operator sets the image
    Then the host reports "provisioning error"
    When the BMC works again
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the host reports no error

    Examples:
      | trouble                     |
      | refuses virtual media       |
      | refuses to change the power |

  @B-14 @fault
  Scenario Outline: The BMC <trouble> while the image is written
    Given the image server stalls in the middle of the image
    When the operator sets the image
    And the image is being written
    And the BMC <trouble>
    And the image server continues
    Then the host becomes "provisioned"
    And the image was downloaded once
    And the server's first disk begins with the image
    And the server runs from its first disk
    And the server booted the agent once for the image

    Examples:
      | trouble                          |
      | is offline for two minutes       |
      | restarts                         |
      | accepts a reset and does nothing |

  @B-58
  Scenario: The image is removed while it is written
    Given the image server stalls in the middle of the image
    When the operator sets the image
    And the image is being written
    And the operator removes the image
    And the image server continues
    Then the host becomes "available"
    And it passed through "provisioning, deprovisioning, available"
    And the server's disks have no partition table

  @B-58
  Scenario: The image is changed while it is written
    Given the image server stalls in the middle of the image
    When the operator sets the image
    And the image is being written
    And the operator sets the image as qcow2
    And the image server continues
    Then the host becomes "provisioned"
    And it passed through "provisioning, deprovisioning, available, provisioning, provisioned"
    And the server's first disk begins with the image

  @B-50 @B-58
  Scenario: A forced reboot restarts the deployment
    Given the image server stalls in the middle of the image
    When the operator sets the image
    And the image is being written
    And the operator annotates the host with "reboot.metal3.io" set to '{"force":true}'
    And the image server continues
    Then the host becomes "provisioned"
    And the annotation "reboot.metal3.io" is removed
    And the server's first disk begins with the image

  @B-75 @B-140
  Scenario Outline: A server is provisioned in the boot mode <mode>
    When the operator edits the host:
      """
      spec: {bootMode: <mode>}
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the host's status field "provisioning.bootMode" is "<mode>"
    And the server runs from its first disk

    Examples:
      | mode   |
      | UEFI   |
      | legacy |

  @B-68 @B-69
  Scenario: A host is deleted while its image is written
    Given the image server stalls in the middle of the image
    When the operator sets the image
    And the image is being written
    And the operator deletes the host
    And the image server continues
    Then the host is deleted
    And it passed through "provisioning, deprovisioning, powering off before delete, deleting"
    And the server's disks have no partition table
    And the server is off

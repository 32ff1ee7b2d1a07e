Feature: provisioning
  The server boots the agent, which erases what its disks hold and writes the
  image. What goes wrong is told, undone, and tried again.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-27 @B-58 @B-61 @B-83 @B-153
  Scenario Outline: An image that is <format>
    When the operator asks for the lab's image as <format>
    Then the host becomes "provisioning"
    And the conditions say that "Manageable, Progressing" are true
    And the host becomes "provisioned"
    And the server's first disk begins with the image
    And the server runs what its first disk holds
    And the server booted its agent once for it
    And the events tell of "ProvisioningStarted, ProvisioningComplete"

    Examples:
      | format |
      | raw    |
      | qcow2  |

  @B-61
  Scenario: The console shows what the agent does
    When the operator asks for the lab's image
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
  Scenario Outline: A checksum of the kind <kind>, which is <named>
    When the operator asks for the lab's image with its <kind> checksum, which is <named>
    Then the host becomes "provisioned"
    And the server's first disk begins with the image

    Examples:
      | kind   | named |
      | md5    | named |
      | md5    | not   |
      | sha256 | named |
      | sha512 | named |

  @B-160
  Scenario Outline: The image goes where the operator wants it, named by its <hint>
    When the operator names the second disk by its <hint>
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server's second disk begins with the image

    Examples:
      | hint          |
      | serial number |
      | WWN           |
      | device name   |

  @B-162 @B-59 @fault
  Scenario: No disk is as the operator wants it
    When the operator edits the host:
      """
      spec: {rootDeviceHints: {minSizeGigabytes: 100000}}
      """
    And the operator asks for the lab's image
    Then the host reports "provisioning error"
    And the host's error says "no disk matches the root device hints"
    And the server's disks hold no partition table
    When the operator edits the host:
      """
      spec: {rootDeviceHints: {minSizeGigabytes: 100}}
      """
    Then the host becomes "provisioned"
    And the host reports no error

  @B-59 @fault
  Scenario: A disk that is too small
    When the operator asks for an image that no disk can hold
    Then the host reports "provisioning error"
    And the host's error says "only 480103981056"
    And the server's first disk does not boot
    When the operator asks for the lab's image
    Then the host becomes "provisioned"

  @B-59 @B-13 @fault
  Scenario: An image that is not there
    When the operator asks for an image that is not there
    Then the host reports "provisioning error"
    And the host's error says "404"
    And the host's error says "Image provisioning failed (url: "
    And it passed through "provisioning, deprovisioning, available, provisioning"
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the host reports no error

  @B-59 @B-13 @B-66 @fault
  Scenario: A wrong checksum never ends in a provisioned server
    When the operator asks for the lab's image with a wrong checksum
    Then an event tells of "ProvisioningError" and names the checksum
    And the server's first disk does not boot
    When the operator corrects the checksum
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the host reports no error

  @B-59 @fault
  Scenario: An agent that is silent
    Given the server's agent will be silent
    When the operator asks for the lab's image
    Then the host reports "provisioning error"
    And the host's error says "the agent did not report"
    When the server's agent will speak
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the host reports no error

  @B-59 @fault
  Scenario Outline: A BMC that <trouble>
    Given the BMC <trouble>
    When the operator asks for the lab's image
    Then the host reports "provisioning error"
    When the BMC is as it was
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the host reports no error

    Examples:
      | trouble                      |
      | refuses virtual media        |
      | refuses to switch the server |

  @B-14 @fault
  Scenario Outline: A BMC that <trouble> while the image is written
    Given the image server stops in the middle of the image
    When the operator asks for the lab's image
    And the image is being written
    And the BMC <trouble>
    And the image server goes on
    Then the host becomes "provisioned"
    And the image was downloaded once
    And the server's first disk begins with the image
    And the server runs what its first disk holds
    And the server booted its agent once for it

    Examples:
      | trouble                        |
      | is silent for two minutes      |
      | restarts                       |
      | takes a reset and does nothing |

  @B-58
  Scenario: The image is taken away while it is written
    Given the image server stops in the middle of the image
    When the operator asks for the lab's image
    And the image is being written
    And the operator takes the image away
    And the image server goes on
    Then the host becomes "available"
    And it passed through "provisioning, deprovisioning, available"
    And the server's disks hold no partition table

  @B-58
  Scenario: Another image is asked for while one is written
    Given the image server stops in the middle of the image
    When the operator asks for the lab's image
    And the image is being written
    And the operator asks for the lab's image as qcow2
    And the image server goes on
    Then the host becomes "provisioned"
    And it passed through "provisioning, deprovisioning, available, provisioning, provisioned"
    And the server's first disk begins with the image

  @B-50 @B-58
  Scenario: The deployment begins again when somebody insists
    Given the image server stops in the middle of the image
    When the operator asks for the lab's image
    And the image is being written
    And the operator annotates the host with "reboot.metal3.io" saying '{"force":true}'
    And the image server goes on
    Then the host becomes "provisioned"
    And the annotation "reboot.metal3.io" is gone
    And the server's first disk begins with the image

  @B-75 @B-140
  Scenario Outline: A server that boots in the mode <mode>
    When the operator edits the host:
      """
      spec: {bootMode: <mode>}
      """
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the host's status has "provisioning.bootMode" as "<mode>"
    And the server runs what its first disk holds

    Examples:
      | mode   |
      | UEFI   |
      | legacy |

  @B-68 @B-69
  Scenario: A host is deleted while its image is written
    Given the image server stops in the middle of the image
    When the operator asks for the lab's image
    And the image is being written
    And the operator deletes the host
    And the image server goes on
    Then the host is gone
    And it passed through "provisioning, deprovisioning, powering off before delete, deleting"
    And the server's disks hold no partition table
    And the server is off

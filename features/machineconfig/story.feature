Feature: Machine configuration by an image
  A MachineConfig is rendered per pool, an OS image is built of it, and the pool's nodes get both
  in one patch. The daemon of a node writes no file and no unit: the node boots the image
  (LayeredFileWrites Skip, MCO-564).

  Background:
    Given a lab with machine configuration
    And the operator has registered the server
    And the server is the node of a pool with a machine-config daemon

  @M28 @M40
  Scenario: An image carries a file, a unit and a kernel argument to a node
    When the operator pauses the pool
    And the server's files are watched until it boots
    And the operator creates a MachineConfig with the file "/etc/story.conf" of "hello", the unit "story.service" and the kernel argument "story=1"
    And the operator creates the pool's MachineOSConfig
    Then the pool's image is built
    When the operator resumes the pool
    Then the pool is Updated with an image
    And nothing has written a file of the configuration before the boot
    And every file of the configuration comes from the image
    And the server's file "/etc/story.conf" is "hello"
    And the server's file "/etc/systemd/system/story.service" contains "ExecStart=/bin/true"
    And the server's file "/proc/cmdline" is "story=1"
    When the operator writes "drift" to the server's file "/etc/story.conf"
    Then the node is Degraded: "content mismatch for file"
    When the operator writes "hello" to the server's file "/etc/story.conf"
    Then the node is Done

  Scenario: A node waits for a registry that is down
    When the operator pauses the pool
    And the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    And the operator creates the pool's MachineOSConfig
    Then the pool's image is built
    When the registry is down
    And the operator resumes the pool
    Then the node is Working
    When the registry is up
    Then the pool is Updated with an image
    And the server's file "/etc/a.conf" comes from its image

  @M15 @M11
  Scenario: A configuration that no update can apply, and its repair
    When the operator creates a MachineConfig "10-disk" with a disk
    Then the node is Unreconcilable: "disks section contains changes"
    When the operator deletes the MachineConfig "10-disk"
    Then the pool is Updated without an image

  @M37
  Scenario: Without its MachineOSConfig a pool goes back to the base image, and has its files
    When the operator pauses the pool
    And the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    And the operator creates the pool's MachineOSConfig
    Then the pool's image is built
    When the operator resumes the pool
    Then the pool is Updated with an image
    And the server's file "/etc/a.conf" comes from its image
    When the operator deletes the pool's MachineOSConfig
    Then the pool is Updated without an image
    And the server's file "/etc/a.conf" is "1"

  Scenario: A node that loses its power in the middle of an update ends with the image
    When the operator pauses the pool
    And the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    And the operator creates the pool's MachineOSConfig
    Then the pool's image is built
    When the operator resumes the pool
    Then the node is Working
    When somebody powers the server off at its BMC
    And the server is on
    Then the pool is Updated with an image
    And the server's file "/etc/a.conf" comes from its image

  @M32
  Scenario: With LayeredFileWrites Write the daemon writes a file, and the node keeps its image
    Given the operator selects LayeredFileWrites Write
    When the operator pauses the pool
    And the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    And the operator creates the pool's MachineOSConfig
    Then the pool's image is built
    When the operator resumes the pool
    Then the pool is Updated with an image
    When the operator creates a MachineConfig "10-b" with the file "/etc/b.conf" of "2"
    Then the pool is Updated with an image
    And the node has the image of before
    And the server's file "/etc/b.conf" is "2"
    And the server's file "/etc/b.conf" is written by the daemon

  @M7
  Scenario: A paused pool is rendered, and its node stays as it is
    When the operator pauses the pool
    And the operator creates a MachineConfig "10-a" with the file "/etc/a.conf" of "1"
    Then the server's pool is not Updating: "Pool is paused; will not update to"
    And the node keeps its configuration
    When the operator resumes the pool
    Then the pool is Updated without an image
    And the server's file "/etc/a.conf" is "1"

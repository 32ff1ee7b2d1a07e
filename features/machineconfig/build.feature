Feature: OS images of machine configuration
  An operator makes a pool layered with a MachineOSConfig. Each configuration of the pool is then
  built as an image of the operating system and pushed to a registry. The statements hold under
  LayeredFileWrites Skip, unless a scenario selects Write.

  Background:
    Given a lab with machine configuration

  @M4 @M25 @M28
  Scenario: A configuration is built as an image
    Given the operator applies the machine config "50-motd" with the file "/etc/motd": "Metalab"
    When the operator layers the pool with:
      """
      FROM configs AS final
      LABEL team=storage
      """
    Then the pool has an image of its configuration
    And the image has the label "team": "storage"
    And the image has the file "/etc/motd": "Metalab"
    And the log of the build contains "STEP LABEL team=storage"
    And the Job of the build is removed

  @M27 @M35 @fault
  Scenario: A build fails while the registry is down
    Given the registry is down
    When the operator layers the pool with:
      """
      FROM configs AS final
      """
    Then the build is Failed: "registry"
    And the pool is ImageBuildDegraded: "Failed to build OS image for pool worker"
    When the registry is up
    And the operator requests a rebuild
    Then the pool has an image of its configuration
    And the request for a rebuild is removed

  @M27 @fault
  Scenario: A registry that is full has space again
    Given the registry is full
    When the operator layers the pool with:
      """
      FROM configs AS final
      LABEL team=storage
      """
    Then the log of the build contains "no space left on device"
    And the build is Failed: "no space left on device"
    When the registry is up
    And the operator requests a rebuild
    Then the pool has an image of its configuration

  @M36 @fault
  Scenario Outline: A Containerfile is refused: <instruction>
    When the operator layers the pool with:
      """
      FROM configs AS final
      <instruction>
      """
    Then the build is Failed: "<reason>"
    And the pool is ImageBuildDegraded: "<reason>"

    Examples:
      | instruction | reason                                 |
      | RUNN x      | unknown instruction: RUNN              |
      | RUN true    | the lab's builder starts no program    |
      | COPY a /b   | the build's context has no such file   |

  @M26 @fault
  Scenario: A push secret is missing at first
    When the operator layers the pool with the push secret "team"
    Then the pool is ImageBuildDegraded: "there is no Secret team"
    When the operator creates the push secret "team"
    Then the pool has an image of its configuration

  @M31 @M34
  Scenario: A configuration is reverted
    Given the operator layers the pool with:
      """
      FROM configs AS final
      """
    And the pool has an image of its configuration
    When the operator applies the machine config "50-motd" with the file "/etc/motd": "Metalab"
    Then the pool has another image of its configuration
    When the operator deletes the machine config "50-motd"
    Then the pool has its first image again

  @M35
  Scenario: The same configuration gives the same image
    Given the operator layers the pool with:
      """
      FROM configs AS final
      """
    And the pool has an image of its configuration
    When the operator requests a rebuild
    Then the request for a rebuild is removed
    And the pool has its first image again

  @M32
  Scenario: With LayeredFileWrites Write a change of files alone keeps the image
    Given the operator selects LayeredFileWrites Write
    And the operator layers the pool with:
      """
      FROM configs AS final
      """
    And the pool has an image of its configuration
    When the operator applies the machine config "50-motd" with the file "/etc/motd": "Metalab"
    Then the pool has its first image again

  @M33
  Scenario: With LayeredFileWrites Write a kernel argument needs another image
    Given the operator selects LayeredFileWrites Write
    And the operator layers the pool with:
      """
      FROM configs AS final
      """
    And the pool has an image of its configuration
    When the operator applies the machine config "50-quiet" with the kernel argument "quiet"
    Then the pool has another image of its configuration

  @M37
  Scenario: Images go with their MachineOSConfig
    Given the operator layers the pool with:
      """
      FROM configs AS final
      """
    And the pool has an image of its configuration
    When the operator deletes the MachineOSConfig
    Then the registry has lost the image

  @M38 @killed
  Scenario: The controller is killed during a build
    Given the operator layers the pool with:
      """
      FROM configs AS final
      """
    When the controller is killed
    And another controller starts
    Then the pool has an image of its configuration

  @fault
  Scenario: A configuration that no node may get is not rendered
    When the operator applies the machine config "50-bad" with the file "/dev/sda": "x"
    Then the pool is RenderDegraded: "/dev has files of the kernel"
    When the operator deletes the machine config "50-bad"
    Then the pool renders again

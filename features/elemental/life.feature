Feature: Life of a server that registers itself
  A server without a BareMetalHost boots a medium. The Elemental agent in its system registers it,
  installs the lab's image on its disk and reboots; from the disk it bootstraps into a cluster,
  takes another version of its operating system in place, and is reset, whereupon it boots the
  medium again. No step does the agent's work: the address and the token are on the medium, the
  files on the server's disk.

  @E-09 @E-13 @E-15 @E-20 @E-28 @E-29 @E-34
  Scenario: Register, install, associate, bootstrap, update in place, reset, register again
    Given a lab with 2 servers that can register themselves
    And the operator offers the registration "reg":
      """
      cloudConfig:
        write_files: [{path: /etc/from-registration, content: 'yes'}]
      elemental:
        agent:
          osPlugin: elemental-sim
          reconciliation: 300000000
          hostname: {useExisting: true}
          postInstall: {reboot: true}
          postReset: {reboot: true}
        install: {debug: true}
        reset: {resetOem: true}
      """
    When the servers boot the seed of "reg"
    Then the server "node-0" is installed by its registration
    And the server "node-1" is installed by its registration
    And the file "/etc/from-registration" of the server "node-0" contains "yes"
    And the file "/var/lib/elemental/agent/install.yaml" of the server "node-0" contains "debug: true"
    And the file "/var/lib/elemental/agent/config.yaml" of the server "node-0" contains "token: ey"
    And the ElementalHost of the server "node-0" has the phase "Running"
    And the ElementalHost of the server "node-0" has the condition "InstallationReady" True
    When the operator makes a cluster of the machine "m-0"
    Then the ElementalMachine "m-0" is ready, and its Node has its provider ID
    And the file "/etc/cloud/cloud.cfg.d/elemental-capi-bootstrap.cfg" on the host of "m-0" contains "#cloud-config"
    And the file "/run/cluster-api/bootstrap-success.complete" on the host of "m-0" contains "success"
    When the operator updates "m-0" in place to the image "metalab-demo.img"
    Then the update in place of "m-0" is done
    And the file "/etc/os-release" on the host of "m-0" contains "IMAGE_ID="
    When the operator gives up the machine "m-0"
    Then its server registers again and is installed

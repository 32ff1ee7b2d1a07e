Feature: Servers register themselves over the network
  A registration names the NICs of servers that may boot its seed by PXE: no medium and no BMC is
  needed. The address and the token come from the bytes that the boot server has served. Servers
  that it does not name, and those of BareMetalHosts, do not get them.

  @E-05 @E-13 @E-29
  Scenario: A server boots over the network, registers, joins, is reset, and registers again
    Given a lab with 2 servers that can register themselves
    And the operator offers the registration "reg":
      """
      elemental:
        agent:
          osPlugin: elemental-sim
          reconciliation: 300000000
          hostname: {useExisting: true}
          postInstall: {reboot: true}
          postReset: {reboot: true}
      """
    And the registration "reg" names the server "node-0" for network boot
    When the servers boot from the disk, else over the network
    Then the server "node-0" is installed by its registration
    And the server has booted "live from Pxe 1, disk from Hdd Disk.0"
    And the file "/var/lib/elemental/agent/config.yaml" of the server "node-0" contains "token: ey"
    And the server "node-1" finds nothing to boot
    When the operator makes a cluster of the machine "m-0"
    Then the ElementalMachine "m-0" is ready, and its Node has its provider ID
    When the operator gives up the machine "m-0"
    Then its server registers again and is installed
    When the controller is killed
    And another controller starts
    And the registration "reg" names the servers "node-0, node-1" for network boot
    And the power of the server "node-1" fails and returns
    Then the server "node-1" is installed by its registration

  @E-05
  Scenario: A server of a BareMetalHost does not get the seed
    Given a lab with 1 server that can register itself
    And the operator offers the registration "reg":
      """
      elemental:
        agent: {osPlugin: elemental-sim, reconciliation: 300000000, hostname: {useExisting: true}, postInstall: {reboot: true}}
      """
    When the operator registers the server by "ipmi"
    And the registration "reg" names the server "node-0" for network boot, in vain
    Then the host becomes "available"
    When the servers boot from the disk, else over the network
    Then the server "node-0" finds nothing to boot
    And the server has booted "agent from Pxe 1"
    When the operator deletes the host
    Then the host is deleted
    And the registration "reg" is offered to 1 NIC
    When the servers boot from the disk, else over the network
    Then the server "node-0" is installed by its registration

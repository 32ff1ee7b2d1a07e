Feature: What Debian's cloud-init finds on a machine's disk
  The servers of a lab apply their user data themselves. The config drive that the controller
  writes is also what cloud-init expects: its detection of data sources, its schema, and its
  reader of network data.

  Scenario: cloud-init finds the config drive of a machine
    Given this machine has "cloud-init"
    And this machine has "cloudinit"
    And this machine has "bsdtar"
    And this machine has "blkid"
    And this machine has "sfdisk"
    And a lab with host OS configuration and 1 server
    And a cluster whose servers get addresses of "10.77.0.10-10.77.0.10"
    When the operator adds the machine "w-0" and its server's inventory
    Then the host becomes "provisioned"
    And Debian's cloud-init finds a "ConfigDrive" on the first disk of "w-0", with the host name "w-0" and the address "10.77.0.10/24"

Feature: From the inventory to a machine that is Ready, and back
  The operator describes servers, a cluster with its network, and machines. The provider
  claims, connects and provisions the servers, whose LCM agents execute the items of the
  release. The steps write only the operator's objects.

  @H36
  Scenario: A server of the inventory becomes a machine, and is free again
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And a cluster whose servers get addresses of "10.77.0.10-10.77.0.11"
    When the operator adds the machine "w-0" and its server's inventory
    Then the machine "w-0" becomes Ready
    And the file "/etc/netplan/50-cloud-init.yaml" of "w-0" contains "10.77.0.10/24"
    And the machine "w-0" has the address "10.77.0.10"
    And the Subnet has 1 of 2 addresses left
    When the operator deletes the cluster
    Then the cluster and the machine "w-0" no longer exist
    And the host becomes "available"
    And the Subnet has 2 of 2 addresses left

  Scenario: A machine waits for an address of its Subnet
    Given a lab with host OS configuration and 2 servers
    And a cluster whose servers get addresses of "10.77.0.10-10.77.0.10"
    When the operator adds the machine "w-0" and its server's inventory
    Then the host becomes "provisioned"
    When the operator adds the machine "w-1" and its server's inventory
    Then the machine "w-1" waits: 'Subnet "lcm" has no free address'
    And the host of "w-1" has no image
    When the operator deletes the machine "w-0"
    Then the file "/etc/netplan/50-cloud-init.yaml" of "w-1" contains "10.77.0.10/24"

  Scenario: A machine waits for an L2Template without mistakes
    Given a lab with host OS configuration and 1 server
    And a cluster whose servers get addresses of "10.77.0.10-10.77.0.10"
    When the operator changes the L2Template to:
      """
      version: 2
      ethernets: {eth0: {addresses: [{{ip "0:storage"}}]}}
      """
    And the operator adds the machine "w-0" and its server's inventory
    Then the machine "w-0" waits: 'L2Template "servers": spec.npTemplate'
    And the host of "w-0" has no image
    When the operator corrects the L2Template
    Then the host becomes "provisioned"
    And the file "/etc/netplan/50-cloud-init.yaml" of "w-0" contains "10.77.0.10/24"

  Scenario: A network with a bridge is netplan's own file
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And a cluster whose servers get addresses of "10.77.0.10-10.77.0.10"
    When the operator changes the L2Template to:
      """
      version: 2
      ethernets:
        {{nic 0}}: {match: {macaddress: "{{mac 0}}"}, set-name: {{nic 0}}}
      vlans:
        lcm: {id: 7, link: {{nic 0}}}
      bridges:
        br-lcm: {interfaces: [lcm], addresses: [{{ip "br-lcm:lcm"}}], parameters: {stp: false}}
      """
    And the operator adds the machine "w-0" and its server's inventory
    Then the machine "w-0" becomes Ready
    And the file "/etc/netplan/60-kaas-lcm-netplan.yaml" of "w-0" contains "br-lcm:"
    And the file "/etc/netplan/60-kaas-lcm-netplan.yaml" of "w-0" contains "10.77.0.10/24"
    And the machine "w-0" has the address "10.77.0.10"

  @H39
  Scenario: Manual gates stop a machine before its image and before its deployment
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And a cluster without machines
    When the operator adds the machine "w-0" with manual gates to the cluster
    Then the machine "w-0" stops at "AwaitsProvisioning"
    And the machine "w-0" stays at "AwaitsProvisioning"
    And the host of "w-0" has no image
    When the operator opens the gate day1Provisioning of "w-0"
    Then the machine "w-0" stops at "AwaitsDeployment"
    And the machine "w-0" stays at "AwaitsDeployment"
    When the operator opens the gate day1Deployment of "w-0"
    Then the machine "w-0" becomes Ready

  @H43
  Scenario: A halted agent executes nothing, and its keys follow the cluster
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And the provider has deployed a cluster with the workers "w-0"
    When the operator gives the cluster the key "ssh-ed25519 AAAA ann"
    Then the file "/root/.ssh/authorized_keys" of "w-0" contains "ssh-ed25519 AAAA ann"
    When the operator halts the agent of "w-0"
    And the operator overwrites the script of the item "deploy" of "w-0"
    And the operator changes the key of the cluster to "ssh-ed25519 BBBB bob"
    Then the keys of the superuser of "w-0" are "ssh-ed25519 BBBB bob"
    And the agent of "w-0" executes nothing more
    When the operator lets the agent of "w-0" go on
    Then the agent of "w-0" has executed:
      """
      deploy
      """

  Scenario: A BMC goes away and comes back, and nothing is made twice
    Given a lab with host OS configuration and 1 server
    And a cluster whose servers get addresses of "10.77.0.10-10.77.0.11"
    When the operator adds the machine "w-0" and its server's inventory
    And the BMC is offline as soon as the host is "provisioning"
    Then the machine "w-0" reports the error of its host
    When the BMC works again
    Then the host becomes "provisioned"
    And the machine "w-0" reports no error of its host
    And the Subnet has 1 of 2 addresses left

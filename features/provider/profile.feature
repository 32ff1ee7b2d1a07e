Feature: Host profile and user data of a machine
  A BareMetalHostProfile demands disks of the servers whose Machines name it, and configures
  the kernel of their operating systems. The user data of the operator take effect beside
  those that install the agent.

  Scenario: A server without the disks of the profile is provisioned once the profile has changed
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And a cluster without machines
    And the host profile "storage" is:
      """
      devices:
      - device: {minSize: 900Ti, workBy: "by_id,by_name"}
      """
    When the operator adds the machine "w-0" with:
      """
      bareMetalHostProfile: {name: storage}
      """
    Then the host profile of "w-0" does not match: 'spec.devices[0].device (workBy by_id,by_name, minSize 900Ti) matches no disk of the server: /dev/sda has '
    And the machine "w-0" waits: 'less than minSize 900Ti'
    And the host of "w-0" has no image
    When the host profile "storage" is:
      """
      devices:
      - device: {byName: /dev/sda, workBy: by_name, minSize: 1Gi}
        partitions: [{name: root, size: 0}]
      grubConfig: {defaultGrubOptions: [GRUB_TIMEOUT=30]}
      kernelParameters:
        sysctl: {vm.swappiness: "7"}
        modules: [{filename: kvm_intel.conf, content: "options kvm_intel nested=1\n"}]
      preDeployScript: |
        #!/bin/sh
        echo before > /etc/deployed.pre
      postDeployScript: |
        #!/bin/sh
        cat /proc/sys/vm/swappiness > /etc/deployed.post
      """
    Then the machine "w-0" becomes Ready
    And the host profile of "w-0" matches: 'its root device is /dev/sda; not applied, the image has the layout of its disk: spec.grubConfig, spec.devices[].partitions'
    And the file "/etc/sysctl.d/90-host-profile.conf" of "w-0" contains "vm.swappiness = 7"
    And the file "/etc/modprobe.d/kvm_intel.conf" of "w-0" contains "options kvm_intel nested=1"
    And the file "/etc/modules-load.d/host-profile.conf" of "w-0" contains "kvm_intel"
    And the command "grep -x 7 /etc/deployed.post" runs on "w-0"
    And the file "/etc/deployed.pre" of "w-0" contains "before"

  Scenario: A machine waits for its profile, and gets the disk that the profile names
    Given a lab with host OS configuration and 1 server
    And a cluster without machines
    When the operator adds the machine "w-0" with:
      """
      bareMetalHostProfile: {name: second-disk}
      """
    Then the machine "w-0" waits: 'there is no BareMetalHostProfile "second-disk" in the namespace'
    And the host of "w-0" has no image
    When the host profile "second-disk" is:
      """
      devices: [{device: {byName: /dev/sdb, workBy: by_name}}]
      """
    Then the host becomes "provisioned"
    And it passed through "available, preparing, available, provisioning, provisioned"
    And the server's second disk begins with the image
    And the host profile of "w-0" matches: 'its root device is /dev/sdb'
    When the operator deletes the machine "w-0"
    Then the host becomes "available"

  Scenario: User data of the operator take effect beside the agent
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And a cluster without machines
    And the user data of the Secret "user-data" are:
      """
      #cloud-config
      runcmd: [touch /etc/touched
      """
    When the operator adds the machine "w-0" with:
      """
      userData: {name: user-data}
      """
    Then the machine "w-0" waits: 'spec.providerSpec.value.userData: Secret "user-data": data.userData: yaml: line '
    And the host of "w-0" has no image
    When the user data of the Secret "user-data" are:
      """
      #cloud-config
      users: [default, {name: ann, groups: [sudo]}]
      write_files: [{path: /etc/motd, content: hello}]
      runcmd: [cp /etc/motd /etc/copied]
      """
    Then the machine "w-0" becomes Ready
    And the file "/etc/passwd" of "w-0" contains "ann:"
    And the file "/etc/copied" of "w-0" contains "hello"

  Scenario: A script of the operator runs at the first boot of a machine
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And a cluster without machines
    And the user data of the Secret "user-data" are:
      """
      #!/bin/sh
      echo "from $0" > /etc/script
      """
    When the operator adds the machine "w-0" with:
      """
      userData: {name: user-data}
      """
    Then the machine "w-0" becomes Ready
    And the file "/etc/script" of "w-0" contains "from /var/lib/cloud/"

  Scenario: cloud-init accepts the user data of a profile and of the operator
    Given this machine has "cloud-init"
    And this machine has "cloudinit"
    And this machine has "bsdtar"
    And this machine has "blkid"
    And this machine has "sfdisk"
    And a lab with host OS configuration and 1 server
    And a cluster whose servers get addresses of "10.77.0.10-10.77.0.10"
    And the host profile "kernel" is:
      """
      kernelParameters:
        sysctl: {kernel.panic: "30"}
        modules: [{filename: kvm_intel.conf, content: "options kvm_intel nested=1\n"}]
      preDeployScript: "#!/bin/sh\ntrue\n"
      postDeployScript: "#!/bin/sh\ntrue\n"
      """
    And the user data of the Secret "user-data" are:
      """
      #cloud-config
      packages: [vim]
      users: [default, {name: ann, groups: [sudo]}]
      write_files: [{path: /etc/motd, content: hello, permissions: "0600"}]
      bootcmd: [[echo, boot]]
      runcmd: [[echo, "two words"]]
      """
    When the operator adds the machine "w-0" with:
      """
      bareMetalHostProfile: {name: kernel}
      userData: {name: user-data}
      """
    Then the host becomes "provisioned"
    And Debian's cloud-init finds a "ConfigDrive" on the first disk of "w-0", with the host name "w-0" and the address "10.77.0.10/24"

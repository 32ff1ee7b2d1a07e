@firstboot
Feature: The operating system of a server
  A server that has booted from a disk has an operating system: at its first boot it reads
  its config drive as cloud-init does and runs the commands of the user data. Commands run
  in namespaces over the server's files. What they change is stored with the disk.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-115
  Scenario: User data configure the system
    Given this machine has "user namespaces"
    When the operator sets the name "web-0" and the user data:
      """
      #cloud-config
      fqdn: web-0.example.com
      ssh_authorized_keys: [ssh-ed25519 AAAA operator]
      write_files:
      - {path: /etc/motd, content: written at the first boot, permissions: '0600'}
      packages: [nginx]
      runcmd:
      - [sh, -c, "echo $(hostname) > /etc/by-runcmd; echo executed; exit 3"]
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    And the server's file "/etc/hostname" contains "web-0"
    And the server's file "/etc/motd" contains "written at the first boot"
    And the server's file "/home/debian/.ssh/authorized_keys" contains "ssh-ed25519 AAAA operator"
    And the server's file "/etc/by-runcmd" contains "web-0"
    And the server's file "/var/log/cloud-init-output.log" contains "executed"
    And the server's console has shown, in this order:
      """
      cloud-init: ConfigDrive of …, host name web-0
      cloud-init: packages is not applied
      executed
      cloud-init: /var/lib/cloud/instance/scripts/runcmd ended with code 3
      """

  Scenario: The files go with the image
    Given this machine has "user namespaces"
    When the operator sets the name "web-0" and the user data:
      """
      #cloud-config
      write_files: [{path: /etc/first, content: x}]
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's file "/etc/first" contains "x"
    When the command "echo y > /etc/changed" runs on the server
    And the operator removes the image
    Then the host becomes "available"
    When the operator changes the user data to:
      """
      #cloud-config
      write_files: [{path: /etc/second, content: x}]
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's file "/etc/second" contains "x"
    And the server has no file "/etc/first"
    And the server has no file "/etc/changed"

  Scenario: A system that its user has broken is made new
    Given this machine has "user namespaces"
    When the operator sets the name "web-0" and the user data:
      """
      #cloud-config
      write_files: [{path: /etc/first, content: x}]
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's file "/etc/first" contains "x"
    When the command "rm -rf /etc/* /var/*; echo y > /etc/changed" runs on the server
    And the operator resets the server's system
    Then the server boots again
    And the server's file "/etc/first" contains "x"
    And the server's file "/etc/hostname" contains "node-"
    And the server has no file "/etc/changed"

  Scenario: A reboot keeps the files, but /run and /tmp
    Given this machine has "user namespaces"
    When the operator sets the name "web-0" and the user data:
      """
      #cloud-config
      runcmd: [[sh, -c, "echo once >> /etc/first-boots"]]
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's file "/etc/first-boots" contains "once"
    When the command "echo here > /etc/stays; touch /run/goes /tmp/goes; reboot" runs on the server
    Then the server boots again
    And the server's file "/etc/stays" contains "here"
    And the server's file "/etc/first-boots" is "once"
    And the server has no file "/run/goes"
    And the server has no file "/tmp/goes"

  Scenario: Units that are enabled start at every boot
    Given this machine has "user namespaces"
    When the operator sets the name "web-0" and the user data:
      """
      #cloud-config
      write_files:
      - path: /etc/systemd/system/count.service
        content: |
          [Service]
          Type=oneshot
          ExecStart=/bin/sh -c 'echo boot >> /var/log/boots'
          [Install]
          WantedBy=multi-user.target
      runcmd: [systemctl enable --now count]
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's file "/var/log/boots" is "boot"
    When the command "reboot" runs on the server
    Then the server boots again
    And the server's file "/var/log/boots" is "boot boot"

  Scenario: A command cannot leave the server
    Given this machine has "user namespaces"
    When the operator sets the name "web-0" and the user data:
      """
      #cloud-config
      {}
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    And these commands on the server end with an error:
      | mount -t tmpfs x /mnt       |
      | date -s 2001-01-01          |
      | mknod /tmp/x b 8 0; cat /tmp/x |
      | echo b > /proc/sysrq-trigger; false |
      | unshare -Urm true           |
    When the command "sleep 1000 & kill -9 -1" runs on the server
    And the command "echo alive > /etc/alive" runs on the server
    Then the server's file "/etc/alive" contains "alive"

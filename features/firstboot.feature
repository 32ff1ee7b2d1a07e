@firstboot
Feature: The first boot of an image
  A server that has booted from a disk reads its config drive as cloud-init does: host
  name, users and keys, files, network. "labctl host files" shows the result. Commands
  are not executed; the console lists them.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-115
  Scenario: User data configure the system
    When the operator sets the name "web-0" and the user data:
      """
      #cloud-config
      fqdn: web-0.example.com
      ssh_authorized_keys: [ssh-ed25519 AAAA operator]
      write_files:
      - {path: /etc/motd, content: written at the first boot, permissions: '0600'}
      packages: [nginx]
      runcmd:
      - systemctl enable agent
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    And the server's file "/etc/hostname" contains "web-0"
    And the server's file "/etc/motd" contains "written at the first boot"
    And the server's file "/home/debian/.ssh/authorized_keys" contains "ssh-ed25519 AAAA operator"
    And the server's console has shown, in this order:
      """
      cloud-init: ConfigDrive of …, host name web-0
      cloud-init: packages is not applied
      cloud-init: not executed: systemctl enable agent
      """

  Scenario: The files go with the image
    When the operator sets the name "web-0" and the user data:
      """
      #cloud-config
      write_files: [{path: /etc/first, content: x}]
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's file "/etc/first" contains "x"
    When the operator removes the image
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

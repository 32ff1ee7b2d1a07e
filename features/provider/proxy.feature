Feature: Proxy of a cluster
  Servers whose network has no other way out download through the Proxy that their Cluster
  names.

  Background:
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server

  Scenario: An agent downloads through the proxy of its cluster
    Given a cluster whose release downloads "/etc/motd" from a server behind a proxy with the password "secretword"
    And the cluster names the proxy
    When the operator adds the machine "w-0" to the cluster
    Then the cluster reports Proxy: 'there is no Proxy "outbound"'
    And the machine "w-0" waits: 'there is no Proxy "outbound"'
    And the host of "w-0" has no image
    When the operator creates the proxy
    Then the condition Proxy of the cluster is ready
    And the machine "w-0" becomes Ready
    And the file "/etc/motd" of "w-0" contains "from behind the proxy"
    And the file "/etc/lab-agent/proxy" of "w-0" contains "http_proxy=http://operator:secretword@"
    And no object contains "secretword"

  Scenario: Modules are loaded through the proxy
    Given this machine has "ansible-playbook"
    And a cluster whose release downloads "/etc/motd" from a server behind a proxy with the password "secretword"
    And the cluster names the proxy
    And the modules are on the server behind the proxy
    When the operator lists the modules "file-template 1.0.0"
    Then the module "file-template 1.0.0" has the error "failed to perform request to fetch the module archive: Get 'URL'"
    When the operator creates the proxy
    And ten minutes pass
    Then the module "file-template 1.0.0" is available
    When the operator adds the machine "w-0" to the cluster
    Then the machine "w-0" becomes Ready
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    Then the file "/etc/app.conf" of "w-0" contains "a=1"
    And no object contains "secretword"

Feature: Proxy of a cluster
  Servers whose network has no other way out download through the Proxy that their Cluster
  names.

  Scenario: An agent downloads through the proxy of its cluster
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And a cluster whose release downloads "/etc/motd" from a server behind a proxy with the password "secretword"
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

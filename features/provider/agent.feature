Feature: The LCM agent of a release
  A release names a version of the LCM agent, where its file is and the SHA-256. The first boot of
  a server installs it, and a later release upgrades it. The lab serves its own agent, which its
  process runs for the servers.

  Background:
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server

  Scenario: A wrong digest installs nothing until the release is corrected
    Given a cluster whose release has the agent "0.9.0" with a wrong SHA-256
    When the operator adds the machine "w-0" to the cluster
    Then the server's console has shown, in this order:
      """
      lab-agent-lcm.service: /usr/local/bin/lab-agent is not installed: http://…/agents/0.9.0/lab-agent has the SHA-256 …, and the release names 0000000000000000000000000000000000000000000000000000000000000000
      """
    And the machine "w-0" reports LCM: 'the LCMMachine is Uninitialized: its agent has not reported yet'
    And the server of "w-0" has no agent
    When the operator upgrades the cluster to the release "0.1.1" with the agent "0.9.0"
    Then the machine "w-0" becomes Ready
    And the agent of "w-0" has the version "0.9.0"

  Scenario: A release upgrades the agent of a machine
    Given a cluster whose release has the agent "0.9.0" with a wrong SHA-256
    And the operator upgrades the cluster to the release "0.1.1" with the agent "0.9.0"
    When the operator adds the machine "w-0" to the cluster
    Then the machine "w-0" becomes Ready
    And the agent of "w-0" has the version "0.9.0"
    And the server's console has shown, in this order:
      """
      lab-agent-lcm.service: /usr/local/bin/lab-agent was installed from http://…/agents/0.9.0/lab-agent
      lab-agent-lcm.service: /usr/local/bin/lab-agent is the lab's own agent, version 0.9.0: the lab's process runs it
      """
    When the operator upgrades the cluster to the release "0.1.2" with the agent "0.10.0"
    Then the agent of "w-0" has the version "0.10.0"
    And the machine "w-0" becomes Ready
    And the file "/usr/local/bin/lab-agent" of "w-0" contains "version 0.10.0"
    And the command "/usr/local/bin/lab-agent --version | grep -F 0.10.0" runs on "w-0"

Feature: Order of the updates of machines
  An UpdateGroup bounds how many of its machines are out of service at a time, and its index
  orders the groups. A machine is cordoned and drained before it gets another release.

  Background:
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 3 servers
    And the provider has deployed a cluster with the workers "w-0, w-1, w-2"
    And the machine "w-0" reaches the release "lab-1"
    And the machine "w-1" reaches the release "lab-1"
    And the machine "w-2" reaches the release "lab-1"
    And the cluster has the nodes "w-0, w-1, w-2"

  @H37
  Scenario: Groups are updated by their index, and machines of a group one after another
    Given the update group "a-late" has the index 7, updates 1 at a time and has the machines "w-0, w-1"
    And the update group "z-early" has the index 3, updates 1 at a time and has the machines "w-2"
    When the operator upgrades the cluster to "lab-2"
    Then the nodes were cordoned in this order:
      | nodes    | at most |
      | w-2      | 1       |
      | w-0, w-1 | 1       |
    And the cluster has the release "lab-2"
    And the file "/etc/deployed" of "w-0" contains "lab-2"
    And the file "/etc/deployed" of "w-1" contains "lab-2"
    And the file "/etc/deployed" of "w-2" contains "lab-2"

  @H37
  Scenario: A group updates as many machines at a time as it allows
    Given the update group "z-both" has the index 1, updates 2 at a time and has the machines "w-1, w-2"
    And the update group "a-last" has the index 2, updates 1 at a time and has the machines "w-0"
    When the operator upgrades the cluster to "lab-2"
    Then the nodes were cordoned in this order:
      | nodes    | at most |
      | w-1, w-2 | 2       |
      | w-0      | 1       |
    And the cluster has the release "lab-2"

Feature: Graceful reboots
  A GracefulRebootRequest reboots the machines of its cluster one after another. Each node is
  cordoned and drained, the LCM agent reboots its server, and the node is uncordoned.

  Background:
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 2 servers
    And the provider has deployed a cluster with the workers "w-0, w-1"
    And the cluster has the nodes "w-0, w-1"

  @H33 @H34
  Scenario: All machines are rebooted
    Given the command "mkdir /run/day2 && echo new kernel > /run/day2/reboot-required" runs on "w-0"
    And ten minutes pass
    And the machine "w-0" reports a reboot request: "new kernel"
    And the server of "w-0" has not booted again
    When the operator requests the graceful reboot of the cluster "c1"
    Then the node "w-0" is cordoned
    And the node "w-1" is cordoned
    And the machines "w-0, w-1" were rebooted for the request "c1"
    And the machine "w-0" becomes Ready
    And the machine "w-0" reports no reboot request
    And the node "w-0" is schedulable
    And the node "w-1" is schedulable

  @H34 @H38
  Scenario: A reboot waits for the applications and the pods of the node
    Given the server of "w-0" runs the node agent
    And kubectl shows the node "w-0" as "Ready"
    And the node "w-0" runs the pod "guarded", which may not be evicted
    And the workload lock of the node "w-0" is active
    When the operator requests the graceful reboot of the machines "w-0" of the cluster "c1"
    Then the node "w-0" is to be maintained
    And the server of "w-0" has not booted again
    And the node "w-0" is schedulable
    When the workload lock of the node "w-0" fails: "the pool is degraded"
    Then the graceful reboot of "c1" waits: "NodeWorkloadLock storage-w-0 failed: the pool is degraded"
    And the server of "w-0" has not booted again
    When the workload lock of the node "w-0" is inactive
    Then the graceful reboot of "c1" waits: "pod default/guarded cannot be evicted"
    And the node "w-0" is cordoned
    And the server of "w-0" has not booted again
    When the PodDisruptionBudget of "guarded" is deleted
    Then the machines "w-0" were rebooted for the request "c1"
    And the pod "guarded" is gone
    And the node "w-0" has no requests
    And the node "w-0" is schedulable
    And kubectl shows the node "w-0" as "Ready"
    And the server of "w-1" has not booted again

  @H34
  Scenario: A request of another name reboots nothing
    When the operator requests the graceful reboot of the cluster "c2"
    Then the graceful reboot of "c2" waits: "there is no Cluster 'c2' in the namespace"
    And the server of "w-0" has not booted again
    And the server of "w-1" has not booted again

Feature: Deletion of machines
  With the policy graceful the node of a machine leaves its cluster before its server is
  deprovisioned: a NodeDeletionRequest asks the applications, which answer with their workload
  locks, and then the node is drained. Until the Machine is deleted, the deletion can be withdrawn.
  The other policies ask no application; the node goes with its machine all the same.

  Background:
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And the provider has deployed a cluster with the workers "w-0"
    And the cluster has the nodes "w-0"

  @H38
  Scenario: A graceful deletion waits for the applications of the node
    Given the deletion policy of the machine "w-0" is "graceful"
    And the workload lock of the node "w-0" is active
    When the operator demands the deletion of the machine "w-0"
    Then the preparation of the deletion of "w-0" has started
    And the node "w-0" is to be deleted
    When the workload lock of the node "w-0" fails: "the pool is degraded"
    And a minute passes
    Then the preparation of the deletion of "w-0" has failed: "NodeWorkloadLock storage-w-0 failed: the pool is degraded"
    And the machine "w-0" still exists
    And the server of "w-0" has not booted again
    When the operator withdraws the deletion of the machine "w-0"
    And a minute passes
    Then the preparation of the deletion of "w-0" has ended
    And the node "w-0" has no requests
    And the machine "w-0" becomes Ready
    When the operator demands the deletion of the machine "w-0"
    And the controller is killed
    And another controller starts
    And the workload lock of the node "w-0" is inactive
    And a minute passes
    Then the node "w-0" has no requests
    And the machine "w-0" and the node "w-0" no longer exist
    And the host becomes "available"

  @H38
  Scenario: A graceful deletion waits for the pods of the node
    Given the server of "w-0" runs the node agent
    And kubectl shows the node "w-0" as "Ready"
    And the node "w-0" runs the pod "guarded", which may not be evicted
    And the deletion policy of the machine "w-0" is "graceful"
    When the operator demands the deletion of the machine "w-0"
    Then the preparation of the deletion of "w-0" has started: "pod default/guarded cannot be evicted"
    And the node "w-0" is cordoned
    And the machine "w-0" still exists
    When the PodDisruptionBudget of "guarded" is deleted
    Then the machine "w-0" and the node "w-0" no longer exist
    And the pod "guarded" is gone
    And the host becomes "available"

  Scenario: Another policy asks nobody
    Given the deletion policy of the machine "w-0" is "unsafe"
    And the workload lock of the node "w-0" is active
    When the operator deletes the machine "w-0"
    Then the machine "w-0" and the node "w-0" no longer exist
    And the host becomes "available"
    And the node "w-0" has no requests

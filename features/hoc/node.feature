Feature: Nodes of servers
  A server whose user data enable the unit of the node agent is a Node of the cluster: Ready
  while it runs. Pods that are bound to it are Running, and end when they are evicted.

  Background:
    Given a lab with host OS configuration
    And the operator has registered the server

  Scenario: A node is Ready while its server runs
    When the operator sets the user data of a server that runs the node agent of "w-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And kubectl shows the node "w-0" as "Ready"
    And the node "w-0" has an InternalIP of "198.18.0.0/15"
    When the operator sets online to false
    Then the server is off
    And kubectl shows the node "w-0" as "NotReady"
    When the operator sets online to true
    Then kubectl shows the node "w-0" as "Ready"

  Scenario: A drain waits for a PodDisruptionBudget
    When the operator sets the user data of a server that runs the node agent of "w-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And kubectl shows the node "w-0" as "Ready"
    When the pods "free" are bound to the node "w-0"
    Then the pod "free" is Running
    And the node "w-0" runs the pod "guarded", which may not be evicted
    Then the drain of the node "w-0" waits: "pod default/guarded cannot be evicted"
    And the pod "free" is gone
    And the pod "guarded" is Running
    When the PodDisruptionBudget of "guarded" is deleted
    Then the drain of the node "w-0" is done

  Scenario: A server without the unit is no node
    When the operator sets the user data of a server that lacks the node agent of "w-0"
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    And the cluster has no node "w-0"

Feature: Labels and taints of nodes
  A Machine gives its Node labels, if the release allows them, and taints. What the Machine no
  longer has leaves the Node; what others have written stays.

  Scenario: The labels and taints of a Machine are those of its Node
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server
    And the provider has deployed a cluster with the workers "w-0"
    And the cluster has the nodes "w-0"
    When the operator gives the machine "w-0" the node labels "zone=a, role=db" and the taint "db=yes:NoSchedule"
    Then the node "w-0" has the labels "zone=a, role=db" and the taints "db=yes:NoSchedule"
    When the operator labels the node "w-0" with "rack=r1"
    And the operator gives the machine "w-0" the node labels "zone=b, gpu=yes" and the taint "none"
    Then the node "w-0" has the labels "zone=b, rack=r1" and the taints "none"
    And the machine "w-0" reports NodeLabels: 'spec.providerSpec.value.nodeLabels[1]: ClusterRelease "lab-1" does not allow the label gpu=yes: give one of zone, role=db'
    When the operator gives the machine "w-0" the node labels "none" and the taint "none"
    Then the node "w-0" has the labels "rack=r1" and the taints "none"

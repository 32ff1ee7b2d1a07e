Feature: The Helm controller of a cluster
  A Cluster has a Helm controller as a chart: the one that its ClusterRelease names, or the lab's. A
  pod of it is Ready while the controllers of the lab run, in whose process it works. Clusters that
  share a Kubernetes API have releases of their own.

  Scenario: A cluster has a Helm controller whose pod is Ready while the controllers run
    Given a lab with host OS configuration
    And a cluster without machines
    Then the chart of the Helm controller of "c1" is installed as "helm-controller-c1"
    And the Helm controller of "c1" has 1 pod, which is Ready
    And the stages of the cluster are:
      """
      Network prepared: InProgress
      IAM objects created: Success
      Helm-controller deployed: Success
      HelmBundle created: Success
      All machines of the cluster are ready: NotStarted
      Cluster is ready: NotStarted
      """
    When the operator runs kubectl get lcmcluster c1 -o 'jsonpath={.status.helmControllerDeployed}'
    Then kubectl prints true
    When the controller is killed
    Then the Helm controller of "c1" has 1 pod, which is not Ready: 'the controllers of the lab are stopped'
    When another controller starts
    Then the Helm controller of "c1" has 1 pod, which is Ready
    When the operator deletes the pods of the Helm controller of "c1"
    Then the Helm controller of "c1" has 1 pod, which is Ready
    When the operator asks for a highly available Helm controller of "c1"
    Then the Helm controller of "c1" has 2 pods, which are Ready
    When the operator deletes the cluster
    Then nothing of the Helm controller of "c1" is left

  Scenario: Two clusters in one Kubernetes API have a Helm controller each
    Given a lab with host OS configuration
    And the clusters "c1, c2" without machines share the Kubernetes API of the lab
    Then the chart of the Helm controller of "c1" is installed as "helm-controller-c1"
    And the chart of the Helm controller of "c2" is installed as "helm-controller-c2"
    And the Helm controller of "c2" has 1 pod, which is Ready
    When the operator deletes the cluster "c1"
    Then nothing of the Helm controller of "c1" is left
    And the chart of the Helm controller of "c2" is installed as "helm-controller-c2"
    And the Helm controller of "c2" has 1 pod, which is Ready

  Scenario: The Helm controller of a cluster with a Kubernetes API of its own runs there
    Given a lab with host OS configuration
    And the cluster "c1" without machines has a Kubernetes API of its own
    Then the chart of the Helm controller of "c1" is installed as "helm-controller"
    And the Helm controller of "c1" has 1 pod, which is Ready
    When the controller is killed
    Then the Helm controller of "c1" has 1 pod, which is not Ready: 'the controllers of the lab are stopped'
    When another controller starts
    Then the Helm controller of "c1" has 1 pod, which is Ready

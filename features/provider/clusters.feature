Feature: Two clusters in one lab
  A Cluster that asks for it has a Kubernetes API of its own: its Nodes, workload locks, drains and
  charts are there. Two such Clusters go through deployment, configuration, upgrade, reboot and
  deletion side by side, and neither touches what is the other's.

  Background:
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 2 servers
    And the provider has deployed the clusters "c1, c2" with Kubernetes APIs of their own

  Scenario: Clusters with APIs of their own live side by side
    Given this machine has "ansible-playbook"
    And the operator lists the modules "file-template 1.0.0"
    And the Kubernetes API of "c1" has the nodes "c1-w"
    And the Kubernetes API of "c2" has the nodes "c2-w"
    And the cluster has no node "c1-w"
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {cluster.sigs.k8s.io/cluster-name: c1}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    Then the agent of "c1-w" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the agent of "c2-w" executes nothing more
    When the workload lock of the cluster "c2" is active
    And the operator upgrades the cluster "c2" to "lab-2"
    And the operator upgrades the cluster "c1" to "lab-2"
    Then the agent of "c1-w" has executed:
      """
      deploy
      """
    And the Kubernetes API of "c1" has the Helm release "cluster-settings"
    And the upgrade of "c2-w" waits for the locks of its cluster
    And the agent of "c2-w" executes nothing more
    And the Kubernetes API of "c2" does not have the Helm release "cluster-settings"
    When the operator requests the graceful reboot of the cluster "c1"
    Then the machines "c1-w" were rebooted for the request "c1"
    And the server of "c2-w" has not booted again
    When the operator deletes the cluster "c1"
    Then the cluster "c1", its machine "c1-w" and its Kubernetes API no longer exist
    And the Kubernetes API of "c2" has the nodes "c2-w"
    When the workload lock of the cluster "c2" is inactive
    Then the agent of "c2-w" has executed:
      """
      deploy
      """
    And the Kubernetes API of "c2" has the Helm release "cluster-settings"
    And the cluster "c2" is Ready

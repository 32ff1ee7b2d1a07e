Feature: Upgrade of a cluster
  A Cluster gets another release by its spec. A KaaSRelease lists the releases that can
  follow each: any other change is refused. The machines then execute the state items of the
  new release that differ; what host OS configurations have executed stays.

  Background:
    Given this machine has "user namespaces"
    And a lab with host OS configuration and 1 server

  Scenario: A cluster is upgraded along the supported path
    Given this machine has "ansible-playbook"
    And the operator lists the modules "file-template 1.0.0"
    And the provider has deployed a cluster with the workers "w-0"
    And the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    And the agent of "w-0" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the machine "w-0" reaches the release "lab-1"
    And the agent of "w-0" has the version "1.0.0"
    And the cluster can be upgraded to "lab-2"
    When the operator tries to upgrade the cluster to "lab-3"
    Then it is refused with: spec.providerSpec.value.release: "lab-1" (1.0.0) cannot be upgraded to "lab-3": give one of lab-2 (1.1.0)
    When the operator tries to upgrade the cluster to "lab-9"
    Then it is refused with: spec.providerSpec.value.release: KaaSRelease "lab-1" does not support "lab-9": give one of lab-1, lab-2, lab-3
    And the cluster stays with the release "lab-1"
    When the operator upgrades the cluster to "lab-2"
    Then the agent of "w-0" has executed:
      """
      deploy
      """
    And the agent of "w-0" has the version "1.1.0"
    And the file "/etc/deployed" of "w-0" contains "lab-2"
    And the file "/etc/app.conf" of "w-0" contains "a=1"
    And the cluster has the release "lab-2"
    And the cluster can be upgraded to "lab-3"
    And the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Success" on "w-0"
    And the agent of "w-0" executes nothing more
    When the operator tries to upgrade the cluster to "lab-1"
    Then it is refused with: spec.providerSpec.value.release: "lab-2" (1.1.0) cannot be upgraded to "lab-1": give one of lab-3 (1.10.0)

  @H38
  Scenario: An upgrade waits for the pods of the node
    Given the provider has deployed a cluster with the workers "w-0"
    And the machine "w-0" reaches the release "lab-1"
    And the cluster has the nodes "w-0"
    And the server of "w-0" runs the node agent
    And kubectl shows the node "w-0" as "Ready"
    And the node "w-0" runs the pod "guarded", which may not be evicted
    When the operator upgrades the cluster to "lab-2"
    Then the machine "w-0" reports Maintenance: 'pod default/guarded cannot be evicted'
    And the node "w-0" is cordoned
    And the file "/etc/deployed" of "w-0" contains "lab-1"
    When the PodDisruptionBudget of "guarded" is deleted
    Then the machine "w-0" reaches the release "lab-2"
    And the file "/etc/deployed" of "w-0" contains "lab-2"
    And the pod "guarded" is gone
    And the node "w-0" has no requests
    And the node "w-0" is schedulable

  Scenario: A machine that is off leaves no release out
    Given the provider has deployed a cluster with the workers "w-0"
    And the machine "w-0" reaches the release "lab-1"
    When the operator switches off the server of "w-0"
    And the operator upgrades the cluster to "lab-2"
    Then the cluster can be upgraded to "lab-3"
    When the operator tries to upgrade the cluster to "lab-3"
    Then it is refused with: spec.providerSpec.value.release: "lab-3" can follow once all machines have "lab-2": machine w-0 has "lab-1"
    When the operator switches on the server of "w-0"
    Then the machine "w-0" reaches the release "lab-2"
    When the operator upgrades the cluster to "lab-3"
    Then the machine "w-0" reaches the release "lab-3"
    And the file "/etc/deployed" of "w-0" contains "lab-3"

  Scenario: An upgrade that needs a reboot reboots each machine once
    Given the provider has deployed a cluster with the workers "w-0"
    And the machine "w-0" reaches the release "lab-1"
    And the cluster has the nodes "w-0"
    And the upgrade from "lab-1" to "lab-2" needs a reboot
    And the server of "w-0" has not booted again
    When the operator upgrades the cluster to "lab-2"
    Then the node "w-0" is cordoned
    And the machine "w-0" reaches the release "lab-2"
    And the server of "w-0" has booted once more
    And the node "w-0" is schedulable
    And the file "/etc/deployed" of "w-0" contains "lab-2"
    When the operator upgrades the cluster to "lab-3"
    Then the machine "w-0" reaches the release "lab-3"
    And the server of "w-0" has not booted again

  @H44
  Scenario: An update goes by the steps that are commenced, in their order
    Given the provider has deployed a cluster with the workers "w-0"
    And the machine "w-0" reaches the release "lab-1"
    When the operator commences the step "k8s-workers-c1-default" of the update to "lab-2"
    Then the step "k8s-workers-c1-default" of the update to "lab-2" does not begin
    And the update to "lab-2" is NotStarted
    And the cluster stays with the release "lab-1"
    When the operator commences the step "k8s-controllers" of the update to "lab-2"
    Then the step "k8s-controllers" of the update to "lab-2" goes from NotStarted through InProgress to Completed
    And the step "k8s-workers-c1-default" of the update to "lab-2" goes from NotStarted through InProgress to Completed
    And the agent of "w-0" has executed:
      """
      deploy
      """
    And the file "/etc/deployed" of "w-0" contains "lab-2"
    And the step "mcc-components" of the update to "lab-2" does not begin
    And the update to "lab-2" is InProgress
    When the operator commences the step "mcc-components" of the update to "lab-2"
    Then the step "mcc-components" of the update to "lab-2" goes from NotStarted through InProgress to Completed
    And the update to "lab-2" is Completed

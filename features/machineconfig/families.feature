Feature: Two families on one server
  The agents of two families work in the system of one server. A file has one owner: a change by
  the other family is a conflict that both report, and neither restores the file. The operating
  system of a host has one owner, too: the label metalab.dev/os-owner names its family.

  Scenario: A host OS configuration changes a file of a MachineConfig
    Given this machine has "user namespaces"
    And this machine has "ansible-playbook"
    And a lab with host OS configuration and machine configuration
    And a cluster with the workers "w-0"
    And the operator lists the modules "file-template 1.0.0"
    And the operator has registered the server
    And the server is the node of a pool with a machine-config daemon and the LCM agent of "w-0"
    And the operator creates a MachineConfig "10-app" with the file "/etc/app.conf" of "b=2"
    And the pool is Updated without an image
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    Then the item "host-os-app-file-template-1.0.0-reconfigure" of "w-0" fails: "conflict: /etc/app.conf of MachineConfig rendered-"
    And the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Failed" on "w-0"
    And the node is Degraded: "conflict: /etc/app.conf was changed by"
    And the MachineConfigNode is NodeDegraded: "item host-os-app-file-template-1.0.0-reconfigure"
    When ten minutes pass
    Then the server's file "/etc/app.conf" contains "a=1"
    And the node is Degraded: "conflict: /etc/app.conf was changed by"
    When the operator deletes the host OS configuration "app"
    And the host OS configuration "app" no longer exists
    And the operator writes "b=2" to the server's file "/etc/app.conf"
    Then the node is Done

  Scenario: A host whose operating system another family owns
    Given a lab with host OS configuration and machine configuration
    And the operator has registered the server
    When the operator edits the host:
      """
      metadata: {labels: {metalab.dev/os-owner: machineconfig}}
      """
    And the operator tries to change the host to 'metadata: {labels: {metalab.dev/os-owner: hoc}}'
    Then it is refused with: the family machineconfig owns the operating system of this host: remove the label metalab.dev/os-owner before hoc owns it
    When the operator tries to change the host to 'spec: {consumerRef: {apiVersion: cluster.k8s.io/v1alpha1, kind: Machine, name: w-0, namespace: default}}'
    Then it is refused with: no Machine of cluster.k8s.io/v1alpha1 may claim it
    When the operator edits the host:
      """
      metadata: {labels: {metalab.dev/os-owner: null}}
      """
    And the operator tries to change the host to 'metadata: {labels: {metalab.dev/os-owner: hoc}}'
    Then it is accepted

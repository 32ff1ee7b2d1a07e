Feature: Life of a host OS configuration
  Items are executed, changed, retriggered and removed. Nothing that has succeeded runs
  again without a change, and a deleted configuration stays until agents have forgotten its
  results. The steps act as the agents do.

  Background:
    Given a lab with host OS configuration
    And a cluster with the workers "w-0, w-1"
    And the operator lists the modules "sysctl 1.1.0, file-template 1.0.0"
    And the operator sets the Secret "app" to:
      """
      password: first-password
      """
    And the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.1.0, values: {filename: 90-app, options: {vm.swappiness: 10}}}
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}, secretValues: {name: app}}
      """

  @H26
  Scenario: Items are executed once
    When the agent of "w-0" begins the first item
    Then the item "host-os-download-app-sysctl-1.1.0-reconfigure" of "app" is "Running" on "w-0"
    And the item "host-os-app-sysctl-1.1.0-reconfigure" of "app" is "Not Started" on "w-0"
    And the machine "w-0" is "Reconfigure" for LCM
    When the agent of "w-0" executes:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    Then the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Success" on "w-0"
    And the machine "w-0" is "Ready" for LCM
    When the controller is killed
    And another controller starts
    And ten minutes pass
    Then the agent of "w-0" has nothing to execute

  @H36
  Scenario: An item fails and is tried again
    When the agent of "w-0" executes these, of which the last ends with 2:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      """
    Then the item "host-os-app-sysctl-1.1.0-reconfigure" of "app" is "Failed" on "w-0"
    And the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Not Started" on "w-0"
    And the machine "w-0" is "Reconfigure" for LCM
    When the agent of "w-0" executes:
      """
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    Then the item "host-os-app-sysctl-1.1.0-reconfigure" of "app" is "Success" on "w-0"
    And the machine "w-0" is "Ready" for LCM

  @H27
  Scenario: A change of values runs one playbook again
    Given the agent of "w-0" executes:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.1.0, values: {filename: 90-app, options: {vm.swappiness: 20}}}
      - {module: file-template, moduleVersion: 1.0.0, values: {settings: {a: 1}, path: /etc/app.conf}, secretValues: {name: app}}
      """
    Then the agent of "w-0" executes:
      """
      host-os-app-sysctl-1.1.0-reconfigure
      """

  @H20
  Scenario: A change of a Secret runs the playbook again
    Given the agent of "w-0" executes:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the change of the Secret of "app" is done on "w-0"
    When the operator sets the Secret "app" to:
      """
      password: second-password
      """
    Then the change of the Secret of "app" is reported on "w-0"
    And the agent of "w-0" executes:
      """
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the change of the Secret of "app" is done on "w-0"
    And no object contains "second-password"

  @H22
  Scenario: Items are withheld from a machine in maintenance
    Given the agent of "w-1" executes:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the operator begins the maintenance of the machine "w-1"
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.1.0, values: {filename: 90-app, options: {vm.swappiness: 30}}}
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}, secretValues: {name: app}}
      """
    Then the host OS configuration "app" waits for "w-1": "the machine is in maintenance"
    And the agent of "w-1" has nothing to execute
    When the operator ends the maintenance of the machine "w-1"
    Then the agent of "w-1" executes:
      """
      host-os-app-sysctl-1.1.0-reconfigure
      """

  @H28
  Scenario: A cleared and restored selector runs all items again
    Given the agent of "w-0" executes:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    When the operator clears the selector of the host OS configuration "app"
    Then the machine "w-0" has no items
    When the operator restores the selector of the host OS configuration "app"
    Then the host OS configuration "app" waits for "w-0": "the agent has not removed the result of an earlier item"
    And the agent of "w-0" has nothing to execute
    And the agent of "w-0" executes:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """

  @H31 @H32
  Scenario: A machine leaves, and another one joins
    Given the agent of "w-0" executes:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    When the operator removes the label of the machine "w-0"
    And the machine "w-2" joins the cluster
    Then the machine "w-0" has no items
    And the host OS configuration "app" waits for "w-2": "the machine is not Ready: its status is Deploy"
    And the machine "w-2" has no items
    When the agent of "w-0" has nothing to execute
    And the machine "w-2" gets the status "Ready"
    Then the host OS configuration "app" selects "w-1, w-2"
    And the agent of "w-2" executes:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """

  @H29 @H30
  Scenario: A deleted configuration waits for an agent that is offline
    Given the agent of "w-0" executes:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      host-os-app-sysctl-1.1.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the agent of "w-1" executes these, of which the last ends with 1:
      """
      host-os-download-app-sysctl-1.1.0-reconfigure
      """
    When the operator deletes the host OS configuration "app"
    Then the machine "w-0" has no items
    And the machine "w-1" has no items
    When the agent of "w-0" has nothing to execute
    And the controller is killed
    And another controller starts
    And ten minutes pass
    Then the host OS configuration "app" still exists
    And the host OS configuration "app" waits for "w-1": "the agent has not removed the results yet"
    When the agent of "w-1" has nothing to execute
    Then the host OS configuration "app" no longer exists

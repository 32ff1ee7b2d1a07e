Feature: Host OS configuration
  An operator applies modules to machines. The configuration is validated, and its items
  reach the machines that it selects and no others. The machines of these scenarios are
  synthetic: they have no server, and steps report that they are Ready. lifecycle.feature has
  servers whose agents execute the items.

  Background:
    Given a lab with host OS configuration
    And a cluster with the workers "w-0, w-1, w-2"
    And the operator lists the modules "sysctl 1.1.0, file-template 1.0.0, packages 1.0.0, failing 1.0.0"

  @H11 @H12 @H13
  Scenario: Two of three workers are selected
    Given the operator removes the label of the machine "w-2"
    When the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.1.0, values: {filename: 90-lab, options: {vm.swappiness: 10}}}
      """
    Then the host OS configuration "tuning" is valid
    And the control machines of the cluster have the items:
      """
      host-os-download-tuning-sysctl-1.1.0-reconfigure
      host-os-tuning-sysctl-1.1.0-reconfigure
      """
    And the worker machines of the cluster have the items:
      """
      host-os-download-tuning-sysctl-1.1.0-reconfigure
      host-os-tuning-sysctl-1.1.0-reconfigure
      """
    And the machine "w-0" has the items:
      """
      host-os-download-tuning-sysctl-1.1.0-reconfigure
      host-os-tuning-sysctl-1.1.0-reconfigure
      """
    And the machine "w-1" has the items:
      """
      host-os-download-tuning-sysctl-1.1.0-reconfigure
      host-os-tuning-sysctl-1.1.0-reconfigure
      """
    And the machine "w-2" has no items
    And the host OS configuration "tuning" selects "w-0, w-1"

  @H9
  Scenario: An empty selector selects no machine
    When the operator applies the host OS configuration "tuning":
      """
      machineSelector: {}
      configs:
      - {module: failing, moduleVersion: 1.0.0}
      """
    Then the host OS configuration "tuning" is valid
    And the machine "w-0" has no items

  @H10
  Scenario: A configuration selects machines of its namespace
    When the operator creates the host OS configuration "tuning" in another namespace:
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: failing, moduleVersion: 1.0.0}
      """
    Then the machine "w-0" has no items

  @H14
  Scenario: Values that violate the schema change nothing
    Given the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.1.0, values: {options: {vm.swappiness: 10}}}
      """
    And the host OS configuration "tuning" is not valid: "schema validation failed: values: missing required "
    And the machine "w-0" has no items
    When the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.1.0, values: {filename: 90-lab, options: {vm.swappiness: 10}}}
      """
    And the machine "w-0" has the items:
      """
      host-os-download-tuning-sysctl-1.1.0-reconfigure
      host-os-tuning-sysctl-1.1.0-reconfigure
      """
    And the operator applies the host OS configuration "tuning":
      """
      machineSelector: {}
      configs:
      - {module: sysctl, moduleVersion: 1.1.0, values: {filename: "90 lab", options: {vm.swappiness: 20}}}
      """
    Then the host OS configuration "tuning" is not valid: "schema validation failed: values.filename: must match"
    And the items of the machine "w-0" stay as they were

  @H15
  Scenario: A configuration becomes valid with its module
    Given the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: failing, moduleVersion: 2.0.0}
      """
    And the host OS configuration "tuning" is not valid: "no HostOSConfigurationModules has module failing 2.0.0"
    And the machine "w-0" has no items
    When the operator lists the modules "failing 1.0.0, failing 2.0.0"
    Then the host OS configuration "tuning" is valid
    And the machine "w-0" has the items:
      """
      host-os-download-tuning-failing-2.0.0-reconfigure
      host-os-tuning-failing-2.0.0-reconfigure
      """

  @H16
  Scenario: A module that does not support the machine's distribution
    Given the machine "w-0" runs "rocky/9"
    And the machine "w-1" runs "debian/bookworm"
    When the operator applies the host OS configuration "tools":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: packages, moduleVersion: 1.0.0, values: {files: [metalab-hello_1.0.0_all.deb]}}
      """
    Then the machine "w-1" has the items:
      """
      host-os-download-tools-packages-1.0.0-reconfigure
      host-os-tools-packages-1.0.0-reconfigure
      """
    And the machine "w-0" has no items
    And the host OS configuration "tools" waits for "w-0": "packages-1.0.0: the distribution rocky/9 is not one of debian/bookworm, debian/trixie, ubuntu/jammy, ubuntu/noble"
    And the host OS configuration "tools" waits for "w-2": "the distribution is not reported yet"

  @H17
  Scenario: Configs are executed in their order
    When the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: failing, moduleVersion: 1.0.0}
      - {module: sysctl, moduleVersion: 1.1.0, order: 2, values: {filename: 90-lab, options: {vm.swappiness: 10}}}
      - {module: file-template, moduleVersion: 1.0.0, order: 1, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    Then the machine "w-0" has the items:
      """
      host-os-download-tuning-file-template-1.0.0-reconfigure
      host-os-tuning-file-template-1.0.0-reconfigure
      host-os-download-tuning-sysctl-1.1.0-reconfigure
      host-os-tuning-sysctl-1.1.0-reconfigure
      host-os-download-tuning-failing-1.0.0-reconfigure
      host-os-tuning-failing-1.0.0-reconfigure
      """

  @H19 @H21
  Scenario: A Secret that is missing, and its values in no object
    Given the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, password: short, settings: {a: 1}}, secretValues: {name: app}}
      """
    And the host OS configuration "app" is not valid: "secretValues: Secret default/app does not exist"
    When the operator sets the Secret "app" to:
      """
      password: hunter2
      """
    Then the host OS configuration "app" is not valid: "schema validation failed: values.password: must have at least 8 characters"
    When the operator sets the Secret "app" to:
      """
      password: hunter2-hunter2
      """
    Then the host OS configuration "app" is valid
    And the machine "w-0" has the items:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And no object contains "hunter2"

  @H35
  Scenario: Names of items that collide
    Given the operator lists the modules "failing 1.0.0, file-template 1.0.0"
    And the operator applies the host OS configuration "download-x":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: failing, moduleVersion: 1.0.0}
      """
    And the host OS configuration "download-x" is valid
    When the operator applies the host OS configuration "x":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: failing, moduleVersion: 1.0.0, values: {message: of x}}
      """
    Then the host OS configuration "x" is not valid: "HostOSConfiguration download-x has it: give this object another name"
    And the host OS configuration "download-x" is valid
    And the machine "w-0" has the items:
      """
      host-os-download-download-x-failing-1.0.0-reconfigure
      host-os-download-x-failing-1.0.0-reconfigure
      """

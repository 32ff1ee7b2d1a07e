Feature: Life of a host OS configuration
  The provider deploys a cluster on servers of the lab. The LCM agent in the system of each
  server downloads modules and runs their playbooks with Ansible. Items are executed,
  changed, retriggered and removed; nothing that has succeeded runs again without a change,
  and a deleted configuration stays until the agents have forgotten its results. No step
  writes a status.

  Background:
    Given this machine has "user namespaces"
    And this machine has "ansible-playbook"
    And a lab with host OS configuration and 3 servers
    And the operator lists the modules "sysctl 1.0.0, sysctl 1.1.0, file-template 1.0.0, failing 1.0.0, packages 1.0.0"

  @H23 @H26
  Scenario: A module is executed, and not again
    Given the provider has deployed a cluster with the workers "w-0"
    And the module "file-template 1.0.0" is available
    And the module server stalls
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    Then the item "host-os-download-app-file-template-1.0.0-reconfigure" of "app" is "Running" on "w-0"
    And the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Not Started" on "w-0"
    And the machine "w-0" is "Reconfigure" for LCM
    When the module server continues
    Then the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Running" on "w-0"
    And the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Success" on "w-0"
    And the machine "w-0" is "Ready" for LCM
    And the machine "w-0" becomes Ready
    And the agent of "w-0" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the file "/etc/app.conf" of "w-0" contains "a=1"
    When the controller is killed
    And another controller starts
    And ten minutes pass
    Then the agent of "w-0" executes nothing more

  @H20 @H27
  Scenario: Changes of values and of a Secret run the playbook of that config again
    Given the provider has deployed a cluster with the workers "w-0"
    And the operator sets the Secret "app" to:
      """
      password: first-password
      """
    And the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: failing, moduleVersion: 1.0.0, values: {until: /etc/hostname}}
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}, secretValues: {name: app}}
      """
    And the agent of "w-0" has executed:
      """
      host-os-download-app-failing-1.0.0-reconfigure
      host-os-app-failing-1.0.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the file "/etc/app.conf" of "w-0" contains "password=first-password"
    And the change of the Secret of "app" is done on "w-0"
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: failing, moduleVersion: 1.0.0, values: {until: /etc/hostname}}
      - {module: file-template, moduleVersion: 1.0.0, values: {settings: {a: 2}, path: /etc/app.conf}, secretValues: {name: app}}
      """
    Then the agent of "w-0" has executed:
      """
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the file "/etc/app.conf" of "w-0" contains "a=2"
    When the operator sets the Secret "app" to:
      """
      password: second-password
      """
    Then the change of the Secret of "app" is reported on "w-0"
    And the agent of "w-0" has executed:
      """
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the file "/etc/app.conf" of "w-0" contains "password=second-password"
    And the change of the Secret of "app" is done on "w-0"
    And the agent of "w-0" executes nothing more
    And no object contains "first-password"
    And no object contains "second-password"

  @H17 @H24
  Scenario: A playbook fails and is tried again, and later items wait
    Given the provider has deployed a cluster with the workers "w-0"
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: packages, moduleVersion: 1.0.0, order: 2, values: {files: [metalab-hello_1.0.0_all.deb]}}
      - {module: failing, moduleVersion: 1.0.0, order: 1, values: {until: /etc/mended, message: it is not mended}}
      """
    Then the agent of "w-0" has executed these, of which the last has ended with 2:
      """
      host-os-download-app-failing-1.0.0-reconfigure
      host-os-app-failing-1.0.0-reconfigure
      """
    And the item "host-os-app-failing-1.0.0-reconfigure" of "app" is "Failed" on "w-0"
    And the item "host-os-download-app-packages-1.0.0-reconfigure" of "app" is "Not Started" on "w-0"
    And the machine "w-0" is "Reconfigure" for LCM
    When ten minutes pass
    Then the item "host-os-app-failing-1.0.0-reconfigure" of "w-0" has failed 2 times with 2: "it is not mended"
    When the command "touch /etc/mended" runs on "w-0"
    And ten minutes pass
    Then the agent of "w-0" has executed:
      """
      host-os-app-failing-1.0.0-reconfigure
      host-os-download-app-packages-1.0.0-reconfigure
      host-os-app-packages-1.0.0-reconfigure
      """
    And the item "host-os-app-failing-1.0.0-reconfigure" of "app" is "Success" on "w-0"
    And the machine "w-0" is "Ready" for LCM
    And the command "dpkg --status metalab-hello" runs on "w-0"
    And the file "/usr/share/metalab-hello/hello" of "w-0" contains "hello"

  @H24
  Scenario: The root of the server is full
    Given the provider has deployed a cluster with the workers "w-0"
    And the file "/var/full" of "w-0" fills its root
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    Then the item "host-os-download-app-file-template-1.0.0-reconfigure" of "w-0" has failed 1 times with 1: "no space left on device"
    And the item "host-os-download-app-file-template-1.0.0-reconfigure" of "app" is "Failed" on "w-0"
    When the command "rm /var/full" runs on "w-0"
    And ten minutes pass
    Then the agent of "w-0" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the file "/etc/app.conf" of "w-0" contains "a=1"
    And the machine "w-0" is "Ready" for LCM

  @H25
  Scenario Outline: The agent gets another archive than the controller: <archive>
    Given the provider has deployed a cluster with the workers "w-0"
    And the module "file-template 1.0.0" is available
    And the archive of the module "file-template 1.0.0" is replaced by <archive>
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    Then the agent of "w-0" has executed these, of which the last has ended with 1:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      """
    And the item "host-os-download-app-file-template-1.0.0-reconfigure" of "w-0" has failed 1 times with 1: "hashes are not the same: got '"
    And the item "host-os-download-app-file-template-1.0.0-reconfigure" of "app" is "Failed" on "w-0"
    And the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Not Started" on "w-0"

    @sample-1
    Examples:
      | archive                |
      | that of another module |
      | a damaged one          |

  @H31 @H32
  Scenario: A machine leaves, and another one joins
    Given the provider has deployed a cluster with the workers "w-0"
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
    When the operator removes the label of the machine "w-0"
    And the operator adds the machine "w-1" to the cluster
    Then the host OS configuration "app" selects "w-1"
    And the machine "w-0" has lost its host OS items and their results
    And the file "/etc/app.conf" of "w-0" contains "a=1"
    And the agent of "w-1" has executed:
      """
      deploy
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the file "/etc/app.conf" of "w-1" contains "a=1"
    And the machine "w-1" becomes Ready

  @H29 @H30
  Scenario: A deleted configuration waits for a server that is off
    Given the provider has deployed a cluster with the workers "w-0, w-1"
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
    And the agent of "w-1" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the operator switches off the server of "w-1"
    When the operator deletes the host OS configuration "app"
    Then the machine "w-0" has lost its host OS items and their results
    When the controller is killed
    And another controller starts
    And ten minutes pass
    Then the host OS configuration "app" still exists
    And the host OS configuration "app" waits for "w-1": "the agent has not removed the results yet"
    When the operator switches on the server of "w-1"
    Then the host OS configuration "app" no longer exists
    And the machine "w-1" has lost its host OS items and their results
    And the agent of "w-1" executes nothing more
    And the file "/etc/app.conf" of "w-0" contains "a=1"
    And the file "/etc/app.conf" of "w-1" contains "a=1"

  @H33
  Scenario: A module requests a reboot
    Given the provider has deployed a cluster with the workers "w-0"
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}, reboot_reason: the settings of app have changed}}
      """
    Then the agent of "w-0" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the machine "w-0" reports a reboot request: "the settings of app have changed"
    When ten minutes pass
    Then the server of "w-0" has not booted again

  @full @H6
  Scenario: A deprecated module is executed
    Given the provider has deployed a cluster with the workers "w-0"
    When the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.0.0, values: {filename: 90-lab, options: {vm.swappiness: 10}}}
      """
    Then the module "sysctl 1.0.0" is deprecated
    And the host OS configuration "tuning" has a deprecated module
    And the agent of "w-0" has executed:
      """
      host-os-download-tuning-sysctl-1.0.0-reconfigure
      host-os-tuning-sysctl-1.0.0-reconfigure
      """
    And the file "/etc/sysctl.d/90-lab.conf" of "w-0" contains "vm.swappiness = 10"

  @full @H22
  Scenario: Items are withheld from a machine in maintenance
    Given the provider has deployed a cluster with the workers "w-0, w-1"
    And the operator begins the maintenance of the machine "w-1"
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    Then the host OS configuration "app" waits for "w-1": "the machine is in maintenance"
    And the agent of "w-0" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the agent of "w-1" executes nothing more
    When the operator ends the maintenance of the machine "w-1"
    Then the agent of "w-1" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """

  @full @H28
  Scenario: A cleared and restored selector runs all items again
    Given the provider has deployed a cluster with the workers "w-0"
    And the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: failing, moduleVersion: 1.0.0, values: {until: /etc/hostname}}
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    And the agent of "w-0" has executed:
      """
      host-os-download-app-failing-1.0.0-reconfigure
      host-os-app-failing-1.0.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    When the operator clears the selector of the host OS configuration "app"
    Then the machine "w-0" has lost its host OS items and their results
    When the operator restores the selector of the host OS configuration "app"
    Then the agent of "w-0" has executed:
      """
      host-os-download-app-failing-1.0.0-reconfigure
      host-os-app-failing-1.0.0-reconfigure
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """

  @full @H23 @H26 @H29
  Scenario: The controller is killed at each step
    Given the provider has deployed a cluster with the workers "w-0"
    And the module "file-template 1.0.0" is available
    And the module server stalls
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    And the controller is killed
    And another controller starts
    Then the item "host-os-download-app-file-template-1.0.0-reconfigure" of "app" is "Running" on "w-0"
    When the controller is killed
    And another controller starts
    And the module server continues
    Then the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Running" on "w-0"
    When the controller is killed
    Then the agent of "w-0" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    When another controller starts
    Then the item "host-os-app-file-template-1.0.0-reconfigure" of "app" is "Success" on "w-0"
    When the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 2}}}
      """
    And the controller is killed
    And another controller starts
    Then the agent of "w-0" has executed:
      """
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the file "/etc/app.conf" of "w-0" contains "a=2"
    When the operator deletes the host OS configuration "app"
    And the controller is killed
    And another controller starts
    Then the host OS configuration "app" no longer exists
    And the machine "w-0" has lost its host OS items and their results
    And the agent of "w-0" executes nothing more
    And the file "/etc/app.conf" of "w-0" contains "a=2"

  @full
  Scenario: Two agents on one LCMMachine
    Given the provider has deployed a cluster with the workers "w-0, w-1"
    When the server of "w-1" gets the agent's files of "w-0"
    And the operator applies the host OS configuration "app":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: file-template, moduleVersion: 1.0.0, values: {path: /etc/app.conf, settings: {a: 1}}}
      """
    Then the agent of "w-0" has executed:
      """
      host-os-download-app-file-template-1.0.0-reconfigure
      host-os-app-file-template-1.0.0-reconfigure
      """
    And the file "/etc/app.conf" of "w-0" contains "a=1"
    And the agent on "w-1" has not written "/etc/app.conf"
    And the item "host-os-download-app-file-template-1.0.0-reconfigure" of "app" is "Not Started" on "w-1"

Feature: Host OS modules
  An operator lists modules by URL and SHA-256. The controller loads each archive, and
  reports in the list's status the content of each module, or why it cannot be used.

  Background:
    Given a lab with host OS configuration

  @H1
  Scenario: A module is loaded
    When the operator lists the modules "sysctl 1.1.0, file-template 1.0.0"
    Then the module "sysctl 1.1.0" is available
    And the module "file-template 1.0.0" is available

  @H2 @H3 @H4 @H5 @fault
  Scenario Outline: A module cannot be loaded: <fault>
    When the operator lists the modules "sysctl 1.1.0" with <fault>
    Then the module "sysctl 1.1.0" has the error "<error>"

    Examples:
      | fault                        | error                                                                                    |
      | another SHA-256              | hashes are not the same: got 'GOT' want 'WANT'                                           |
      | no archive on the server     | failed to perform request to fetch the module archive: Get 'URL': Forbidden              |
      | a damaged archive            | unexpected EOF                                                                           |
      | an archive of another module | the archive has module failing 1.1.0, not sysctl 1.1.0: correct name and version         |

  @H3 @fault
  Scenario: A module is loaded once its server has it
    Given the operator lists the modules "sysctl 1.1.0" with no archive on the server
    And the module "sysctl 1.1.0" has the error "Forbidden"
    When the operator publishes the archives of the modules "sysctl 1.1.0"
    And ten minutes pass
    Then the module "sysctl 1.1.0" is available

  @H6
  Scenario: A deprecated module is applied
    Given a cluster with the workers "w-0"
    When the operator lists the modules "sysctl 1.0.0, sysctl 1.1.0"
    And the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.0.0, values: {filename: 90-lab, options: {vm.swappiness: 10}}}
      """
    Then the module "sysctl 1.0.0" is deprecated
    And the module "sysctl 1.1.0" is available
    And the host OS configuration "tuning" is valid
    And the host OS configuration "tuning" has a deprecated module
    And the machine "w-0" has the items:
      """
      host-os-download-tuning-sysctl-1.0.0-reconfigure
      host-os-tuning-sysctl-1.0.0-reconfigure
      """

  @H8
  Scenario: A module that is in use is not removed
    Given a cluster with the workers "w-0"
    And the operator lists the modules "sysctl 1.0.0, file-template 1.0.0"
    And the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.0.0, values: {filename: 90-lab, options: {vm.swappiness: 10}}}
      """
    When the operator tries to remove the module "sysctl 1.0.0"
    Then it is refused with: module sysctl 1.0.0 is used by default/tuning: remove it from the configurations first
    When the operator tries to delete the list of modules
    Then it is refused with: module sysctl 1.0.0 is used by default/tuning: remove it from the configurations first
    When the operator tries to remove the module "file-template 1.0.0"
    Then it is accepted
    When the operator deletes the host OS configuration "tuning"
    And the operator tries to remove the module "sysctl 1.0.0"
    Then it is accepted
    When the operator tries to delete the list of modules
    Then it is accepted

Feature: The vendor's list of host OS modules
  The controller copies the vendor's index to the list mcc-modules, sorted by version. The
  archives of modules without a URL are in the index's directory.

  Background:
    Given a lab with host OS configuration and a vendor's index
    And a cluster with the workers "w-0"
    And the vendor publishes the modules "sysctl 1.10.0, sysctl 1.9.0, file-template 1.0.0"

  @H7
  Scenario: An edit of the vendor's list is overwritten
    When ten minutes pass
    Then the vendor's list has the modules "file-template 1.0.0, sysctl 1.9.0, sysctl 1.10.0"
    When the operator makes the vendor's list the modules "mine 1.0.0"
    Then the vendor's list has the modules "file-template 1.0.0, sysctl 1.9.0, sysctl 1.10.0"
    When the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.10.0, values: {filename: 90-lab, options: {vm.swappiness: 10}}}
      """
    Then the host OS configuration "tuning" is valid

  @H7 @H8
  Scenario: A module that is in use stays when the index no longer has it
    Given ten minutes pass
    And the vendor's list has the modules "file-template 1.0.0, sysctl 1.9.0, sysctl 1.10.0"
    And the operator applies the host OS configuration "tuning":
      """
      machineSelector: {matchLabels: {day2: "true"}}
      configs:
      - {module: sysctl, moduleVersion: 1.9.0, values: {filename: 90-lab, options: {vm.swappiness: 10}}}
      """
    When the vendor publishes the modules "sysctl 1.10.0"
    And ten minutes pass
    Then the vendor's list has the modules "sysctl 1.9.0, sysctl 1.10.0"
    And the vendor's list still has the module "sysctl 1.9.0"

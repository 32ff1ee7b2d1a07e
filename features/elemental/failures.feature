Feature: Failures of servers that register themselves
  The agent or the controller is killed, the power fails, the registration is wrong, frozen or
  without its key: the server goes on when the cause is gone, and no host is doubled.

  Background:
    Given a lab with 1 server that can register itself

  @E-10 @E-20
  Scenario: The controller and the agent are killed while the server registers and bootstraps
    Given the operator offers the registration "reg":
      """
      elemental:
        agent:
          osPlugin: elemental-sim
          reconciliation: 300000000
          hostname: {useExisting: true}
          postInstall: {reboot: true}
      """
    When the controller is killed
    And the servers boot the seed of "reg"
    Then no server registers with "reg"
    When the agent on the server "node-0" is killed
    And another controller starts
    Then the server "node-0" is installed by its registration
    When the controller is killed
    And another controller starts
    And the agent on the server "node-0" is killed
    And the operator makes a cluster of the machine "m-0"
    Then the ElementalMachine "m-0" is ready, and its Node has its provider ID
    When the power of the server "node-0" fails and returns
    Then the ElementalHost of the server "node-0" has the phase "Running"
    And the ElementalMachine "m-0" is ready, and its Node has its provider ID

  @E-14
  Scenario: A wrong cloud-config and a wrong disk are corrected
    Given the operator offers the registration "reg":
      """
      cloudConfig: {write_files: wrong}
      elemental:
        agent: {osPlugin: elemental-sim, reconciliation: 300000000, hostname: {useExisting: true}, postInstall: {reboot: true}}
      """
    When the servers boot the seed of "reg"
    Then the ElementalHost of the server "node-0" has the condition "InstallationReady" False by "CloudConfigInstallationFailed"
    When the operator replaces the config of the registration "reg":
      """
      elemental:
        agent: {osPlugin: elemental-sim, reconciliation: 300000000, hostname: {useExisting: true}, postInstall: {reboot: true}}
        install: {device: /dev/sdz}
      """
    Then the ElementalHost of the server "node-0" has the condition "InstallationReady" False by "InstallationFailed"
    When the operator replaces the config of the registration "reg":
      """
      elemental:
        agent: {osPlugin: elemental-sim, reconciliation: 300000000, hostname: {useExisting: true}, postInstall: {reboot: true}}
      """
    Then the server "node-0" is installed by its registration

  @E-02 @E-03
  Scenario: A frozen registration, and one whose key is gone, register nobody
    Given the operator offers the registration "reg":
      """
      elemental:
        registration: {tokenDuration: -1}
        agent: {osPlugin: elemental-sim, reconciliation: 300000000, hostname: {useExisting: true}, postInstall: {reboot: true}}
      """
    When the servers boot the seed of "reg"
    Then no server registers with "reg"
    Given the operator offers the registration "other":
      """
      elemental:
        agent: {osPlugin: elemental-sim, reconciliation: 300000000, hostname: {useExisting: true}, postInstall: {reboot: true}}
      """
    And the Secret of the registration "other" is deleted
    When the servers boot the seed of "other"
    Then no server registers with "other"
    When the operator gives the registration "other" a new key
    Then no server registers with "other"
    When the servers boot the seed of "other"
    Then the server "node-0" is installed by its registration

  @E-02 @E-08 @E-10
  Scenario: The token has expired, the clock of the server is wrong, its disk is full
    Given the operator offers the registration "reg":
      """
      elemental:
        registration: {tokenDuration: 1000000000}
        agent: {osPlugin: elemental-sim, reconciliation: 300000000, hostname: {useExisting: true}, postInstall: {reboot: true}}
      """
    When the token of the registration "reg" expires
    And the servers boot the seed of "reg"
    Then no server registers with "reg"
    When the operator gives the registration "reg" a token without end
    And the clock of the server "node-0" is 5 minutes behind
    And the servers boot the seed of "reg"
    Then no server registers with "reg"
    When the clock of the server "node-0" is 5 minutes ahead
    Then no server registers with "reg"
    When nothing is wrong with the server "node-0" any more
    Then the server "node-0" is installed by its registration
    And the ElementalHost of the server "node-0" has the phase "Running"
    And the ElementalHost of the server "node-0" has the condition "OSVersionReady" True
    When the file systems of the server "node-0" are full
    And the operator makes a cluster of the machine "m-0"
    Then the ElementalHost of the server "node-0" has the condition "BootstrapReady" False by "BootstrapFailed"
    When nothing is wrong with the server "node-0" any more
    Then the ElementalMachine "m-0" is ready, and its Node has its provider ID

  @E-36
  Scenario: The TLS certificate of the registration server is replaced
    Given the operator offers the registration "reg":
      """
      elemental:
        agent: {osPlugin: elemental-sim, reconciliation: 300000000, hostname: {useExisting: true}, postInstall: {reboot: true}}
      """
    When the registration server gets a certificate of another authority
    And the servers boot the seed of "reg"
    Then no server registers with "reg"
    When the operator gives the registration "reg" the authority of the registration server
    And the servers boot the seed of "reg"
    Then the server "node-0" is installed by its registration
    And the ElementalHost of the server "node-0" has the phase "Running"
    When the registration server gets a certificate of the lab's authority
    And the operator makes a cluster of the machine "m-0"
    And the registration server gets a certificate of another authority
    Then the ElementalMachine "m-0" is ready, and its Node has its provider ID

  @E-09 @E-13 @E-20 @E-28 @E-29 @sample-2
  Scenario Outline: The <part> is killed in <phases>
    Given the operator offers the registration "reg":
      """
      elemental:
        agent:
          osPlugin: elemental-sim
          reconciliation: 300000000
          hostname: {useExisting: true}
          postInstall: {reboot: true}
          postReset: {reboot: true}
      """
    And the <part> of the server "node-0" will be killed in the phases "<phases>"
    When the servers boot the seed of "reg"
    And the operator makes a cluster of the machine "m-0"
    Then the ElementalMachine "m-0" is ready, and its Node has its provider ID
    When the operator updates "m-0" in place to the image "metalab-demo.img"
    Then the update in place of "m-0" is done
    When the operator gives up the machine "m-0"
    Then the server "node-0" is another host, and installed
    And it has been killed in all these phases

    Examples:
      | part       | phases                                                                    |
      | agent      | Registering, Installing, Bootstrapping, Reconciling OS Version, Resetting |
      | controller | Registering, Installing, Bootstrapping, Reconciling OS Version, Resetting |
      | agent      | Finalizing Registration, Running, Triggering Reset                        |
      | controller | Finalizing Registration, Running, Triggering Reset                        |

  @E-13 @E-20 @E-28 @E-29 @E-36 @sample-1
  Scenario Outline: The server has <trouble> for a while in each phase
    Given the operator offers the registration "reg":
      """
      elemental:
        agent:
          osPlugin: elemental-sim
          reconciliation: 300000000
          hostname: {useExisting: true}
          postInstall: {reboot: true}
          postReset: {reboot: true}
      """
    And the server "node-0" will have <trouble> in the phases "<phases>"
    When the servers boot the seed of "reg"
    And the operator makes a cluster of the machine "m-0"
    Then the ElementalMachine "m-0" is ready, and its Node has its provider ID
    When the operator updates "m-0" in place to the image "metalab-demo.img"
    Then the update in place of "m-0" is done
    When the operator gives up the machine "m-0"
    Then the server "node-0" is another host, and installed
    And that was so in all these phases

    Examples:
      | trouble                                        | phases                                                                    |
      | a clock that is late                           | Registering, Installing, Bootstrapping, Reconciling OS Version, Resetting |
      | full file systems                              | Registering, Installing, Bootstrapping, Reconciling OS Version, Resetting |
      | a wrong certificate of the registration server | Registering, Installing, Bootstrapping, Reconciling OS Version, Resetting |

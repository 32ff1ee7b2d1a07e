Feature: Servers that register themselves become machines
  The controllers and the registration API are the product's; the agents of these scenarios are
  played by the steps, which send what an agent sends. A stand-in does what Cluster API's core
  does.

  Background:
    Given a lab with the Elemental API

  @E-01 @E-05 @E-17 @E-25
  Scenario: A server registers, bootstraps and becomes a node
    Given a registration
    When the operator creates the Elemental cluster "c" with the machines "m-0"
    Then the condition AssociationReady of the Elemental machine "m-0" is "False MissingAvailableHosts Warning"
    When the agents of "h-0" register and install
    Then the Elemental machine "m-0" has the host "h-0"
    And the condition HostReady of the Elemental machine "m-0" is "False HostWaitingForBootstrap Info"
    When the agent of "h-0" bootstraps as the node "h-0"
    Then the node "h-0" has the provider ID "elemental://default/h-0" and no taint
    And the Elemental machine "m-0" is ready
    And the condition BootstrapReady of the Elemental host "h-0" is "True"

  @E-26
  Scenario: A server bootstraps and does not join
    Given a registration
    When the operator creates the Elemental cluster "c" with the machines "m-0"
    And the agents of "h-0" register and install
    And the agent of "h-0" bootstraps without joining
    Then the condition ProviderIDReady of the Elemental machine "m-0" is "False NodeNotFound Error"

  @E-19
  Scenario: Machines race for hosts
    Given a registration
    When the operator creates the Elemental cluster "c" with the machines "m-0, m-1, m-2, m-3, m-4, m-5, m-6, m-7"
    And the agents of "h-0, h-1, h-2, h-3, h-4" register and install
    Then 5 Elemental machines have a host each, and 3 wait for one

  @E-18
  Scenario: The controller is killed while machines get hosts
    Given a registration
    When the agents of "h-0, h-1, h-2, h-3" register and install
    And the operator creates the Elemental cluster "c" with the machines "m-0, m-1, m-2"
    And the controller is killed once a machine has chosen a host
    And another controller starts
    Then 3 Elemental machines have a host each, and 0 wait for one

  @E-29 @E-31
  Scenario: A machine is deleted, and its server resets itself and registers again
    Given a registration
    When the operator creates the Elemental cluster "c" with the machines "m-0"
    And the agents of "h-0" register and install
    And the agent of "h-0" bootstraps as the node "h-0"
    And the Elemental machine "m-0" is ready
    And the operator deletes the Machine "m-0"
    Then the Machine "m-0" goes
    And the agent of "h-0" learns that it needs a reset
    And the host "h-0" stays
    When the agent of "h-0" resets the server
    Then the host "h-0" goes
    And a report of the agent of "h-0" gets 404
    When the agents of "h-0" register and install
    Then a report of the agent of "h-0" gets 200

  @E-31
  Scenario: A host is deleted, and its machine gets another
    Given a registration
    When the operator creates the Elemental cluster "c" with the machines "m-0"
    And the agents of "h-0" register and install
    And the Elemental machine "m-0" has the host "h-0"
    And the operator deletes the host "h-0"
    Then the agent of "h-0" learns that it needs a reset
    And the condition ResetReady of the Elemental host "h-0" is "False WaitingForReset Info"
    When the agent of "h-0" resets the server
    And the agents of "h-1" register and install
    Then the Elemental machine "m-0" has the host "h-1"

  @E-33
  Scenario: A machine whose host is gone is deleted
    Given a registration
    When the operator creates the Elemental cluster "c" with the machines "m-0"
    And the agents of "h-0" register and install
    And the Elemental machine "m-0" has the host "h-0"
    And the operator removes the host "h-0" and its finalizer
    And the operator deletes the Machine "m-0"
    Then the Elemental machine "m-0" goes
    And the Machine "m-0" goes

  @E-02
  Scenario: A registration is frozen
    Given a registration that is frozen
    Then the registration of the agent of "h-0" gets 403

  @E-03
  Scenario: The signing key of a registration is replaced
    Given a registration
    When the agents of "h-0" register and install
    And the operator deletes the Secret of the registration
    Then the registration of the agent of "h-0" gets 500
    And a report of the agent of "h-0" gets 200
    When the operator has the registration's key replaced
    Then the registration of the agent of "h-0" gets 403
    And a report of the agent of "h-0" gets 200
    And the agents of "h-1" register and install

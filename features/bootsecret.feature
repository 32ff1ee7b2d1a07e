Feature: The boot of a server's agent is a secret
  The medium that a server boots its agent from has a token. With it the agent
  gets the host's work, and the user data. The token is good for one agent: the
  first that uses it.

  Background:
    Given a lab with 1 server
    And the BMC has a user who may only read

  Scenario: A user of the BMC who may only read does not find the token
    Given the server's agent will not report
    When the operator registers the server
    And time stands still when the server has booted its agent
    Then the user who may only read finds the token of the boot nowhere at the BMC
    And the address of the medium that this user reads serves nothing

  Scenario: A stolen token is worth nothing once the server's agent has used it
    Given the operator has registered the server
    And the image server stalls in the middle of the image
    When the operator sets user data "the secret of this host" and the name "node-7"
    And the operator sets the image
    And the image is being written
    And a stranger has read the boot medium
    Then the stranger's agent is refused
    And nobody can fetch the boot medium any more
    And the events include "AgentRefused"
    When the controller is killed
    And another controller starts
    Then the stranger's agent is refused
    And nobody can fetch the boot medium any more
    When the image server continues
    Then the host becomes "provisioned"
    And the stranger's agent is unknown
    And nobody can fetch the boot medium any more
    And the image was downloaded once

  Scenario: The host says that a stranger was faster than its agent
    Given the server's agent will not report
    When the operator registers the server
    And time stands still when the server has booted its agent
    And a stranger asks for the server's work first
    And the server's agent will report again
    And somebody restarts the server from its virtual CD
    And time goes on
    Then the events include "AgentRefused"
    And the host has reported the error message "another one with its token was refused"
    And the host becomes "available"
    And the inspection found the server's hardware

  Scenario: A token that was stolen from the provisioning network is worth nothing, either
    When the operator registers the server by "redfish"
    Then the host becomes "available"
    Given the image server stalls in the middle of the image
    When the operator sets the image
    And the image is being written
    And a stranger has read the boot medium
    Then the stranger's agent is refused
    And a machine with the server's MAC address boots nothing over the network
    And the events include "AgentRefused"
    When the image server continues
    Then the host becomes "provisioned"
    And a machine with the server's MAC address boots nothing over the network

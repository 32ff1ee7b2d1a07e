Feature: baremetalhost.metal3.io/detached
  The controllers let a server go without touching it, and take it back the same
  way.

  Background:
    Given a lab with 1 server

  @B-91 @B-80 @B-83
  Scenario: A detached server is left alone, and taken back without a reset
    Given the operator has provisioned the server
    And the server runs what its first disk holds
    When the operator counts how often the server is reset
    And the operator detaches the host
    Then the host's operational status is "detached"
    And the condition "Ready" is False because of "Detached"
    When the BMC of the server is asked nothing from now on
    And the operator sets online to false
    And 30 minutes pass
    Then the BMC was asked nothing
    And the host stays "provisioned"
    And the server runs what its first disk holds
    When the operator sets online to true
    And the operator attaches the host
    Then the host's operational status is "OK"
    And the host stays "provisioned"
    And the server was not reset

  @B-91
  Scenario Outline: A host that is <state>
    Given the operator registers the server with:
      """
      spec: {externallyProvisioned: <external>}
      """
    And the host becomes "<state>"
    When the operator detaches the host
    Then the host's operational status is "detached"
    And the host stays "<state>"
    When the operator attaches the host
    Then the host's operational status is "OK"
    And the host stays "<state>"

    Examples:
      | state                  | external |
      | available              | false    |
      | externally provisioned | true     |

  @B-91
  Scenario: An operation that is under way is ended first
    Given the operator has registered the server
    And the image server stops in the middle of the image
    When the operator asks for the lab's image
    And the image is being written
    And the operator detaches the host
    And the image server goes on
    Then the host becomes "provisioned"
    And the host's operational status is "detached"

  @B-91 @B-92
  Scenario: An operation that is under way is broken off if somebody insists
    Given the server's agent will be silent
    And the operator registers the server
    And the host becomes "inspecting"
    When the operator annotates the host with "baremetalhost.metal3.io/detached" saying '{"force":true}'
    Then the host's operational status is "detached"
    And the host stays "inspecting"

  @B-92
  Scenario: A value that is no JSON says nothing
    Given the operator has registered the server
    When the operator annotates the host with "baremetalhost.metal3.io/detached" saying 'because I say so'
    Then the host's operational status is "detached"

  @B-93
  Scenario Outline: A detached host is deleted, with the value '<value>'
    Given the operator has provisioned the server
    And the server runs what its first disk holds
    When the operator annotates the host with "baremetalhost.metal3.io/detached" saying '<value>'
    And the host's operational status is "detached"
    And the operator deletes the host
    Then the host is gone
    And it never was "deprovisioning"
    And the server runs what its first disk holds
    And the server's first disk begins with the image

    Examples:
      | value                     |
      |                           |
      | {"deleteAction":"delete"} |

  @B-93
  Scenario: A deletion that waits until the host is attached
    Given the operator has provisioned the server
    When the operator annotates the host with "baremetalhost.metal3.io/detached" saying '{"deleteAction":"delay"}'
    And the host's operational status is "detached"
    And the operator deletes the host
    And 30 minutes pass
    Then the host stays "provisioned"
    When the operator attaches the host
    Then the host is gone
    And it passed through "provisioned, deprovisioning, powering off before delete"
    And the server's disks hold no partition table

  @B-94 @B-271
  Scenario: A detached server may have another BMC
    Given the operator has registered the server
    When the operator detaches the host
    And the host's operational status is "detached"
    And the operator gives the host a BMC address without a path
    And the operator attaches the host
    Then the host's operational status is "OK"
    And the host reports no error
    And the host stays "available"

  @B-91 @fault
  Scenario: A server whose BMC is gone can be detached
    Given the operator has provisioned the server
    And the BMC is silent
    When the operator detaches the host
    Then the host's operational status is "detached"
    And the host stays "provisioned"

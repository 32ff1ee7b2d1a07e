Feature: baremetalhost.metal3.io/detached
  A detached host is not managed, and is attached again without touching its
  server.

  Background:
    Given a lab with 1 server

  @B-91 @B-80 @B-83
  Scenario: A detached server is not touched, and attached again without a reset
    Given the operator has provisioned the server
    And the server runs from its first disk
    When resets of the server are counted
    And the operator detaches the host
    Then the host's operational status is "detached"
    And the condition "Ready" is False with reason "Detached"
    When requests to the BMC are counted
    And the operator sets online to false
    And 30 minutes pass
    Then the BMC has received no request
    And the host stays "provisioned"
    And the server runs from its first disk
    When the operator sets online to true
    And the operator attaches the host
    Then the host's operational status is "OK"
    And the host stays "provisioned"
    And the server was not reset

  @B-91
  Scenario Outline: A host in the state <state> is detached and attached
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
  Scenario: A running operation is finished first
    Given the operator has registered the server
    And the image server stalls in the middle of the image
    When the operator sets the image
    And the image is being written
    And the operator detaches the host
    And the image server continues
    Then the host becomes "provisioned"
    And the host's operational status is "detached"

  @B-91 @B-92
  Scenario: A running operation is aborted with force
    Given the server's agent will not report
    And the operator registers the server
    And the host becomes "inspecting"
    When the operator annotates the host with "baremetalhost.metal3.io/detached" set to '{"force":true}'
    Then the host's operational status is "detached"
    And the host stays "inspecting"

  @B-92
  Scenario: A value that is no JSON is ignored
    Given the operator has registered the server
    When the operator annotates the host with "baremetalhost.metal3.io/detached" set to 'because I say so'
    Then the host's operational status is "detached"

  @B-93
  Scenario Outline: A detached host is deleted without deprovisioning: '<value>'
    Given the operator has provisioned the server
    And the server runs from its first disk
    When the operator annotates the host with "baremetalhost.metal3.io/detached" set to '<value>'
    And the host's operational status is "detached"
    And the operator deletes the host
    Then the host is deleted
    And it was never "deprovisioning"
    And the server runs from its first disk
    And the server's first disk begins with the image

    Examples:
      | value                     |
      |                           |
      | {"deleteAction":"delete"} |

  @B-93
  Scenario: deleteAction delay defers the deletion until the host is attached
    Given the operator has provisioned the server
    When the operator annotates the host with "baremetalhost.metal3.io/detached" set to '{"deleteAction":"delay"}'
    And the host's operational status is "detached"
    And the operator deletes the host
    And 30 minutes pass
    Then the host stays "provisioned"
    When the operator attaches the host
    Then the host is deleted
    And it passed through "provisioned, deprovisioning, powering off before delete"
    And the server's disks have no partition table

  @B-94 @B-271
  Scenario: The BMC address of a detached host can be changed
    Given the operator has registered the server
    When the operator detaches the host
    And the host's operational status is "detached"
    And the operator gives the host a BMC address without a path
    And the operator attaches the host
    Then the host's operational status is "OK"
    And the host reports no error
    And the host stays "available"

  @B-91 @fault
  Scenario: A host whose BMC is offline can be detached
    Given the operator has provisioned the server
    And the BMC is offline
    When the operator detaches the host
    Then the host's operational status is "detached"
    And the host stays "provisioned"

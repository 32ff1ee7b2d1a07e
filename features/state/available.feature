Feature: available
  A host that waits for work. Its power is as the operator wants it.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-26 @B-83
  Scenario: What an available host shows
    Then the conditions say that "Manageable, AvailableForProvisioning" are true
    And the conditions say that "Provisioned, Ready, Progressing" are false
    And the condition "Healthy" is True because of "Healthy"
    And the host's operational status is "OK"

  @B-120 @B-121 @B-122
  Scenario: Power is as the operator wants it
    When the operator sets online to false
    Then the server is off
    And the host's status has "poweredOn" as "false"
    And the events tell of "PowerOff"
    When the operator sets online to true
    Then the server is on
    And the host's status has "poweredOn" as "true"
    And the events tell of "PowerOn"

  @B-55 @B-56
  Scenario: A host that is to be off is not provisioned
    When the operator sets online to false
    And the server is off
    And the operator asks for the lab's image
    And 10 minutes pass
    Then the host stays "available"
    When the operator sets online to true
    Then the host becomes "provisioned"

  @B-07 @B-06
  Scenario: What the controllers write wakes nobody
    When a minute passes
    And the host has settled
    And ten minutes pass
    Then the host has not been written again

  @B-261 @B-262
  Scenario: Whoever uses a host says so
    When the operator edits the host:
      """
      spec:
        description: third from above
        consumerRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Metal3Machine, name: web-0, namespace: default}
        taints: [{key: broken, value: fan, effect: NoSchedule}]
      """
    And the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the events of "ProvisioningComplete" are related to "web-0"

  @B-124 @B-82 @B-83 @fault
  Scenario: The power cannot be switched
    Given the BMC refuses to switch the server
    When the operator sets online to false
    Then the host reports "power management error"
    And the host's error says "PowerOff operation failed"
    And the condition "Manageable" is False because of "PowerFailure"
    And the events tell of "PowerManagementError"
    When the BMC is as it was
    Then the server is off
    And the host reports no error

  @B-55 @B-260 @B-64
  Scenario: Somebody else takes the server over, and gives it back
    When the operator edits the host:
      """
      spec: {externallyProvisioned: true}
      """
    Then the host becomes "externally provisioned"
    When the operator edits the host:
      """
      spec: {externallyProvisioned: false}
      """
    Then the host becomes "available"
    And it passed through "externally provisioned, deprovisioning, available"

  @B-68 @B-70
  Scenario: An available host is deleted
    When the operator deletes the host
    Then the host is gone
    And it passed through "available, powering off before delete, deleting"
    And the server is off

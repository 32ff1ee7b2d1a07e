Feature: available
  The host can be provisioned. Its power follows spec.online.

  Background:
    Given a lab with 1 server
    And the operator has registered the server

  @B-26 @B-83
  Scenario: Status of an available host
    Then the conditions "Manageable, AvailableForProvisioning" are true
    And the conditions "Provisioned, Ready, Progressing" are false
    And the condition "Healthy" is True with reason "Healthy"
    And the host's operational status is "OK"

  @B-120 @B-121 @B-122
  Scenario: Power follows spec.online
    When the operator sets online to false
    Then the server is off
    And the host's status field "poweredOn" is "false"
    And the events include "PowerOff"
    When the operator sets online to true
    Then the server is on
    And the host's status field "poweredOn" is "true"
    And the events include "PowerOn"

  @B-55 @B-56
  Scenario: A host with online: false is not provisioned
    When the operator sets online to false
    And the server is off
    And the operator sets the image
    And 10 minutes pass
    Then the host stays "available"
    When the operator sets online to true
    Then the host becomes "provisioned"

  @B-07 @B-06
  Scenario: A host without changes is not written
    When a minute passes
    And the host is no longer written
    And ten minutes pass
    Then the host has not been written again

  @B-261 @B-262
  Scenario: consumerRef, description and taints are kept
    When the operator edits the host:
      """
      spec:
        description: third from above
        consumerRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Metal3Machine, name: web-0, namespace: default}
        taints: [{key: broken, value: fan, effect: NoSchedule}]
      """
    And the operator sets the image
    Then the host becomes "provisioned"
    And the event "ProvisioningComplete" is related to "web-0"
    When the operator runs kubectl get bmh SERVER
    Then kubectl prints SERVER provisioned web-0 true
    When the operator runs kubectl get bmh SERVER -o jsonpath={.spec.description}/{.spec.consumerRef.kind}/{.spec.consumerRef.name}/{.spec.taints[0].key}/{.spec.taints[0].effect}
    Then kubectl prints third from above/Metal3Machine/web-0/broken/NoSchedule

  @B-261 @B-262
  Scenario: consumerRef, description and taints change nothing of a host
    When a minute passes
    And the host is no longer written
    And resets of the server are counted
    And the operator edits the host:
      """
      spec:
        description: third from above
        consumerRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta1, kind: Metal3Machine, name: web-0, namespace: default}
        taints: [{key: broken, value: fan, effect: NoExecute}]
      """
    And ten minutes pass
    Then the host stays "available"
    And the server was not reset
    And the host reports no error

  @B-124 @B-82 @B-83 @fault
  Scenario: The BMC refuses to change the power
    Given the BMC refuses to change the power
    When the operator sets online to false
    Then the host reports "power management error"
    And the host has reported the error message "PowerOff operation failed"
    And the condition "Manageable" is False with reason "PowerFailure"
    And the events include "PowerManagementError"
    When the BMC works again
    Then the server is off
    And the host reports no error

  @B-55 @B-260 @B-64
  Scenario: externallyProvisioned is set and cleared
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
    Then the host is deleted
    And it passed through "available, powering off before delete, deleting"
    And the server is off

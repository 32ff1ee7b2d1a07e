Feature: kubectl
  Operators use unmodified kubectl.

  Background:
    Given a lab with 1 server

  @B-01 @B-02
  Scenario: get, describe, annotate and delete
    Given the operator has registered the server
    When the operator runs kubectl get bmh SERVER
    Then kubectl prints NAME STATE CONSUMER ONLINE ERROR AGE
    And kubectl prints SERVER available true
    When the operator runs kubectl get bmhost SERVER -o wide
    Then kubectl prints NAME STATUS STATE CONSUMER BMC ONLINE ERROR AGE
    And kubectl prints SERVER OK available
    When the operator runs kubectl get hd SERVER -o name
    Then kubectl prints hardwaredata.metal3.io/SERVER
    When the operator runs kubectl describe bmh SERVER
    Then kubectl prints InspectionComplete
    And kubectl prints metal3-baremetal-controller
    When the operator runs kubectl annotate bmh SERVER baremetalhost.metal3.io/paused=by-hand
    And the operator runs kubectl annotate bmh SERVER baremetalhost.metal3.io/paused-
    And the operator runs kubectl delete bmh SERVER --timeout=60s
    Then kubectl prints "SERVER" deleted
    And the host is deleted

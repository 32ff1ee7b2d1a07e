Feature: inspect.metal3.io/hardwaredetails
  Hardware details can be given instead of inspected.

  Background:
    Given a lab with 1 server

  @B-99 @B-51
  Scenario: Hardware details are taken from the annotation
    When the operator registers the server with:
      """
      metadata:
        annotations:
          inspect.metal3.io: disabled
          inspect.metal3.io/hardwaredetails: '{"hostname":"set-by-hand","ramMebibytes":4096,"cpu":{"arch":"x86_64","count":8}}'
      """
    Then the host becomes "available"
    And the host's status field "hardware.hostname" is "set-by-hand"
    And the host's status field "hardware.cpu.count" is "8"
    And the annotation "inspect.metal3.io/hardwaredetails" is removed
    And the events include "UpdateHardwareDetails"
    And it was never "inspecting"

  @B-99 @B-270
  Scenario: Hardware details are refused while inspection is enabled
    Given the operator has registered the server
    Then annotating the host with "inspect.metal3.io/hardwaredetails" set to '{"hostname":"set-by-hand"}' is refused with "inspection must be disabled"
    And the inspection found the server's hardware

  @B-51 @B-190
  Scenario: A HardwareData that is there beforehand is taken instead of an inspection
    When the operator runs kubectl --namespace NAMESPACE apply -f FILE:
      """
      apiVersion: metal3.io/v1alpha1
      kind: HardwareData
      metadata: {name: SERVER}
      spec:
        hardware:
          hostname: set-by-hand
          systemVendor: {manufacturer: Dell Inc.}
          cpu: {arch: x86_64, count: 8}
          storage:
            - {name: /dev/sda, hctl: '0:0:0:0', sizeBytes: 480103981056}
      """
    And the operator registers the server with:
      """
      spec: {inspectionMode: disabled}
      """
    Then the host becomes "available"
    And the host's status field "hardware.hostname" is "set-by-hand"
    And the host's status field "hardwareProfile" is "dell"
    And the host's status field "provisioning.rootDeviceHints.hctl" is "0:0:0:0"
    And the events include "UpdateHardwareDetails, ProfileSet"
    And it was never "inspecting"
    When the operator deletes the host
    Then the host is deleted

Feature: inspect.metal3.io/hardwaredetails
  What a server is made of can be told instead of found.

  Background:
    Given a lab with 1 server

  @B-99 @B-51
  Scenario: A host that is told of its hardware
    When the operator registers the server with:
      """
      metadata:
        annotations:
          inspect.metal3.io: disabled
          inspect.metal3.io/hardwaredetails: '{"hostname":"told-by-hand","ramMebibytes":4096,"cpu":{"arch":"x86_64","count":8}}'
      """
    Then the host becomes "available"
    And the host's status has "hardware.hostname" as "told-by-hand"
    And the host's status has "hardware.cpu.count" as "8"
    And the annotation "inspect.metal3.io/hardwaredetails" is gone
    And the events tell of "UpdateHardwareDetails"
    And it never was "inspecting"

  @B-99 @B-270
  Scenario: What inspection has found is not overwritten
    Given the operator has registered the server
    Then the operator cannot annotate the host with "inspect.metal3.io/hardwaredetails" saying '{"hostname":"told-by-hand"}', because "inspection must be disabled"
    And the inspection found what the server is made of

Feature: inspecting
  The server boots the agent, which reports the server's hardware.

  Background:
    Given a lab with 1 server

  @B-02 @B-23 @B-48 @B-250
  Scenario: The agent finds the hardware that the BMC shows
    When the operator registers the server
    Then the host becomes "inspecting"
    And the conditions "Manageable, Progressing" are true
    And the conditions "AvailableForProvisioning, Provisioned, Ready" are false
    And the host becomes "available"
    And the inspection found the server's hardware
    And the inspection found the LLDP data of the server's switch ports
    And the inspection found that the server booted from no NIC
    And the events include "InspectionStarted, InspectionComplete"
    And the server's virtual CD is empty
    And the server has nothing to boot
    And the server has booted 2 times in total

  @B-44 @B-51
  Scenario: inspectionMode: disabled skips inspection
    When the operator registers the server with:
      """
      spec: {inspectionMode: disabled}
      """
    Then the host becomes "available"
    And it was never "inspecting"
    And the events include "InspectionSkipped"

  @B-49 @fault
  Scenario: The agent does not report
    Given the server's agent will not report
    When the operator registers the server
    Then the host reports "inspection error"
    And the host has reported the error message "the agent did not report"
    And the condition "Ready" is False with reason "Error"
    And the events include "InspectionError"
    When the server's agent will report again
    Then the host becomes "available"
    And the host reports no error

  @B-49 @B-13 @fault
  Scenario Outline: The BMC <trouble>
    Given the BMC <trouble>
    When the operator registers the server
    Then the host reports "inspection error"
    And the host stays "inspecting"
    When the BMC works again
    Then the host becomes "available"
    And the host reports no error
    And the inspection found the server's hardware

    Examples:
      | trouble                     |
      | refuses virtual media       |
      | refuses to change the power |

  @B-14 @fault
  Scenario Outline: The BMC <trouble> meanwhile
    Given the BMC <trouble> as soon as the host is "inspecting"
    When the operator registers the server
    Then the host becomes "available"
    And the host reports no error
    And the inspection found the server's hardware

    Examples:
      | trouble                          |
      | is offline for two minutes       |
      | restarts                         |
      | accepts a reset and does nothing |
      | refuses boot overrides once      |

  @B-50
  Scenario: A forced reboot restarts the inspection
    Given the server's agent will not report
    And the operator registers the server
    And the host becomes "inspecting"
    When the server's agent will report again
    And the operator annotates the host with "reboot.metal3.io" set to '{"force":true}'
    Then the host becomes "available"
    And the annotation "reboot.metal3.io" is removed

  @B-68 @B-70
  Scenario: A host is deleted during inspection
    Given the server's agent will not report
    And the operator registers the server
    And the host becomes "inspecting"
    When the operator deletes the host
    Then the host is deleted
    And it passed through "inspecting, powering off before delete, deleting"
    And the server is off
    And the server's virtual CD is empty

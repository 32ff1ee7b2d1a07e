Feature: inspecting
  The server boots the agent, which says what the server is made of.

  Background:
    Given a lab with 1 server

  @B-02 @B-23 @B-48 @B-250
  Scenario: What the agent finds is what the BMC shows
    When the operator registers the server
    Then the host becomes "inspecting"
    And the conditions say that "Manageable, Progressing" are true
    And the conditions say that "AvailableForProvisioning, Provisioned, Ready" are false
    And the host becomes "available"
    And the inspection found what the server is made of
    And the inspection found what the switches tell of the server's ports
    And the inspection found that the server was loaded through no NIC
    And the events tell of "InspectionStarted, InspectionComplete"
    And the server's virtual CD is empty
    And the server has found nothing to boot
    And the server came up 2 times in all

  @B-44 @B-51
  Scenario: Inspection can be left out
    When the operator registers the server with:
      """
      spec: {inspectionMode: disabled}
      """
    Then the host becomes "available"
    And it never was "inspecting"
    And the events tell of "InspectionSkipped"

  @B-49 @fault
  Scenario: An agent that is silent
    Given the server's agent will be silent
    When the operator registers the server
    Then the host reports "inspection error"
    And the host's error says "the agent did not report"
    And the condition "Ready" is False because of "Error"
    And the events tell of "InspectionError"
    When the server's agent will speak
    Then the host becomes "available"
    And the host reports no error

  @B-49 @B-13 @fault
  Scenario Outline: A BMC that <trouble>
    Given the BMC <trouble>
    When the operator registers the server
    Then the host reports "inspection error"
    And the host stays "inspecting"
    When the BMC is as it was
    Then the host becomes "available"
    And the host reports no error
    And the inspection found what the server is made of

    Examples:
      | trouble                      |
      | refuses virtual media        |
      | refuses to switch the server |

  @B-14 @fault
  Scenario Outline: A BMC that <trouble> in the middle
    Given the BMC <trouble> as soon as the host is "inspecting"
    When the operator registers the server
    Then the host becomes "available"
    And the host reports no error
    And the inspection found what the server is made of

    Examples:
      | trouble                        |
      | is silent for two minutes      |
      | restarts                       |
      | takes a reset and does nothing |
      | refuses boot overrides once    |

  @B-50
  Scenario: Inspection begins again when somebody insists
    Given the server's agent will be silent
    And the operator registers the server
    And the host becomes "inspecting"
    When the server's agent will speak
    And the operator annotates the host with "reboot.metal3.io" saying '{"force":true}'
    Then the host becomes "available"
    And the annotation "reboot.metal3.io" is gone

  @B-68 @B-70
  Scenario: A host is deleted while it is inspected
    Given the server's agent will be silent
    And the operator registers the server
    And the host becomes "inspecting"
    When the operator deletes the host
    Then the host is gone
    And it passed through "inspecting, powering off before delete, deleting"
    And the server is off
    And the server's virtual CD is empty

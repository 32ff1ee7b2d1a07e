Feature: reboot.metal3.io
  Whoever may edit a host can have its server rebooted, or held off.

  Background:
    Given a lab with 1 server
    And the operator has provisioned the server
    And the server runs what its first disk holds
    And the operator counts how often the server is reset

  @B-95 @B-122
  Scenario Outline: The server is rebooted, <how>
    When the operator annotates the host with "reboot.metal3.io" saying '<value>'
    Then the annotation "reboot.metal3.io" is gone
    And the server runs what its first disk holds
    And the server was reset 2 times
    And the host stays "provisioned"
    And the events tell of "PowerOff, PowerOn"

    Examples:
      | how             | value           |
      | softly          |                 |
      | softly, by name | {"mode":"soft"} |
      | at once         | {"mode":"hard"} |

  @B-95 @B-123 @fault
  Scenario: A system that does not hear that it shall go down
    Given the server's system does not listen to the power button
    When the operator annotates the host with "reboot.metal3.io"
    Then the annotation "reboot.metal3.io" is gone
    And the server runs what its first disk holds
    And the server was reset 3 times

  @B-96
  Scenario: Whoever holds a server off lets it go again
    When the operator annotates the host with "reboot.metal3.io/fencing"
    Then the server is off
    When the operator annotates the host with "reboot.metal3.io"
    And the operator annotates the host with "reboot.metal3.io/repair"
    And the operator takes the annotation "reboot.metal3.io/fencing" away
    And ten minutes pass
    Then the server is off
    And the annotation "reboot.metal3.io/repair" is still there
    When the operator takes the annotation "reboot.metal3.io/repair" away
    Then the server runs what its first disk holds

  @B-95 @B-96 @B-270
  Scenario Outline: A value that cannot be read is refused
    Then the operator cannot annotate the host with "<name>" saying '<value>', because "<reason>"
    And the server was not reset

    Examples:
      | name                     | value            | reason                                                               |
      | reboot.metal3.io         | {"mode"          | failed to unmarshal the data from the reboot.metal3.io annotation     |
      | reboot.metal3.io/fencing | {"mode":"kindly"} | invalid mode in the reboot.metal3.io annotation                      |

  @B-97
  Scenario: A server that is off already
    Given the operator sets online to false
    And the server is off
    When the operator annotates the host with "reboot.metal3.io"
    Then the annotation "reboot.metal3.io" is gone
    And the server is off

  @B-95 @B-65
  Scenario: A host without an image is not rebooted
    Given the operator takes the image away
    And the host becomes "available"
    And the server has found nothing to boot
    And the operator counts how often the server is reset
    When the operator annotates the host with "reboot.metal3.io"
    And ten minutes pass
    Then the server was not reset
    And the annotation "reboot.metal3.io" is still there

  @B-124 @B-95 @fault
  Scenario: A server that cannot be switched
    Given the BMC refuses to switch the server
    When the operator annotates the host with "reboot.metal3.io"
    Then the host reports "power management error"
    When the BMC is as it was
    Then the annotation "reboot.metal3.io" is gone
    And the server runs what its first disk holds
    And the host reports no error

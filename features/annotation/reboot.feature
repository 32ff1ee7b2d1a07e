Feature: reboot.metal3.io
  The annotation reboots a server; with a key it holds the server off.

  Background:
    Given a lab with 1 server
    And the operator has provisioned the server
    And the server runs from its first disk
    And resets of the server are counted

  @B-95 @B-122
  Scenario Outline: The server is rebooted, <how>
    When the operator annotates the host with "reboot.metal3.io" set to '<value>'
    Then the annotation "reboot.metal3.io" is removed
    And the server runs from its first disk
    And the server was reset 2 times
    And the host stays "provisioned"
    And the events include "PowerOff, PowerOn"

    Examples:
      | how             | value           |
      | softly          |                 |
      | softly, by name | {"mode":"soft"} |
      | at once         | {"mode":"hard"} |

  @B-95 @B-123 @fault
  Scenario: An operating system that ignores the power button is switched off
    Given the server's operating system ignores the power button
    When the operator annotates the host with "reboot.metal3.io"
    Then the annotation "reboot.metal3.io" is removed
    And the server runs from its first disk
    And the server was reset 3 times

  @B-96
  Scenario: A reboot annotation with a key holds the server off until it is removed
    When the operator annotates the host with "reboot.metal3.io/fencing"
    Then the server is off
    When the operator annotates the host with "reboot.metal3.io"
    And the operator annotates the host with "reboot.metal3.io/repair"
    And the operator removes the annotation "reboot.metal3.io/fencing"
    And ten minutes pass
    Then the server stays off
    And the annotation "reboot.metal3.io/repair" is still there
    When the operator removes the annotation "reboot.metal3.io/repair"
    Then the server runs from its first disk

  @B-95 @B-96 @B-270
  Scenario Outline: An invalid value is refused
    Then annotating the host with "<name>" set to '<value>' is refused with "<reason>"
    And the server was not reset

    Examples:
      | name                     | value             | reason                                                            |
      | reboot.metal3.io         | {"mode"           | failed to unmarshal the data from the reboot.metal3.io annotation |
      | reboot.metal3.io/fencing | {"mode":"kindly"} | invalid mode in the reboot.metal3.io annotation                   |

  @B-97
  Scenario: A reboot of a server that is off
    Given the operator sets online to false
    And the server is off
    When the operator annotates the host with "reboot.metal3.io"
    Then the annotation "reboot.metal3.io" is removed
    And the server stays off

  @B-95 @B-65
  Scenario: A host without an image is not rebooted
    Given the operator removes the image
    And the host becomes "available"
    And the server has nothing to boot
    And resets of the server are counted
    When the operator annotates the host with "reboot.metal3.io"
    And ten minutes pass
    Then the server was not reset
    And the annotation "reboot.metal3.io" is still there

  @B-95
  Scenario: With force a host without an image is rebooted
    Given the operator removes the image
    And the host becomes "available"
    And the server has nothing to boot
    And resets of the server are counted
    When the operator annotates the host with "reboot.metal3.io" set to '{"force":true,"mode":"hard"}'
    Then the annotation "reboot.metal3.io" is removed
    And the server has nothing to boot
    And the server was reset 2 times

  @B-96
  Scenario: With force a host without an image is held off
    Given the operator removes the image
    And the host becomes "available"
    And the server has nothing to boot
    When the operator annotates the host with "reboot.metal3.io/fencing" set to '{"force":true}'
    Then the server is off
    When ten minutes pass
    Then the server stays off
    And the annotation "reboot.metal3.io/fencing" is still there
    When the operator removes the annotation "reboot.metal3.io/fencing"
    Then the server has nothing to boot

  @B-124 @B-95 @fault
  Scenario: The BMC refuses to change the power
    Given the BMC refuses to change the power
    When the operator annotates the host with "reboot.metal3.io"
    Then the host reports "power management error"
    When the BMC works again
    Then the annotation "reboot.metal3.io" is removed
    And the server runs from its first disk
    And the host reports no error

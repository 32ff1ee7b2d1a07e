Feature: A server and its start
  Power, boot sources and BIOS settings, as an operator uses them.

  Background:
    Given a rack of 2 servers

  @C1
  Scenario: A server is switched on and off
    When the operator switches the server on
    Then the server is being switched on
    When 10 minutes pass
    Then the server is on
    And the other server is off
    When the operator switches the server off
    And 1 minute passes
    Then the server is off

  @C1
  Scenario: What runs is asked to go down
    Given the operator inserts a live image into the virtual CD
    And the operator has the next start boot from the virtual CD
    When the operator switches the server on
    And 10 minutes pass
    Then the server runs the live system
    When the operator switches the server off by its operating system
    And 10 minutes pass
    Then the server is off

  @C2
  Scenario: A start can be watched
    Given the operator inserts a live image into the virtual CD
    And the operator has every start boot from the virtual CD
    When the operator switches the server on
    Then the server's start has passed through "OSRunning"

  @C3 @fault-5
  Scenario: An override lasts for one start
    When the operator has the next start boot from the network
    Then the server will boot from the network once
    When the operator switches the server on
    And 10 minutes pass
    Then nothing is overridden any longer

  @C3 @fault-5
  Scenario: An override lasts until it is taken back
    When the operator has every start boot from the network
    And the operator switches the server on
    And 10 minutes pass
    Then the server will boot from the network always
    When the operator has the server boot from the moon
    Then it is refused because of "value not in list"
    And the server will boot from the network always

  @C4
  Scenario: The order in which a server tries what it may boot
    When the operator puts the last boot option first
    Then the server tries it first, after the lab is restarted too
    When the operator puts a boot option first that there is not
    Then it is refused because of "value not in list"

  @A19 @A20 @C5
  Scenario: A BIOS setting counts from the next start on
    When the operator turns hyper-threading off
    Then the BIOS runs with hyper-threading on
    And hyper-threading waits to be turned off
    When the operator switches the server on
    And 10 minutes pass
    Then the BIOS runs with hyper-threading off
    And nothing waits to be applied

  @C5
  Scenario: The BIOS takes what its registry says, and nothing else
    Then the BIOS tells what every attribute takes
    When the operator sets a BIOS attribute that there is not
    Then the BIOS refuses it
    When the operator sets the set-up prompt to an hour
    Then the BIOS refuses it
    When the operator sets the serial number of the server
    Then the BIOS refuses it
    And nothing waits to be applied

  @C6
  Scenario: The BIOS forgets what was set
    Given the operator turns hyper-threading off
    And the operator switches the server on
    And 10 minutes pass
    When the operator resets the BIOS to its defaults
    And the operator switches the server off and on again
    And 10 minutes pass
    Then the BIOS runs with hyper-threading on

  @C8
  Scenario: A server tells what it is made of
    Then the server has processors, memory, network ports and drives

  @C9 @F4
  Scenario: Marks stay where they were put
    When the operator marks the server "row 7" and lights its lamp
    And the lab is restarted
    Then the server is marked "row 7" and its lamp is lit

Feature: What FreeIPMI finds
  It is stricter than others: it checks every field of every answer.

  Background:
    Given a rack of 2 servers whose users are ADMIN, op and usr

  @tool-21 @I25
  Scenario Outline: What a BMC is, by cipher suite <suite>
    When the operator runs `bmc-info -I <suite>`
    Then it succeeds
    And it says "IPMI Version : 2.0"

    Examples:
      | suite |
      | 3     |
      | 17    |

  @tool-21 @I3 @I8
  Scenario: Wrong credentials are told
    When the operator runs `bmc-info -p WRONG`
    Then it fails
    And it says "password invalid"
    When the operator runs `bmc-info -u nobody`
    Then it fails
    And it says something like "(username|password) invalid"

  @tool-22 @I34 @I35
  Scenario: Power
    When the operator runs `ipmipower -I 3 --stat`
    Then it succeeds
    And it says ": off"
    When the operator runs `ipmipower -I 3 --on`
    Then it succeeds
    And it says ": ok"
    When 10 minutes pass
    And the operator runs `ipmipower -I 3 --cycle`
    Then it says ": ok"
    When 10 minutes pass
    And the operator runs `ipmipower -I 3 --reset`
    Then it says ": ok"
    When 10 minutes pass
    And the operator runs `ipmipower -I 3 --off`
    Then it says ": ok"

  @tool-22 @I79 @I80
  Scenario: A rack at once
    Given a rack of 64 servers whose users are ADMIN, op and usr
    When the operator runs `ipmipower -I 3 --stat` at all servers
    Then it succeeds
    And it says 64 lines
    When the operator runs `ipmipower -I 3 --on` at all servers
    Then it succeeds
    And every line of it ends in "ok"

  @tool-23 @I34 @I36 @I38 @I39
  Scenario Outline: Chassis: <what>
    When the operator runs `ipmi-chassis <what>`
    Then it succeeds

    Examples:
      | what |
      | --get-chassis-status |
      | --get-chassis-capabilities |
      | --chassis-identify=5 |
      | --get-system-restart-cause |
      | --get-power-on-hours-counter |

  @tool-24 @I47 @I48 @I51 @I54 @I56
  Scenario Outline: Log, sensors and parts: <what>
    When the operator inserts a live image into the virtual CD
    And the operator has every start boot from the virtual CD
    And the operator has run `ipmipower --on`
    And 10 minutes pass
    And the operator runs `<what>`
    Then it ends well
    And it does not say "checksum"
    And it does not say "| Warning |"
    And it does not say "| Critical |"

    Examples:
      | what |
      | ipmi-sel |
      | ipmi-sel --info |
      | ipmi-sel --clear |
      | ipmi-sensors --sdr-cache-recreate --output-sensor-state |
      | ipmi-fru --sdr-cache-recreate |

  @tool-26 @I45 @I66 @I67 @I68
  Scenario Outline: DCMI and PEF: <what>
    When the operator runs `<what>`
    Then it succeeds

    Examples:
      | what |
      | ipmi-dcmi --get-dcmi-capability-info |
      | ipmi-dcmi --get-system-power-statistics |
      | ipmi-dcmi --get-asset-tag |
      | ipmi-pef-config --checkout |
      | bmc-device --get-self-test-results |

  @tool-27 @I63 @E2
  Scenario: The console, and a BMC that outlives it
    Given the operator has run `ipmipower --on`
    And 10 minutes pass
    And IPMI is at a port below 32768
    When the operator sits at `ipmiconsole -I 17` until it says "[SOL established]", and leaves
    Then it ends well
    And it says "closing the connection"
    When the operator runs `bmc-info -I 17`
    Then it succeeds

Feature: FreeIPMI
  It is stricter than other clients: it checks every field of every response.

  Background:
    Given a rack of 2 servers whose users are ADMIN, op and usr

  @tool-21 @I25
  Scenario Outline: bmc-info by cipher suite <suite>
    When the client runs `bmc-info -I <suite>`
    Then it succeeds
    And it prints "IPMI Version : 2.0"

    Examples:
      | suite |
      | 3     |
      | 17    |

  @tool-21 @I3 @I8
  Scenario: Wrong credentials are refused
    When the client runs `bmc-info -p WRONG`
    Then it fails
    And it prints "password invalid"
    When the client runs `bmc-info -u nobody`
    Then it fails
    And it prints a match of "(username|password) invalid"

  @tool-22 @I34 @I35
  Scenario: ipmipower
    When the client runs `ipmipower -I 3 --stat`
    Then it succeeds
    And it prints ": off"
    When the client runs `ipmipower -I 3 --on`
    Then it succeeds
    And it prints ": ok"
    When 10 minutes pass
    And the client runs `ipmipower -I 3 --cycle`
    Then it prints ": ok"
    When 10 minutes pass
    And the client runs `ipmipower -I 3 --reset`
    Then it prints ": ok"
    When 10 minutes pass
    And the client runs `ipmipower -I 3 --off`
    Then it prints ": ok"

  @tool-22 @I79 @I80
  Scenario: ipmipower against 64 BMCs at once
    Given a rack of 64 servers whose users are ADMIN, op and usr
    When the client runs `ipmipower -I 3 --stat` against all BMCs
    Then it succeeds
    And it prints 64 lines
    When the client runs `ipmipower -I 3 --on` against all BMCs
    Then it succeeds
    And every line of its output ends in "ok"

  @tool-23 @I34 @I36 @I38 @I39
  Scenario Outline: ipmi-chassis <what>
    When the client runs `ipmi-chassis <what>`
    Then it succeeds

    Examples:
      | what                         |
      | --get-chassis-status         |
      | --get-chassis-capabilities   |
      | --chassis-identify=5         |
      | --get-system-restart-cause   |
      | --get-power-on-hours-counter |

  @tool-24 @I47 @I48 @I51 @I54 @I56
  Scenario Outline: SEL, SDR and FRU: <what>
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    And the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideEnabled": "Continuous", "BootSourceOverrideTarget": "Cd"}}
    And the client runs `ipmipower --on`
    And 10 minutes pass
    And the client runs `<what>`
    Then it exits with 0
    And it does not print "checksum"
    And it does not print "| Warning |"
    And it does not print "| Critical |"

    Examples:
      | what                                                    |
      | ipmi-sel                                                |
      | ipmi-sel --info                                         |
      | ipmi-sensors --sdr-cache-recreate --output-sensor-state |
      | ipmi-fru --sdr-cache-recreate                           |

  @tool-24 @I48
  Scenario: The SEL is cleared
    When the client runs `ipmipower --on`
    And 10 minutes pass
    And the client runs `ipmi-sel --info`
    Then it prints a match of "Number of log entries +: ([2-9]|[1-9][0-9])"
    When the client runs `ipmi-sel --clear`
    Then it exits with 0
    When the client runs `ipmi-sel --info`
    Then it exits with 0
    And it prints "Number of log entries : 1"

  @tool-26 @I45 @I66 @I67 @I68
  Scenario Outline: DCMI and PEF: <what>
    When the client runs `<what>`
    Then it succeeds

    Examples:
      | what                                    |
      | ipmi-dcmi --get-dcmi-capability-info    |
      | ipmi-dcmi --get-system-power-statistics |
      | ipmi-dcmi --get-asset-tag               |
      | ipmi-pef-config --checkout              |
      | bmc-device --get-self-test-results      |

  @tool-27 @I63 @E2
  Scenario: ipmiconsole, and a session after it
    Given the client runs `ipmipower --on`
    And 10 minutes pass
    And the IPMI port is below 32768
    When the client runs `ipmiconsole -I 17` until it prints "[SOL established]", and disconnects
    Then it exits with 0
    And it prints "closing the connection"
    When the client runs `bmc-info -I 17`
    Then it succeeds

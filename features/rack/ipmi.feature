Feature: IPMI sessions, SOL and channels
  A client that does what ipmitool and FreeIPMI do not: it leaves logins
  unfinished, repeats and damages packets, and holds sessions open.

  Background:
    Given a rack of 1 server whose users are ADMIN, op and usr

  @I1 @I2 @I3 @I4 @I5 @I7 @I8 @I15 @I16 @I17 @I18 @I19 @I34 @I74
  Scenario: The conformance checks of scenarios/conformance/ipmi
    Then the BMC passes the conformance checks

  @I20
  Scenario: An idle session is closed after a minute
    Given a client opens an IPMI session
    When 50 seconds pass
    Then its IPMI session answers
    When 50 seconds pass
    Then its IPMI session answers
    When 64 seconds pass
    Then its IPMI session is closed

  @I17
  Scenario: Close Session ends a session
    Given a client opens an IPMI session
    When the client sends Close Session
    Then its IPMI session is closed

  @I21
  Scenario: Unfinished logins do not lock other clients out
    When 200 logins stop after RAKP message 2
    And the client runs `ipmitool mc guid`
    Then it succeeds

  @I21
  Scenario: 64 sessions at the same time
    Given 64 clients open an IPMI session each
    When the client runs `ipmitool mc guid`
    Then it succeeds

  @I22 @I78
  Scenario: A restart of the BMC ends its sessions
    Given a client opens an IPMI session
    When the client runs `ipmitool -U op -P op -L OPERATOR mc guid`
    Then it succeeds
    When the BMC restarts and is up again
    Then its IPMI session is closed

  @I78 @I22 @I14 @I57
  Scenario: Users, passwords, restore policy and LAN settings survive a restart of the lab
    When the client runs `ipmitool user set name 5 lab`
    And the client runs `ipmitool user set password 5 secret 20`
    And the client runs `ipmitool user priv 5 4 1`
    And the client runs `ipmitool user enable 5`
    And the client runs `ipmitool chassis policy always-on`
    And the client runs `ipmitool lan set 1 snmp lab`
    And the lab is restarted
    And the client runs `ipmitool -U lab -P secret chassis status`
    Then it succeeds
    And it prints "Power Restore Policy : always-on"
    When the client runs `ipmitool lan print 1`
    Then it prints "SNMP Community String : lab"

  @E2 @I80
  Scenario: IPMI/ProtocolEnabled switches IPMI off and on
    When the client sends PATCH Managers/1/NetworkProtocol {"IPMI": {"ProtocolEnabled": false}}
    And the client runs `ipmitool -R 1 -N 1 mc guid` against the former IPMI port
    Then it fails
    When the client sends PATCH Managers/1/NetworkProtocol {"IPMI": {"ProtocolEnabled": true}}
    And the client runs `ipmitool mc guid`
    Then it succeeds

  @I63 @I64 @I24 @tool-17
  Scenario: SOL shows the console to one session at a time
    Given a client opens an IPMI session
    And another client opens an IPMI session
    When the client activates SOL
    And the client runs `ipmitool chassis power on`
    And 30 seconds pass
    Then SOL shows "Generic Server G1"
    And the other client gets completion code 0x80 when it activates SOL
    When the client deactivates SOL
    Then the other client activates SOL

  @I62 @tool-17
  Scenario Outline: SOL configuration: <what>
    When the client runs `ipmitool <what>`
    Then it exits with 0
    And it prints "<says>"
    And it does not print "not supported"

    Examples:
      | what                   | says    |
      | sol info 1             | Enabled |
      | sol payload status 1 2 | enabled |

  @I28 @I53 @I59 @I61
  Scenario Outline: Smaller commands: <what>
    When the client runs `<what>`
    Then it exits with 0
    And it prints a match of "<says>"

    Examples:
      | what                              | says                                      |
      | bmc-info --get-device-guid        | [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} |
      | ipmitool raw 0x06 0x07            | ^ 05 00\s*$                               |
      | ipmitool lan stats get 1          | IP Rx Packet +: [0-9]+                    |
      | ipmitool raw 0x04 0x20            | ^ [0-9a-f]{2} 01\s*$                      |
      | ipmitool lan6 print 1 static_addr | IPv6 Static Address 0                     |

  @I32 @I33
  Scenario: Bridging and firmware firewall
    When the client runs `ipmitool -t 0x2c raw 6 1`
    Then it succeeds
    When the client runs `ipmitool firewall info`
    Then it succeeds

  @I70 @I72 @I73
  Scenario Outline: An unknown command is answered with C1h: <what>
    When the client runs `ipmitool -U usr -P usr -L USER raw <what>`
    Then it fails
    And it prints "rsp=0xc1"

    Examples:
      | what                |
      | 0x2c 0x3e 0x00 0x02 |
      | 0x2c 0x00 0x00      |
      | 0x30 0x68           |
      | 0x3c 0x01           |

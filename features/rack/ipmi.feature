Feature: What a strict client of IPMI finds
  It does what the usual programs do not: it leaves logins unfinished, repeats
  and damages packets, and holds on to sessions.

  Background:
    Given a rack of 1 server whose users are ADMIN, op and usr

  @I1 @I2 @I3 @I4 @I5 @I7 @I8 @I15 @I16 @I17 @I18 @I19 @I34 @I74
  Scenario: The standard, check by check
    Then the BMC is put through the checks of a strict client

  @I20
  Scenario: A session that nobody uses ends after a minute
    Given a client holds a session
    When 50 seconds pass
    Then its session is there
    When 50 seconds pass
    Then its session is there
    When 64 seconds pass
    Then its session is over

  @I17
  Scenario: A session ends when its client says so
    Given a client holds a session
    When the client ends its session
    Then its session is over

  @I21
  Scenario: Logins that nobody finishes keep nobody out
    When 200 clients begin to log in and go away
    And the operator runs `ipmitool mc guid`
    Then it succeeds

  @I21
  Scenario: Sixty-four scripts at the same time
    Given 64 clients hold a session each
    When the operator runs `ipmitool mc guid`
    Then it succeeds

  @I22 @I78
  Scenario: Who is no longer, has no session
    Given a client holds a session
    When the operator runs `ipmitool -U op -P op -L OPERATOR mc guid`
    Then it succeeds
    When the BMC is restarted and up again
    Then its session is over

  @I78 @I22 @I14 @I57
  Scenario: What was set outlives the lab
    When the operator runs `ipmitool user set name 5 lab`
    And the operator runs `ipmitool user set password 5 secret 20`
    And the operator runs `ipmitool user priv 5 4 1`
    And the operator runs `ipmitool user enable 5`
    And the operator runs `ipmitool chassis policy always-on`
    And the operator runs `ipmitool lan set 1 snmp lab`
    And the lab is restarted
    And the operator runs `ipmitool -U lab -P secret chassis status`
    Then it succeeds
    And it says "Power Restore Policy : always-on"
    When the operator runs `ipmitool lan print 1`
    Then it says "SNMP Community String : lab"

  @E2 @I80
  Scenario: IPMI can be switched off
    When the operator switches IPMI off
    And the operator runs `ipmitool -R 1 -N 1 mc guid` where IPMI was
    Then it fails
    When the operator switches IPMI on
    And the operator runs `ipmitool mc guid`
    Then it succeeds

  @I63 @I64 @I24 @tool-17
  Scenario: The console over the network
    Given a client holds a session
    And another client opens a session
    When the client opens the server's console
    And the operator has run `ipmitool chassis power on`
    And 30 seconds pass
    Then the console shows "Generic Server G1"
    And the other client cannot open the server's console
    When the client leaves the console
    Then the other client opens the server's console

  @I62 @tool-17
  Scenario Outline: What there is to read of the console: <what>
    When the operator runs `ipmitool <what>`
    Then it ends well
    And it says "<says>"
    And it does not say "not supported"

    Examples:
      | what                   | says    |
      | sol info 1             | Enabled |
      | sol payload status 1 2 | enabled |

  @I28 @I53 @I59 @I61
  Scenario Outline: Smaller things: <what>
    When the operator runs `<what>`
    Then it ends well
    And it says "<says>"

    Examples:
      | what                             | says        |
      | bmc-info --get-device-guid       | -           |
      | ipmitool raw 0x06 0x07           | 00          |
      | ipmitool lan stats get 1         | IP Rx Packet |
      | ipmitool raw 0x04 0x20           |             |
      | ipmitool lan6 print 1 static_addr | IPv6 Static Address |

  @I32 @I33
  Scenario: What is behind the BMC, and what it lets through
    When the operator runs `ipmitool -t 0x2c raw 6 1`
    Then it succeeds
    When the operator runs `ipmitool firewall info`
    Then it succeeds

  @I70 @I72 @I73
  Scenario Outline: Commands that this BMC does not know: <what>
    When the operator runs `ipmitool -U usr -P usr -L USER raw <what>`
    Then it fails
    And it says "rsp=0xc1"

    Examples:
      | what                     |
      | 0x2c 0x3e 0x00 0x02      |
      | 0x2c 0x00 0x00           |
      | 0x30 0x68                |
      | 0x3c 0x01                |

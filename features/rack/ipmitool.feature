Feature: What ipmitool finds
  The programs are the real ones. They are told nothing of which BMC this is:
  no workaround is switched on.

  Background:
    Given a rack of 2 servers whose users are ADMIN, op and usr

  @tool-1 @I3 @I4 @I25
  Scenario: A client that says nothing of cipher suites finds its own
    When the operator runs `ipmitool mc info`
    Then it succeeds
    And it says "IPMI Version : 2.0"
    And it does not say "Unable to Get Channel Cipher Suites"

  @tool-2 @I5 @I7 @I8 @I11 @I13
  Scenario Outline: Cipher suite <suite> is taken, and the identity is that of Redfish
    When the operator runs `ipmitool -C <suite> mc guid`
    Then it succeeds
    And it says the system's UUID

    Examples:
      | suite |
      | 3     |
      | 17    |

  @tool-2 @I9 @I10 @I12 @I13
  Scenario Outline: Cipher suite <suite> is not
    When the operator runs `ipmitool -C <suite> mc guid`
    Then it fails
    And it says something like "(?i)invalid (authentication|integrity|confidentiality) algorithm|no matching cipher suite|no cipher suite match"

    Examples:
      | suite |
      | 0     |
      | 1     |
      | 2     |
      | 8     |
      | 15    |

  @tool-3 @I8
  Scenario: A wrong password is told, and not waited for
    When the operator runs `ipmitool -v -P WRONG -R 1 -N 1 mc guid`
    Then it fails
    And it says "RAKP 2 HMAC is invalid"

  @tool-3 @I8
  Scenario: A name that nobody has is told
    When the operator runs `ipmitool -v -U nobody -R 1 -N 1 mc guid`
    Then it fails
    And it says "unauthorized name"

  @tool-4 @I14
  Scenario: A BMC with a key of its own
    When the operator runs `ipmitool raw 0x06 0x56 0x01 0x01 0x01 0x4b 0x45 0x59 0x4b 0x45 0x59 0x4b 0x45 0x59 0x4b 0x45 0x59 0x4b 0x45 0x59 0x4b 0x45 0x59 0x32 0x30`
    Then it succeeds
    When the operator runs `ipmitool -k KEYKEYKEYKEYKEYKEY20 mc guid`
    Then it succeeds
    When the operator runs `ipmitool -k KEYKEYKEYKEYKEYKEY21 -R 1 -N 1 mc guid`
    Then it fails
    When the operator runs `ipmitool -R 1 -N 1 mc guid`
    Then it fails

  @tool-5 @I6 @I57 @I58
  Scenario Outline: IPMI 1.5 is off, and can be switched on: <type>
    When the operator runs `ipmitool -I lan -A <type> -R 1 -N 1 mc guid`
    Then it fails
    When the operator runs `ipmitool lan set 1 auth ADMIN <type>`
    Then it ends well
    When the operator runs `ipmitool -I lan -A <type> mc guid`
    Then it ends well
    And it says the system's UUID
    When the operator runs `ipmitool -I lan -A <type> -P WRONG -R 1 -N 1 mc guid`
    Then it fails

    Examples:
      | type     |
      | MD5      |
      | PASSWORD |

  @tool-6 @I15 @I16 @I74
  Scenario: A user gets as far as he may
    When the operator runs `ipmitool -U op -P op -L OPERATOR chassis status`
    Then it succeeds
    When the operator runs `ipmitool -U op -P op chassis status`
    Then it fails
    And it says "Set Session Privilege Level to ADMINISTRATOR failed"
    When the operator runs `ipmitool -U usr -P usr -L USER chassis power on`
    Then it fails
    And it says "Insufficient privilege level"
    When the operator runs `ipmitool -U usr -P usr -L USER chassis status`
    Then it succeeds
    And it does not say "Get HPM.x Capabilities"

  @tool-7 @I34 @I35
  Scenario: The power button is the same button
    When the operator runs `ipmitool chassis power status`
    Then it succeeds
    And it says "Chassis Power is off"
    When the operator runs `ipmitool chassis power cycle`
    Then it fails
    And it says "Command not supported in present state"
    When the operator runs `ipmitool chassis power on`
    Then it succeeds
    And it says "Chassis Power Control: Up/On"
    When 10 minutes pass
    And the operator runs `ipmitool chassis power status`
    Then it says "Chassis Power is on"
    And the server is on
    When the operator runs `ipmitool chassis power cycle`
    Then it succeeds
    And it says "Chassis Power Control: Cycle"
    When 10 minutes pass
    And the operator runs `ipmitool chassis power reset`
    Then it succeeds
    And it says "Chassis Power Control: Reset"
    When 10 minutes pass
    And the operator runs `ipmitool chassis power diag`
    Then it succeeds
    And it says "Chassis Power Control: Diag"
    When 10 minutes pass
    And the operator runs `ipmitool chassis power soft`
    Then it succeeds
    And it says "Chassis Power Control: Soft"
    When 10 minutes pass
    And the operator runs `ipmitool chassis power off`
    And 1 minute passes
    And the operator runs `ipmitool chassis power status`
    Then it says "Chassis Power is off"
    And the server is off

  @tool-8 @I37
  Scenario: What becomes of the power after an outage
    When the operator runs `ipmitool chassis policy list`
    Then it succeeds
    And it says:
      """
      always-off
      always-on
      previous
      """
    When the operator runs `ipmitool chassis policy always-on`
    Then it succeeds
    And it says "Set chassis power restore policy to always-on"
    When the operator runs `ipmitool chassis status`
    Then it says "Power Restore Policy : always-on"

  @tool-9 @I36
  Scenario: The lamp
    When the operator runs `ipmitool chassis identify 15`
    Then it succeeds
    And it says "Chassis identify interval: 15 seconds"
    When the operator runs `ipmitool chassis identify force`
    Then it succeeds
    And it says "indefinite"

  @tool-10 @I40 @I41 @I42
  Scenario: What a server boots next
    When the operator runs `ipmitool chassis bootdev pxe`
    Then it succeeds
    And it says "Set Boot Device to pxe"
    When the operator runs `ipmitool chassis bootparam get 5`
    Then it succeeds
    And it says:
      """
      8004000000
      Options apply to only next boot
      Force PXE
      """
    When 61 seconds pass
    And the operator runs `ipmitool chassis bootparam get 5`
    Then it says "Boot Flag Invalid"
    When the operator runs `ipmitool chassis bootdev disk options=persistent,efiboot`
    Then it succeeds
    When the operator runs `ipmitool chassis bootparam get 5`
    Then it says "e008000000"

  @tool-10 @I41 @I42
  Scenario: Boot flags that do not expire
    When the operator runs `ipmitool raw 0x00 0x08 0x03 0x08`
    Then it succeeds
    When the operator runs `ipmitool raw 0x00 0x08 0x05 0xa0 0x04 0x00 0x00 0x00`
    Then it succeeds
    When 2 minutes pass
    And the operator runs `ipmitool chassis bootparam get 5`
    Then it says "a004000000"
    When the operator runs `ipmitool chassis power on`
    And 10 minutes pass
    And the operator runs `ipmitool chassis bootparam get 5`
    Then it says "Boot Flag Invalid"

  @tool-11 @I27 @I29 @I30 @I31 @I38 @I39 @I43
  Scenario Outline: What else there is to read: <what>
    When the operator runs `ipmitool <what>`
    Then it succeeds
    And it says "<says>"

    Examples:
      | what                          | says               |
      | chassis bootmbox get          |                    |
      | chassis restart_cause         | System restart cause |
      | chassis poh                   | POH Counter        |
      | mc selftest                   | Selftest: passed   |
      | mc getenables                 | System Event Logging |
      | mc watchdog get               | Watchdog Timer     |
      | mc getsysinfo system_name     |                    |

  @tool-12 @I57 @I58 @I60 @I62
  Scenario: How the BMC is on its network
    When the operator runs `ipmitool lan print 1`
    Then it succeeds
    And it says:
      """
      IP Address : 127.64.0.1
      MAC Address
      Subnet Mask
      Default Gateway IP
      RMCP+ Cipher Suites : 3,17
      Cipher Suite Priv Max : XXXaXXXXXXXXXXX
      """
    When the operator runs `ipmitool lan alert print 1`
    Then it succeeds
    When the operator runs `ipmitool lan6 print 1`
    Then it ends well
    And it says "IPv6 Static Router 2"
    When the operator runs `ipmitool lan set 1 ipsrc static`
    Then it ends well
    When the operator runs `ipmitool lan set 1 ipaddr 127.70.0.9`
    Then it ends well
    And it says "127.70.0.9"
    When the operator runs `ipmitool lan print 1`
    Then it says "IP Address : 127.70.0.9"
    And it says "IP Address Source : Static Address"

  @tool-13 @I22
  Scenario: A user made over IPMI
    When the operator runs `ipmitool user list 1`
    Then it succeeds
    And it says "ADMIN"
    When the operator runs `ipmitool user set name 5 lab`
    Then it succeeds
    When the operator runs `ipmitool user set password 5 secret 20`
    Then it succeeds
    When the operator runs `ipmitool user priv 5 4 1`
    Then it succeeds
    When the operator runs `ipmitool user enable 5`
    Then it succeeds
    When the operator runs `ipmitool -U lab -P secret mc guid`
    Then it succeeds
    When the operator runs `ipmitool user test 5 20 secret`
    Then it says "Success"
    When the operator runs `ipmitool user test 5 16 secret`
    Then it fails

  @tool-14 @I18 @I23 @I24
  Scenario Outline: Channels and sessions: <what>
    When the operator runs `ipmitool <what>`
    Then it succeeds
    And it says "<says>"

    Examples:
      | what                             | says |
      | channel info 1                   | Channel Medium Type : 802.3 LAN |
      | channel getaccess 1 2            | User Name : ADMIN |
      | channel setaccess 1 4 privilege=2 | |
      | channel getciphers ipmi 1        | 17 |
      | channel authcap 1 4              | |
      | session info active              | ADMIN |

  @tool-15 @I44 @I47 @I48 @I49 @I50
  Scenario: The event log is the same as Redfish has
    When the operator runs `ipmitool sel info`
    Then it succeeds
    When the operator runs `ipmitool event 1`
    Then it succeeds
    When the operator runs `ipmitool sel elist`
    Then it succeeds
    And it says "Temperature"
    And it says "Upper Critical going high"
    When the operator runs `ipmitool sel time get`
    Then it succeeds
    When the operator runs `ipmitool sel get 1`
    Then it succeeds
    When the operator runs `ipmitool sel delete 1`
    Then it succeeds
    When the operator runs `ipmitool sel delete 1`
    Then it fails
    And it says "Requested sensor, data, or record not found"
    When the operator runs `ipmitool sel clear`
    Then it succeeds

  @tool-16 @I51 @I54 @I55
  Scenario: Sensors
    When the operator has run `ipmitool chassis power on`
    And 10 minutes pass
    And the operator runs `ipmitool sdr elist all`
    Then it succeeds
    When the operator runs `ipmitool sensor list`
    Then it succeeds
    When the operator runs `ipmitool sdr type Fan`
    Then it succeeds
    And it says "RPM"
    When the operator runs `ipmitool sensor get "CPU 1 Temp"`
    Then it succeeds
    When the operator runs `ipmitool sensor thresh "CPU 1 Temp" ucr 91`
    Then it succeeds
    When the operator runs `ipmitool sensor get "CPU 1 Temp"`
    Then it says "Upper Critical : 91.000"

  @tool-16 @I56
  Scenario: What the server is made of
    When the operator runs `ipmitool fru print`
    Then it succeeds
    And it says the system's serial number
    When the operator runs `ipmitool fru edit 0 field p 4 X`
    Then it says "Done."
    When the operator runs `ipmitool fru print 0`
    Then it succeeds
    And it says "Product Serial : X"
    And it does not say "checksum"

  @tool-18 @I66 @I67 @I68 @I69
  Scenario Outline: DCMI and the rest: <what>
    When the operator runs `ipmitool <what>`
    Then it succeeds

    Examples:
      | what                 |
      | dcmi discover        |
      | dcmi power reading   |
      | dcmi asset_tag       |
      | dcmi get_mc_id_string |
      | dcmi sensors         |
      | pef info             |
      | -t 0x2c raw 6 1      |
      | firewall info        |

  @tool-19 @I70 @I71
  Scenario: What only other vendors know
    When the operator runs `ipmitool raw 0x30 0x70`
    Then it fails
    And it says "rsp=0xc1"
    When the operator runs `ipmitool delloem lan get`
    Then it fails

  @tool-20 @I26
  Scenario: A BMC that restarts is gone for a while
    When the operator runs `ipmitool mc reset cold`
    Then it succeeds
    And it says "Sent cold reset command to MC"
    When 10 seconds pass
    And the operator runs `ipmitool -R 1 -N 1 mc guid`
    Then it fails
    When 5 minutes pass
    And the operator runs `ipmitool mc guid`
    Then it succeeds

  @I77 @I19 @tool-7
  Scenario: On a network that loses, doubles and reorders what it is given
    Given the operator has run `ipmitool chassis power on`
    And 10 minutes pass
    And of the datagrams one in 5 is lost
    And of the datagrams one in 5 is doubled
    And of the datagrams one in 5 is swapped
    When the operator runs `ipmitool chassis power cycle` until it ends well
    Then the server was cycled by it, and never twice by one run

  @I77
  Scenario: A BMC that says it is busy
    Given the BMC answers each command but logins with the completion code "0xc0"
    When the operator runs `ipmitool -R 1 -N 1 chassis power status`
    Then it fails
    And it says "Node busy"

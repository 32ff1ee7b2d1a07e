Feature: ipmitool
  The real program, with no workaround switched on.

  Background:
    Given a rack of 2 servers whose users are ADMIN, op and usr

  @tool-1 @I3 @I4 @I25
  Scenario: mc info without -C negotiates a cipher suite
    When the client runs `ipmitool mc info`
    Then it succeeds
    And it prints "IPMI Version : 2.0"
    And it does not print "Unable to Get Channel Cipher Suites"

  @tool-2 @I5 @I7 @I8 @I11 @I13
  Scenario Outline: Cipher suite <suite> logs in, and the GUID is the UUID of Redfish
    When the client runs `ipmitool -C <suite> mc guid`
    Then it succeeds
    And it prints the UUID of Systems/1

    Examples:
      | suite |
      | 3     |
      | 17    |

  @tool-2 @I9 @I10 @I12 @I13
  Scenario Outline: Cipher suite <suite> is refused
    When the client runs `ipmitool -C <suite> mc guid`
    Then it fails
    And it prints a match of "(?i)invalid (authentication|integrity|confidentiality) algorithm|no matching cipher suite|no cipher suite match"

    Examples:
      | suite |
      | 0     |
      | 1     |
      | 2     |
      | 8     |
      | 15    |

  @tool-3 @I8
  Scenario: A wrong password fails RAKP 2
    When the client runs `ipmitool -v -P WRONG mc guid`
    Then it fails
    And it prints "RAKP 2 HMAC is invalid"

  @tool-3 @I8
  Scenario: An unknown user name is answered with "unauthorized name"
    When the client runs `ipmitool -v -U nobody mc guid`
    Then it fails
    And it prints "unauthorized name"

  @tool-4 @I14
  Scenario: K_g is set, and needed from then on
    When the client runs `ipmitool raw 0x06 0x56 0x01 0x01 0x01 0x4b 0x45 0x59 0x4b 0x45 0x59 0x4b 0x45 0x59 0x4b 0x45 0x59 0x4b 0x45 0x59 0x4b 0x45 0x59 0x32 0x30`
    Then it succeeds
    When the client runs `ipmitool -k KEYKEYKEYKEYKEYKEY20 mc guid`
    Then it succeeds
    When the client runs `ipmitool -k KEYKEYKEYKEYKEYKEY21 mc guid`
    Then it fails
    When the client runs `ipmitool mc guid`
    Then it fails

  @tool-5 @I6 @I57 @I58
  Scenario Outline: IPMI 1.5 authentication type <type> is off until it is enabled
    When the client runs `ipmitool -I lan -A <type> mc guid`
    Then it fails
    When the client runs `ipmitool lan set 1 auth ADMIN <type>`
    Then it exits with 0
    When the client runs `ipmitool -I lan -A <type> mc guid`
    Then it exits with 0
    And it prints the UUID of Systems/1
    When the client runs `ipmitool -I lan -A <type> -P WRONG -R 1 -N 1 mc guid`
    Then it fails

    Examples:
      | type     |
      | MD5      |
      | PASSWORD |

  @tool-6 @I15 @I16 @I74
  Scenario: A session privilege level above the user's is refused
    When the client runs `ipmitool -U op -P op -L OPERATOR chassis status`
    Then it succeeds
    When the client runs `ipmitool -U op -P op chassis status`
    Then it fails
    And it prints "Set Session Privilege Level to ADMINISTRATOR failed"
    When the client runs `ipmitool -U usr -P usr -L USER chassis power on`
    Then it fails
    And it prints "Insufficient privilege level"
    When the client runs `ipmitool -U usr -P usr -L USER chassis status`
    Then it succeeds
    And it does not print "Get HPM.x Capabilities"

  @tool-7 @I34 @I35
  Scenario: Chassis Control switches the same power as Redfish
    When the client runs `ipmitool chassis power status`
    Then it succeeds
    And it prints "Chassis Power is off"
    When the client runs `ipmitool chassis power cycle`
    Then it fails
    And it prints "Command not supported in present state"
    When the client runs `ipmitool chassis power on`
    Then it succeeds
    And it prints "Chassis Power Control: Up/On"
    When 10 minutes pass
    And the client runs `ipmitool chassis power status`
    Then it prints "Chassis Power is on"
    And GET Systems/1 has "PowerState": "On"
    When the client runs `ipmitool chassis power cycle`
    Then it succeeds
    And it prints "Chassis Power Control: Cycle"
    When 10 minutes pass
    And the client runs `ipmitool chassis power reset`
    Then it succeeds
    And it prints "Chassis Power Control: Reset"
    When 10 minutes pass
    And the client runs `ipmitool chassis power diag`
    Then it succeeds
    And it prints "Chassis Power Control: Diag"
    When 10 minutes pass
    And the client runs `ipmitool chassis power soft`
    Then it succeeds
    And it prints "Chassis Power Control: Soft"
    When 10 minutes pass
    And the client runs `ipmitool chassis power off`
    And 1 minute passes
    And the client runs `ipmitool chassis power status`
    Then it prints "Chassis Power is off"
    And GET Systems/1 has "PowerState": "Off"

  @tool-8 @I37
  Scenario: Power restore policy
    When the client runs `ipmitool chassis policy list`
    Then it succeeds
    And it prints:
      """
      always-off
      always-on
      previous
      """
    When the client runs `ipmitool chassis policy always-on`
    Then it succeeds
    And it prints "Set chassis power restore policy to always-on"
    When the client runs `ipmitool chassis status`
    Then it prints "Power Restore Policy : always-on"
    And GET Systems/1 has "PowerRestorePolicy": "AlwaysOn"
    When the client runs `ipmitool raw 0x00 0x06 0x03`
    Then it prints a match of "(?m)^ 07$"
    When the client runs `ipmitool chassis status`
    Then it prints "Power Restore Policy : always-on"

  @I37
  Scenario Outline: Power restore policy <policy>: a server that was on is <after> after an outage
    When the client runs `ipmitool chassis power on`
    And 10 minutes pass
    And the client runs `ipmitool chassis policy <policy>`
    Then it succeeds
    When the mains power fails
    And 1 minute passes
    And the mains power is back
    And 30 minutes pass
    And the client runs `ipmitool chassis status`
    Then it prints "System Power : <after>"
    And it prints "Last Power Event : ac-failed"

    Examples:
      | policy     | after |
      | always-off | off   |
      | always-on  | on    |
      | previous   | on    |

  @I37
  Scenario: Set Chassis Capabilities and Set Front Panel Enables read back
    When the client runs `ipmitool raw 0x00 0x05 0x03 0x20 0x20 0x22 0x20 0x24`
    Then it succeeds
    When the client runs `ipmitool raw 0x00 0x00`
    Then it prints a match of "(?m)^ 07 20 20 22 20 24$"
    When the client runs `ipmitool raw 0x00 0x0a 0x03`
    Then it succeeds
    When the client runs `ipmitool raw 0x00 0x01`
    Then it prints a match of "(?m)^ .. .. .. 73$"

  @tool-9 @I36
  Scenario: Chassis Identify blinks for 15 seconds, or for ever, or not at all
    When the client runs `ipmitool chassis identify 15`
    Then it succeeds
    And it prints "Chassis identify interval: 15 seconds"
    And GET Systems/1 has "IndicatorLED": "Blinking"
    When the client runs `ipmitool raw 0x00 0x01`
    Then it prints a match of "^ .. .. 5. .."
    When 14 seconds pass
    Then GET Systems/1 has "IndicatorLED": "Blinking"
    When 1 second passes
    Then GET Systems/1 has "IndicatorLED": "Off"
    When the client runs `ipmitool raw 0x00 0x01`
    Then it prints a match of "^ .. .. 4. .."
    When the client runs `ipmitool chassis identify force`
    Then it succeeds
    And it prints "indefinite"
    When 1 hour passes
    And the client runs `ipmitool raw 0x00 0x01`
    Then it prints a match of "^ .. .. 6. .."
    And GET Systems/1 has "IndicatorLED": "Blinking"
    When the client runs `ipmitool chassis identify 0`
    Then it prints "Chassis identify interval: off"
    And GET Systems/1 has "IndicatorLED": "Off"
    When the client sends PATCH Systems/1 {"IndicatorLED": "Lit"}
    And the client runs `ipmitool raw 0x00 0x01`
    Then it prints a match of "^ .. .. 6. .."

  @tool-10 @I40 @I41 @I42
  Scenario: Boot flags, which expire after 60 seconds
    When the client runs `ipmitool chassis bootdev pxe`
    Then it succeeds
    And it prints "Set Boot Device to pxe"
    When the client runs `ipmitool chassis bootparam get 5`
    Then it succeeds
    And it prints:
      """
      8004000000
      Options apply to only next boot
      Force PXE
      """
    When 61 seconds pass
    And the client runs `ipmitool chassis bootparam get 5`
    Then it prints "Boot Flag Invalid"
    When the client runs `ipmitool chassis bootdev disk options=persistent,efiboot`
    Then it succeeds
    When the client runs `ipmitool chassis bootparam get 5`
    Then it prints "e008000000"

  @tool-10 @I41 @I42
  Scenario: Boot info acknowledge keeps boot flags from expiring
    When the client runs `ipmitool raw 0x00 0x08 0x03 0x08`
    Then it succeeds
    When the client runs `ipmitool raw 0x00 0x08 0x05 0xa0 0x04 0x00 0x00 0x00`
    Then it succeeds
    When 2 minutes pass
    And the client runs `ipmitool chassis bootparam get 5`
    Then it prints "a004000000"
    When the client runs `ipmitool chassis power on`
    And 10 minutes pass
    And the client runs `ipmitool chassis bootparam get 5`
    Then it prints "Boot Flag Invalid"

  @I43
  Scenario: The boot initiator mailbox has blocks of 16 bytes, the first with an IANA number
    When the client runs `ipmitool chassis bootmbox set text 674 "a text that needs more than one block"`
    Then it exits with 0
    When the client runs `ipmitool chassis bootmbox get text`
    Then it succeeds
    And it prints:
      """
      IANA PEN : 674 [Dell Inc.]
      Block 0 Data : 'a text that n'
      Block 1 Data : 'eeds more than o'
      Block 2 Data : 'ne block'
      """
    When the client runs `ipmitool chassis bootparam get 7`
    Then it prints a match of "Boot parameter data: 00a202006120746578742074686174206e"
    When the client runs `ipmitool raw 0x00 0x08 0x06 0x01 0xc3 0xb2 0xa1 0x02 0x04 0x03 0x02 0x01`
    Then it succeeds
    When the client runs `ipmitool raw 0x00 0x09 0x06 0x00 0x00`
    Then it prints "01 06 01 c3 b2 a1 02 04 03 02 01"
    When the client runs `ipmitool raw 0x00 0x08 0x07 0x10 0x00`
    Then it fails
    And it prints "rsp=0xc9"

  @I31 @tool-11
  Scenario: System info parameters are set and read in blocks of 16 bytes
    When the client runs `ipmitool mc setsysinfo system_name a-name-that-is-longer-than-one-block`
    Then it exits with 0
    And GET Systems/1 has "HostName": "a-name-that-is-longer-than-one-block"
    When the client runs `ipmitool mc getsysinfo system_name`
    Then it prints "a-name-that-is-longer-than-one-block"
    When the client runs `ipmitool raw 0x06 0x59 0x00 0x02 0x01 0x00`
    Then it prints "11 01 2d 6c 6f 6e 67 65 72 2d 74 68 61 6e 2d 6f 6e 65"
    When the client runs `ipmitool mc getsysinfo system_fw_version`
    Then it prints "2.3.1"
    When the client runs `ipmitool mc setsysinfo primary_os_name Linux`
    And the client runs `ipmitool mc getsysinfo primary_os_name`
    Then it prints "Linux"
    When the client runs `ipmitool raw 0x06 0x59 0x00 0x06 0x00 0x00`
    Then it prints a match of "^ 11 00 0. .. 68 74 74 70 73 3a 2f 2f"

  @I31
  Scenario Outline: System info parameters: <request> is answered with <code>
    When the client runs `ipmitool raw 0x06 0x58 0x00 0x01`
    And the client runs `ipmitool raw <request>`
    Then it fails
    And it prints "rsp=<code>"

    Examples:
      | request                                                                                             | code |
      | 0x06 0x59 0x00 0x08 0x00 0x00                                                                       | 0x80 |
      | 0x06 0x59 0x00 0xc5 0x00 0x00                                                                       | 0x80 |
      | 0x06 0x58 0x00 0x01                                                                                 | 0x81 |
      | 0x06 0x58 0x01 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 0x00 | 0x82 |

  @I31 @I71
  Scenario: System info parameters of Dell
    Given a rack of 1 server of the profile "dell-r730" whose users are ADMIN, op and usr
    When the client runs `ipmi-oem dell get-system-info service-tag`
    Then it succeeds
    And it prints the SKU of Systems/System.Embedded.1
    When the client runs `ipmi-oem dell get-system-info platform-model-name`
    Then it succeeds
    And it prints the Model of Systems/System.Embedded.1
    When the client runs `ipmi-oem dell get-system-info idrac-info`
    Then it succeeds
    And it prints:
      """
      IP Address : 127.64.0.1
      IP Configuration : DHCP
      iDRAC Firmware Version : 2.8
      """
    When the client sends PATCH Systems/System.Embedded.1 {"AssetTag": "row 7"}
    And the client runs `ipmi-oem dell get-system-info asset-tag`
    Then it succeeds
    And it prints "row 7"

  @tool-11 @I27 @I29 @I30 @I31 @I38 @I39 @I43
  Scenario Outline: Commands that read: <what>
    When the client runs `ipmitool <what>`
    Then it succeeds
    And it prints "<says>"

    Examples:
      | what                  | says                 |
      | chassis bootmbox get  | Block 7 Data         |
      | chassis restart_cause | System restart cause |
      | chassis poh           | POH Counter          |
      | mc selftest           | Selftest: passed     |
      | mc getenables         | System Event Logging |
      | mc watchdog get       | Watchdog Timer       |

  @tool-11
  Scenario: The system name is set and read
    When the client runs `ipmitool mc setsysinfo system_name web-0`
    Then it succeeds
    When the client runs `ipmitool mc getsysinfo system_name`
    Then it succeeds
    And it prints "web-0"

  @tool-12 @I57 @I58 @I60 @I62
  Scenario: LAN configuration parameters
    When the client runs `ipmitool lan print 1`
    Then it succeeds
    And it prints:
      """
      IP Address : 127.64.0.1
      MAC Address
      Subnet Mask
      Default Gateway IP
      RMCP+ Cipher Suites : 3,17
      Cipher Suite Priv Max : XXXaXXXXXXXXXXX
      """
    When the client runs `ipmitool lan alert print 1`
    Then it succeeds
    When the client runs `ipmitool lan6 print 1`
    Then it exits with 0
    And it prints "IPv6 Static Router 2"
    When the client runs `ipmitool lan set 1 ipsrc static`
    Then it exits with 0
    When the client runs `ipmitool lan set 1 ipaddr 127.70.0.9`
    Then it exits with 0
    And it prints "127.70.0.9"
    When the client runs `ipmitool lan print 1`
    Then it prints "IP Address : 127.70.0.9"
    And it prints "IP Address Source : Static Address"

  @tool-13 @I22
  Scenario: A user that is created over IPMI logs in
    When the client runs `ipmitool user list 1`
    Then it succeeds
    And it prints "ADMIN"
    When the client runs `ipmitool user set name 5 lab`
    Then it succeeds
    When the client runs `ipmitool user set password 5 secret 20`
    Then it succeeds
    When the client runs `ipmitool user priv 5 4 1`
    Then it succeeds
    When the client runs `ipmitool user enable 5`
    Then it succeeds
    When the client runs `ipmitool -U lab -P secret mc guid`
    Then it succeeds
    When the client runs `ipmitool user test 5 20 secret`
    Then it prints "Success"
    When the client runs `ipmitool user test 5 16 secret`
    Then it fails

  @tool-14 @I18 @I23 @I24
  Scenario Outline: Channels and sessions: <what>
    When the client runs `ipmitool <what>`
    Then it succeeds
    And it prints "<says>"

    Examples:
      | what                              | says                                         |
      | channel info 1                    | Channel Medium Type : 802.3 LAN              |
      | channel getaccess 1 2             | User Name : ADMIN                            |
      | channel setaccess 1 4 privilege=2 | Set User Access (channel 1 id 4) successful. |
      | channel getciphers ipmi 1         | 17                                           |
      | channel authcap 1 4               | Channel supports IPMI v2.0 : yes             |
      | session info active               | ADMIN                                        |

  @tool-15 @I44 @I47 @I48 @I49 @I50
  Scenario: SEL
    When the client runs `ipmitool sel info`
    Then it succeeds
    When the client runs `ipmitool event 1`
    Then it succeeds
    When the client runs `ipmitool sel elist`
    Then it succeeds
    And it prints "Temperature"
    And it prints "Upper Critical going high"
    When the client runs `ipmitool sel time get`
    Then it succeeds
    When the client runs `ipmitool sel get 1`
    Then it succeeds
    When the client runs `ipmitool sel delete 1`
    Then it succeeds
    When the client runs `ipmitool sel delete 1`
    Then it fails
    And it prints "Requested sensor, data, or record not found"
    When the client runs `ipmitool sel clear`
    Then it succeeds

  @tool-16 @I51 @I54 @I55
  Scenario: SDR, sensor readings and thresholds
    When the client runs `ipmitool chassis power on`
    And 10 minutes pass
    And the client runs `ipmitool sdr elist all`
    Then it succeeds
    When the client runs `ipmitool sensor list`
    Then it succeeds
    When the client runs `ipmitool sdr type Fan`
    Then it succeeds
    And it prints "RPM"
    When the client runs `ipmitool sensor get "CPU 1 Temp"`
    Then it succeeds
    When the client runs `ipmitool sensor thresh "CPU 1 Temp" ucr 91`
    Then it succeeds
    When the client runs `ipmitool sensor get "CPU 1 Temp"`
    Then it prints "Upper Critical : 91.000"

  @tool-16 @I56
  Scenario: FRU, and its fields that can be edited
    When the client runs `ipmitool fru print`
    Then it succeeds
    And it prints the SerialNumber of Systems/1
    When the client runs `ipmitool fru edit 0 field p 4 X`
    Then it prints "Done."
    When the client runs `ipmitool fru print 0`
    Then it succeeds
    And it prints "Product Serial : X"
    And it does not print "checksum"

  @I66
  Scenario: DCMI capabilities need no session
    Then DCMI capabilities 1, 2, 3, 4, 5 are read without a session, of version 01 05 02
    When the client runs `ipmitool dcmi discover`
    Then it succeeds
    And it prints:
      """
      Power management available
      2000 SEL entries
      In-band KCS channel available
      """
    When the client runs `ipmitool raw 0x2c 0x01 0xdc 0x06`
    Then it fails
    And it prints "rsp=0xcc"

  @tool-18 @I66 @I67 @I68 @I69
  Scenario Outline: DCMI, PEF, bridging and firewall: <what>
    When the client runs `ipmitool <what>`
    Then it succeeds

    Examples:
      | what                  |
      | dcmi discover         |
      | dcmi power reading    |
      | dcmi asset_tag        |
      | dcmi get_mc_id_string |
      | dcmi sensors          |
      | pef info              |
      | -t 0x2c raw 6 1       |
      | firewall info         |

  @tool-19 @I71
  Scenario: delloem reads and sets what an iDRAC has
    Given a rack of 1 server of the profile "dell-r730" whose users are ADMIN, op and usr
    When the client runs `ipmitool chassis power on`
    And 10 minutes pass
    And the client runs `ipmitool delloem mac list`
    Then it exits with 0
    And it prints the MAC addresses of the server's network interfaces
    When the client runs `ipmitool delloem lan get`
    Then it exits with 0
    And it prints "dedicated"
    When the client runs `ipmitool delloem lan set shared with lom2`
    Then it exits with 0
    When the client runs `ipmitool delloem lan get`
    Then it prints "shared with lom2"
    When the client runs `ipmitool raw 0x30 0x24 0x01`
    Then it succeeds
    When the client runs `ipmitool raw 0x30 0x25`
    Then it prints a match of "(?m)^ 01$"
    When the client runs `ipmitool delloem powermonitor`
    Then it exits with 0
    And it prints "System Peak Power"
    And it prints a match of "Peak Reading +: [1-9]\d+ W"
    When the client runs `ipmi-oem dell get-power-head-room`
    Then it succeeds
    And it prints a match of "Instantaneous Head Room +: [1-9]\d+ W"
    When the client runs `ipmitool delloem setled 0:0.0 online`
    Then it exits with 0
    When the client runs `ipmitool raw 0x30 0x70`
    Then it fails
    And it prints "rsp=0xc1"

  @tool-19 @I70 @I71
  Scenario Outline: Commands of Dell are answered with C1h by other BMCs: <command>
    When the client runs `ipmitool <command>`
    Then it fails
    And it prints a match of "rsp=0xc1|Invalid command|Command not supported"

    Examples:
      | command                 |
      | raw 0x30 0x70           |
      | raw 0x30 0x25           |
      | raw 0x30 0x29           |
      | raw 0x30 0x9c 0x07 0x01 |
      | raw 0x30 0xbb           |
      | delloem lan get         |
      | delloem powermonitor    |

  @I72 @I70
  Scenario Outline: <profile> has GUID, serial number and sensors, and answers OEM commands with C1h
    Given a rack of 1 server of the profile "<profile>" whose users are ADMIN, op and usr
    When the client runs `ipmitool mc guid`
    Then it succeeds
    And it prints the UUID of Systems/1
    When the client runs `ipmitool fru print 0`
    Then it succeeds
    And it prints the SerialNumber of Systems/1
    When the client runs `ipmitool chassis power on`
    And 10 minutes pass
    And the client runs `ipmitool sdr elist full`
    Then it succeeds
    And it prints "degrees C"
    And it prints "Watts"
    When the client runs `ipmitool raw <command>`
    Then it fails
    And it prints "rsp=0xc1"

    Examples:
      | profile          | command             |
      | hpe-dl360-gen9   | 0x2e 0x36 0x0b 0x00 |
      | hpe-dl360-gen10  | 0x2e 0x36 0x0b 0x00 |
      | hpe-dl360-gen10  | 0x30 0x01           |
      | hpe-dl360-gen11  | 0x36 0x02           |
      | supermicro-1029u | 0x30 0x68           |
      | supermicro-621c  | 0x3c 0x01           |

  @tool-20 @I26
  Scenario: A BMC does not answer while mc reset cold restarts it
    When the client runs `ipmitool mc reset cold`
    Then it succeeds
    And it prints "Sent cold reset command to MC"
    When the BMC has executed Cold Reset
    And 10 seconds pass
    And the client runs `ipmitool -R 1 -N 1 mc guid`
    Then it fails
    When 5 minutes pass
    And the client runs `ipmitool mc guid`
    Then it succeeds

  @I77 @I19 @tool-7
  Scenario: Datagrams that are lost, doubled or reordered never cycle the power twice
    Given the client runs `ipmitool chassis power on`
    And 10 minutes pass
    And one in 5 datagrams is lost
    And one in 5 datagrams is doubled
    And one in 5 datagrams is swapped
    When the client runs `ipmitool chassis power cycle` until it exits with 0
    Then the power was cycled, and never twice in one run

  @I77
  Scenario: A fault answers with completion code C0h, node busy
    Given the BMC answers each command but logins with completion code 0xc0
    When the client runs `ipmitool chassis power status`
    Then it fails
    And it prints "Node busy"

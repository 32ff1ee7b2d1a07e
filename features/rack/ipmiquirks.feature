Feature: IPMI quirks of real BMCs

  Background:
    Given a rack of 2 servers whose users are ADMIN, op and usr

  @Q35
  Scenario: ipmi-cipher-list-silent does not answer Get Channel Cipher Suites
    Given the BMC has the quirk "ipmi-cipher-list-silent"
    When the client runs `ipmitool -R 1 -N 1 mc guid`
    Then it prints "Unable to Get Channel Cipher Suites"
    When the client runs `ipmitool -C 17 mc guid`
    Then it succeeds

  @Q35
  Scenario: ipmi-cipher-list-lies lists a cipher suite that it refuses
    Given the BMC has the quirk "ipmi-cipher-list-lies"
    When the client runs `ipmitool mc guid`
    Then it fails
    When the client runs `ipmitool -C 3 mc guid`
    Then it succeeds

  @Q35
  Scenario: ipmi-off-when-off-errors refuses power off while the power is off
    When the client runs `ipmitool chassis power off`
    Then it exits with 0
    Given the BMC has the quirk "ipmi-off-when-off-errors"
    When the client runs `ipmitool chassis power off`
    Then it fails
    And it prints "not supported in present state"
    When the client runs `ipmitool chassis power status`
    Then it prints "Chassis Power is off"

  @Q35
  Scenario: ipmi-no-bootparam3 has no boot option parameter 3
    Given the BMC has the quirk "ipmi-no-bootparam3"
    When the client runs `ipmitool raw 0x00 0x08 0x03 0x08`
    Then it fails
    When the client runs `ipmitool raw 0x00 0x08 0x05 0x80 0x04 0x00 0x00 0x00`
    Then it exits with 0

  @Q35
  Scenario: ipmi-smc-uefi-0x24 boots the disk with device 24h in UEFI mode
    Given the BMC has the quirk "ipmi-smc-uefi-0x24"
    When the client runs `ipmitool raw 0x00 0x08 0x05 0xa0 0x08 0x00 0x00 0x00`
    Then it exits with 0
    And GET Systems/1 has "Boot/BootSourceOverrideTarget": "None"
    When the client runs `ipmitool raw 0x00 0x08 0x05 0xa0 0x24 0x00 0x00 0x00`
    Then it exits with 0
    And GET Systems/1 has "Boot/BootSourceOverrideTarget": "Hdd"

  @Q35
  Scenario Outline: A quirk that FreeIPMI has a workaround for: <workaround>
    Given the BMC has the quirk "ipmi-<workaround>"
    When the client runs `ipmipower -I <suite> --stat`
    Then it prints "<error>"
    When the client runs `ipmipower -I <suite> -W <workaround> --stat`
    Then it prints ": off"
    When the client runs `ipmipower -I 3 --stat` against the second BMC
    Then it prints ": off"

    Examples:
      | workaround          | suite | error            |
      | authcap             | 3     | username invalid |
      | opensesspriv        | 3     | password invalid |
      | integritycheckvalue | 0     | k_g invalid      |
      | supermicro20        | 3     | password invalid |
      | sun20               | 3     | password invalid |
      | intel20             | 3     | privilege level  |

  @Q35
  Scenario: ipmi-solpayloadsize shows a SOL payload size of 0
    Given the client runs `ipmipower --on`
    And 10 minutes pass
    And the IPMI port is below 32768
    And the BMC has the quirk "ipmi-solpayloadsize"
    When the client runs `ipmiconsole -I 17` until it prints "error received", and disconnects
    Then it does not print "[SOL established]"
    When the client runs `ipmiconsole -I 17 -W solpayloadsize` until it prints "[SOL established]", and disconnects
    Then it prints "closing the connection"

  @Q35
  Scenario Outline: A quirk in IPMI 1.5 that FreeIPMI has a workaround for: <workaround>
    Given the BMC has the quirk "ipmi-<workaround>"
    When the client runs `ipmipower -D LAN --session-timeout=4000 --retransmission-timeout=500 --stat`
    Then it prints "timeout"
    When the client runs `ipmipower -D LAN -W <workaround> --stat`
    Then it prints ": off"
    When the client runs `bmc-info -D LAN -W <workaround>`
    Then it exits with 0
    And it prints "IPMI Version : 2.0"
    When the client runs `ipmipower -I 3 --stat`
    Then it prints ": off"

    Examples:
      | workaround      |
      | idzero          |
      | endianseq       |
      | noauthcodecheck |

  @Q35
  Scenario: ipmi-nochecksumcheck sends wrong checksums
    Given the BMC has the quirk "ipmi-nochecksumcheck"
    When the client runs `ipmipower --session-timeout=4000 --retransmission-timeout=500 --stat`
    Then it prints "timeout"
    When the client runs `ipmipower -W nochecksumcheck --stat`
    Then it prints ": off"

  @Q35
  Scenario: ipmi-discretereading shows analog sensors as discrete
    Given the client runs `ipmipower --on`
    And 10 minutes pass
    And the BMC has the quirk "ipmi-discretereading"
    When the client runs `ipmi-sensors -t Fan`
    Then it exits with 0
    And it does not print "RPM"
    And it prints "N/A"
    When the client runs `ipmi-sensors -t Fan -W discretereading`
    Then it exits with 0
    And it prints a match of "[0-9]+[.]00 +[|] RPM"
    When the client runs `ipmi-sensors -t Fan` against the second BMC
    Then it exits with 0

  @Q35
  Scenario Outline: Sensors with a wrong owner or with scanning disabled: <workaround>
    Given the client runs `ipmipower --on`
    And 10 minutes pass
    And the BMC has the quirk "ipmi-<workaround>"
    When the client runs `ipmi-sensors -t Fan`
    Then it exits with 0
    And it prints "| N/A | RPM"
    When the client runs `ipmi-sensors -t Fan -W <workaround>`
    Then it exits with 0
    And it prints a match of "[0-9]+[.]00 +[|] RPM"

    Examples:
      | workaround             |
      | assumebmcowner         |
      | ignorescanningdisabled |

  @Q35
  Scenario: ipmi-slowcommit loses writes that follow each other too quickly
    Given a rack of 1 server on the real clock
    And the BMC has the quirk "ipmi-slowcommit n=1 within=500ms"
    When the client runs `ipmi-config --commit -e User5:Username=alice -e User6:Username=bob`
    Then it exits with 0
    When the client runs `ipmi-config --checkout -e User5:Username -e User6:Username`
    Then it prints "alice"
    And it does not print "bob"
    When the client runs `ipmi-config -W slowcommit --commit -e User7:Username=carol -e User8:Username=dave`
    Then it exits with 0
    When the client runs `ipmi-config --checkout -e User7:Username -e User8:Username`
    Then it prints "carol"
    And it prints "dave"

  @Q35
  Scenario: ipmi-cipher17-only refuses cipher suite 3
    Given the BMC has the quirk "ipmi-cipher17-only"
    When the client runs `ipmitool -C 3 mc guid`
    Then it fails
    When the client runs `ipmitool -C 17 mc guid`
    Then it exits with 0

  @Q35
  Scenario: ipmi-disabled-by-default answers when IPMI is enabled
    Given the BMC has the quirk "ipmi-disabled-by-default"
    Then GET Managers/1/NetworkProtocol has "IPMI/ProtocolEnabled": false
    When the client sends PATCH Managers/1/NetworkProtocol {"IPMI": {"ProtocolEnabled": true}}
    And the client runs `ipmitool -C 17 mc guid`
    Then it exits with 0

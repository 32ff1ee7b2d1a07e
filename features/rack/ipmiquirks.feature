Feature: What real BMCs do wrong with IPMI

  Background:
    Given a rack of 2 servers whose users are ADMIN, op and usr

  @Q35
  Scenario: A list of cipher suites that never comes
    Given the BMC has the quirk "ipmi-cipher-list-silent"
    When the operator runs `ipmitool -R 1 -N 1 mc guid`
    Then it says "Unable to Get Channel Cipher Suites"
    When the operator runs `ipmitool -C 17 mc guid`
    Then it succeeds

  @Q35
  Scenario: A list of cipher suites that is not true
    Given the BMC has the quirk "ipmi-cipher-list-lies"
    When the operator runs `ipmitool -R 1 -N 1 mc guid`
    Then it fails
    When the operator runs `ipmitool -C 3 mc guid`
    Then it succeeds

  @Q35
  Scenario: Power that cannot be switched off twice
    When the operator runs `ipmitool chassis power off`
    Then it ends well
    Given the BMC has the quirk "ipmi-off-when-off-errors"
    When the operator runs `ipmitool chassis power off`
    Then it fails
    And it says "not supported in present state"
    When the operator runs `ipmitool chassis power status`
    Then it says "Chassis Power is off"

  @Q35
  Scenario: A BMC without the boot option that keeps requests
    Given the BMC has the quirk "ipmi-no-bootparam3"
    When the operator runs `ipmitool raw 0x00 0x08 0x03 0x08`
    Then it fails
    When the operator runs `ipmitool raw 0x00 0x08 0x05 0x80 0x04 0x00 0x00 0x00`
    Then it ends well

  @Q35
  Scenario: A disk that is another boot device in UEFI mode
    Given the BMC has the quirk "ipmi-smc-uefi-0x24"
    When the operator runs `ipmitool raw 0x00 0x08 0x05 0xa0 0x08 0x00 0x00 0x00`
    Then it ends well
    And "Boot/BootSourceOverrideTarget" of "Systems/1" is "None"
    When the operator runs `ipmitool raw 0x00 0x08 0x05 0xa0 0x24 0x00 0x00 0x00`
    Then it ends well
    And "Boot/BootSourceOverrideTarget" of "Systems/1" is "Hdd"

  @Q35
  Scenario Outline: What FreeIPMI has a word for: <workaround>
    Given the BMC has the quirk "ipmi-<workaround>"
    When the operator runs `ipmipower -I <suite> --stat`
    Then it says "<error>"
    When the operator runs `ipmipower -I <suite> -W <workaround> --stat`
    Then it says ": off"
    When the operator runs `ipmipower -I 3 --stat` at the other server
    Then it says ": off"

    Examples:
      | workaround          | suite | error            |
      | authcap             | 3     | username invalid |
      | opensesspriv        | 3     | password invalid |
      | integritycheckvalue | 0     | k_g invalid      |
      | supermicro20        | 3     | password invalid |
      | sun20               | 3     | password invalid |
      | intel20             | 3     | privilege level  |

  @Q35
  Scenario: A console whose messages can hold nothing
    Given the operator has run `ipmipower --on`
    And 10 minutes pass
    And IPMI is at a port below 32768
    And the BMC has the quirk "ipmi-solpayloadsize"
    When the operator sits at `ipmiconsole -I 17` until it says "error received", and leaves
    Then it does not say "[SOL established]"
    When the operator sits at `ipmiconsole -I 17 -W solpayloadsize` until it says "[SOL established]", and leaves
    Then it says "closing the connection"

  @Q35
  Scenario Outline: What FreeIPMI has a word for, in IPMI 1.5: <workaround>
    Given the BMC has the quirk "ipmi-<workaround>"
    When the operator runs `ipmipower -D LAN --session-timeout=4000 --retransmission-timeout=500 --stat`
    Then it says "timeout"
    When the operator runs `ipmipower -D LAN -W <workaround> --stat`
    Then it says ": off"
    When the operator runs `bmc-info -D LAN -W <workaround>`
    Then it ends well
    And it says "IPMI Version : 2.0"
    When the operator runs `ipmipower -I 3 --stat`
    Then it says ": off"

    Examples:
      | workaround      |
      | idzero          |
      | endianseq       |
      | noauthcodecheck |

  @Q35
  Scenario: Answers whose checksums are wrong
    Given the BMC has the quirk "ipmi-nochecksumcheck"
    When the operator runs `ipmipower --session-timeout=4000 --retransmission-timeout=500 --stat`
    Then it says "timeout"
    When the operator runs `ipmipower -W nochecksumcheck --stat`
    Then it says ": off"

  @Q35
  Scenario: Sensors that read numbers and say that they have states
    Given the operator has run `ipmipower --on`
    And 10 minutes pass
    And the BMC has the quirk "ipmi-discretereading"
    When the operator runs `ipmi-sensors -t Fan`
    Then it ends well
    And it does not say "RPM"
    And it says "N/A"
    When the operator runs `ipmi-sensors -t Fan -W discretereading`
    Then it ends well
    And it says something like "[0-9]+[.]00 +[|] RPM"
    When the operator runs `ipmi-sensors -t Fan` at the other server
    Then it ends well

  @Q35
  Scenario Outline: Sensors that are nobody's, or that nobody reads, as they say: <workaround>
    Given the operator has run `ipmipower --on`
    And 10 minutes pass
    And the BMC has the quirk "ipmi-<workaround>"
    When the operator runs `ipmi-sensors -t Fan`
    Then it ends well
    And it says "| N/A | RPM"
    When the operator runs `ipmi-sensors -t Fan -W <workaround>`
    Then it ends well
    And it says something like "[0-9]+[.]00 +[|] RPM"

    Examples:
      | workaround             |
      | assumebmcowner         |
      | ignorescanningdisabled |

  @Q35
  Scenario: Configuration that is written faster than it is kept
    Given a rack of 1 server whose time passes by itself
    And the BMC has the quirk "ipmi-slowcommit n=1 within=500ms"
    When the operator runs `ipmi-config --commit -e User5:Username=alice -e User6:Username=bob`
    Then it ends well
    When the operator runs `ipmi-config --checkout -e User5:Username -e User6:Username`
    Then it says "alice"
    And it does not say "bob"
    When the operator runs `ipmi-config -W slowcommit --commit -e User7:Username=carol -e User8:Username=dave`
    Then it ends well
    When the operator runs `ipmi-config --checkout -e User7:Username -e User8:Username`
    Then it says "carol"
    And it says "dave"

  @Q35
  Scenario: A BMC that takes one cipher suite
    Given the BMC has the quirk "ipmi-cipher17-only"
    When the operator runs `ipmitool -C 3 mc guid`
    Then it fails
    When the operator runs `ipmitool -C 17 mc guid`
    Then it ends well

  @Q35
  Scenario: A BMC that speaks IPMI when it is told to
    Given the BMC has the quirk "ipmi-disabled-by-default"
    Then "IPMI/ProtocolEnabled" of "Managers/1/NetworkProtocol" is "false"
    When the operator switches IPMI on
    And the operator runs `ipmitool -C 17 mc guid`
    Then it ends well

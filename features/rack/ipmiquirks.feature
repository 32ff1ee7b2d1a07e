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

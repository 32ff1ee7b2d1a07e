Feature: The conformance of a BMC that is known by its address alone
  The checks of labctl conformance, in a feature. A BMC of a real server joins in the
  same way: Given the BMC at "https://192.0.2.7" with the credentials in the file
  "bmc.yaml".

  Background:
    Given a lab with 1 server

  Scenario: A BMC that the checks read is ready
    Given the BMC at the server's address
    When its read-only checks "NET,AUTH,SYS,PWR,BOOT,VM" run
    Then the check "AUTH-001" passes
    And the check "SYS-004" passes
    And the check "PWR-002" is skipped because of "needs --level disruptive"
    And the verdict for "metal3-redfish-vmedia" is "READY"

  Scenario: A BMC that loses links is ready, if clients know it
    Given the server's BMC has the quirk "missing-links"
    And the BMC at the server's address
    When its read-only checks "SYS" run
    Then the check "SYS-001" passes
    And the check "SYS-003" warns because of "ManagedBy"
    And the verdict for "metal3-redfish-vmedia" is "READY WITH QUIRKS"

  Scenario: Writes are taken back
    Given the BMC at the server's address
    When its reversible checks "BOOT-002,BOOT-003" run
    Then the check "BOOT-002" passes
    And the check "BOOT-003" passes

  Scenario: The checks name the first blocker of a BMC that ignores the boot source
    Given the server's BMC has the quirk "boot-silently-ignored"
    And the BMC at the server's address
    When its reversible checks "BOOT-002" run
    Then the check "BOOT-002" fails
    And the verdict for "metal3-redfish-vmedia" is "NOT READY"

Feature: Checks that restart the server or the BMC

  Scenario Outline: <check> passes on the generic server
    Given the BMC of a "generic" server
    When the disruptive checks run
    Then <check> is <verdict>

    Examples:
      | check    | verdict |
      | BIOS-004 | pass    |
      | BOOT-008 | pass    |
      | BOOT-010 | pass    |
      | BOOT-011 | pass    |
      | BOOT-013 | pass    |
      | MGR-001  | pass    |
      | PWR-002  | pass    |
      | PWR-003  | pass    |
      | PWR-004  | pass    |
      | PWR-005  | pass    |
      | PWR-006  | pass    |
      | PWR-007  | pass    |
      | PWR-009  | pass    |
      | PWR-010  | pass    |
      | SB-002   | pass    |
      | STO-003  | pass    |
      | VM-011   | pass    |
      | VM-012   | pass    |
      | VM-013   | pass    |

  Scenario Outline: <check> is <verdict> with <wrong>
    Given the BMC of a "<server>" server
    And the BMC has: <wrong>
    When the disruptive checks <which> run
    Then <check> is <verdict>
    And beside <check>, only these differ: <also>

    @sample-10
    Examples:
      | check    | verdict | server  | which    | wrong                                                                                                                                                                                 | also          |
      | SYS-006  | fail    | generic | SYS-006  | quirk ids-shift-on-reboot                                                                                                                                                             | none          |
      | PWR-002  | fail    | generic | PWR-002  | fault {"path": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", "status": 500}                                                                                                   | none          |
      | PWR-003  | warn    | generic | PWR-003  | quirk power-settle-409                                                                                                                                                                | none          |
      | PWR-003  | warn    | generic | PWR-003  | quirk power-invalid-state-400                                                                                                                                                         | PWR-002 warn  |
      | PWR-004  | fail    | generic | PWR-004  | quirk forcerestart-hangs                                                                                                                                                              | none          |
      | PWR-004  | fail    | generic | PWR-004  | fault in PWR-004 {"path": "/redfish/v1/Systems/1", "set": {"/PowerState": "On", "/BootProgress/LastState": "OSRunning", "/BootProgress/LastStateTime": null, "/LastResetTime": null}} | none          |
      | PWR-005  | fail    | generic | PWR-005  | fault {"path": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", "sends": {"/ResetType": "GracefulShutdown"}, "status": 500}                                                      | none          |
      | PWR-006  | fail    | generic | PWR-006  | fault {"path": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", "sends": {"/ResetType": "PowerCycle"}, "status": 500}                                                            | none          |
      | PWR-007  | fail    | generic | PWR-007  | fault {"path": "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset", "status": 202, "performed": true}                                                                                | none          |
      | PWR-009  | warn    | generic | PWR-009  | quirk ipmi-off-when-off-errors                                                                                                                                                        | none          |
      | PWR-009  | fail    | generic | PWR-009  | fault {"path": "/ipmi/00/02", "code": 213}                                                                                                                                            | none          |
      | PWR-010  | fail    | generic | PWR-010  | fault {"path": "/redfish/v1/Systems/1", "set": {"/BootProgress/LastState": "OSRunning"}}                                                                                              | none          |
      | BOOT-008 | fail    | generic | BOOT-008 | fault in BOOT-008 {"path": "/redfish/v1/Systems/1", "method": ["GET"], "set": {"/Boot/BootSourceOverrideTarget": "Hdd", "/Boot/BootSourceOverrideEnabled": "Once"}}                   | none          |
      | BOOT-010 | fail    | generic | BOOT-010 | fault {"path": "/redfish/v1/Systems/1", "method": ["PATCH"], "status": 200, "after": 2, "count": 1}                                                                                   | none          |
      | BOOT-011 | fail    | generic | BOOT-011 | fault {"path": "/redfish/v1/Systems/1", "method": ["PATCH"], "status": 400, "after": 2}                                                                                               | none          |
      | BOOT-013 | warn    | generic | BOOT-013 | quirk post-rejects-changes                                                                                                                                                            | none          |
      | VM-011   | fail    | generic | VM-011   | fault {"path": "/redfish/v1/Systems/1", "method": ["PATCH"], "status": 200, "after": 2}                                                                                               | none          |
      | VM-012   | warn    | generic | VM-012   | quirk vmedia-cd-alias                                                                                                                                                                 | none          |
      | VM-013   | fail    | generic | VM-013   | fault {"path": "/redfish/v1/Systems/1", "method": ["PATCH"], "status": 200, "after": 3}                                                                                               | none          |
      | BIOS-004 | fail    | generic | BIOS-004 | quirk bios-registry-lag                                                                                                                                                               | BIOS-002 warn |
      | STO-003  | fail    | generic | STO-003  | fault {"path": "/redfish/v1/Systems/1/Storage/*/Drives/*", "set": {"/SerialNumber": "other", "/Identifiers": []}}                                                                     | none          |
      | SB-002   | fail    | generic | SB-002   | fault {"path": "/redfish/v1/Systems/1/SecureBoot", "method": ["PATCH"], "status": 200}                                                                                                | none          |
      | MGR-001  | fail    | generic | MGR-001  | fault {"path": "/redfish/v1/Managers/1/Actions/Manager.Reset", "status": 500}                                                                                                         | none          |

  Scenario: The time of a restart tells of one that is over before the next look
    Given the BMC of a "generic" server
    And the BMC has: fault in PWR-004 {"path": "/redfish/v1/Systems/1", "set": {"/PowerState": "On", "/BootProgress/LastState": "OSRunning"}}
    When the disruptive checks PWR-004 run
    Then PWR-004 is pass

  Scenario Outline: <check> passes on a server without an operating system
    Given the BMC of a "generic" server
    And the BMC has: nothing bootable
    When the disruptive checks <check> run
    Then <check> is pass
    And beside <check>, only these differ: none

    Examples:
      | check    |
      | SYS-006  |
      | PWR-004  |
      | PWR-005  |
      | PWR-006  |
      | PWR-010  |
      | BOOT-008 |

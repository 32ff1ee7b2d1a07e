Feature: Checks that lose data

  Scenario Outline: <check> passes on the raid server
    Given the BMC of a "raid" server
    When the destructive checks run
    Then <check> is <verdict>

    Examples:
      | check   | verdict |
      | STO-004 | pass    |
      | STO-005 | pass    |
      | STO-006 | pass    |

  Scenario Outline: <check> is <verdict> with <wrong>
    Given the BMC of a "<server>" server
    And the BMC has: <wrong>
    When the destructive checks <which> run
    Then <check> is <verdict>
    And beside <check>, only these differ: <also>

    Examples:
      | check    | verdict | server    | which    | wrong                                                                                                                                                                                                                                                                       | also |
      | E2E-002  | pass    | generic   | E2E-002  | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                           | none |
      | E2E-001  | pass    | generic   | E2E-001  | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                           | none |
      | STO-007  | pass    | generic   | STO-007  | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                           | none |
      | SB-003   | pass    | generic   | SB-003   | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                           | none |
      | BIOS-007 | pass    | generic   | BIOS-007 | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                           | none |
      | BIOS-007 | fail    | generic   | BIOS-007 | fault {"path": "/redfish/v1/Systems/1/Bios/Actions/Bios.ResetBios", "status": 500}                                                                                                                                                                                          | none |
      | STO-004  | fail    | raid      | STO-004  | fault {"path": "/redfish/v1/Systems/1/Storage/*/Volumes", "method": ["POST"], "status": 400}                                                                                                                                                                                | none |
      | STO-005  | fail    | raid      | STO-005  | fault {"path": "/redfish/v1/Systems/1/Storage/*/Volumes", "method": ["POST"], "status": 400, "after": 1}                                                                                                                                                                    | none |
      | STO-006  | fail    | raid      | STO-006  | fault {"path": "/redfish/v1/Systems/1/Storage/*/Volumes/*/Actions/Volume.Initialize", "status": 500}                                                                                                                                                                        | none |
      | STO-007  | fail    | generic   | STO-007  | fault {"path": "/redfish/v1/Systems/1/Storage/*/Drives/*/Actions/Drive.SecureErase", "status": 500}                                                                                                                                                                         | none |
      | FW-004   | pass    | generic   | FW-004   | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                           | none |
      | SB-003   | fail    | generic   | SB-003   | fault {"path": "/redfish/v1/Systems/1/SecureBoot/Actions/SecureBoot.ResetKeys", "status": 500}                                                                                                                                                                              | none |
      | FW-004   | fail    | generic   | FW-004   | fault {"path": "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", "method": ["POST"], "status": 400, "after": 1}                                                                                                                                               | none |
      | E2E-001  | fail    | generic   | E2E-001  | provisioner fault in boot                                                                                                                                                                                                                                                   | none |
      | E2E-001  | fail    | generic   | E2E-001  | provisioner leaves the server off                                                                                                                                                                                                                                           | none |
      | E2E-002  | fail    | generic   | E2E-002  | provisioner fault in boot                                                                                                                                                                                                                                                   | none |
      | STO-008  | pass    | dell-r640 | STO-008  | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                           | none |
      | STO-008  | fail    | dell-r640 | STO-008  | fault {"path": "/redfish/v1/Systems/System.Embedded.1/Oem/Dell/DellRaidService/Actions/DellRaidService.ConvertToNonRAID", "status": 202, "body": "{}"}                                                                                                                      | none |
      | STO-008  | fail    | dell-r640 | STO-008  | fault {"path": "/redfish/v1/Systems/System.Embedded.1/Storage/*/Controllers/*", "method": ["GET"], "set": {"/Oem/Dell/DellStorageController/ControllerMode": "HBA", "/@Redfish.Settings": {"SettingsObject": {"@odata.id": "/redfish/v1/Systems/System.Embedded.1/none"}}}} | none |

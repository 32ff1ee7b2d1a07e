Feature: Checks that write and restore

  Scenario Outline: <check> passes on the generic server
    Given the BMC of a "generic" server
    When the reversible checks run
    Then <check> is <verdict>

    Examples:
      | check    | verdict |
      | AUTH-004 | pass    |
      | AUTH-009 | pass    |
      | AUTH-010 | pass    |
      | BIOS-003 | pass    |
      | BIOS-005 | pass    |
      | BIOS-006 | pass    |
      | BOOT-002 | pass    |
      | BOOT-003 | pass    |
      | BOOT-004 | pass    |
      | BOOT-005 | pass    |
      | BOOT-006 | pass    |
      | BOOT-007 | pass    |
      | BOOT-009 | pass    |
      | BOOT-012 | pass    |
      | BOOT-014 | pass    |
      | CERT-001 | pass    |
      | EVT-001  | pass    |
      | FW-003   | pass    |
      | IPMI-005 | pass    |
      | SYS-008  | pass    |
      | SYS-009  | pass    |
      | VM-003   | pass    |
      | VM-004   | pass    |
      | VM-005   | pass    |
      | VM-006   | pass    |
      | VM-007   | pass    |
      | VM-008   | pass    |
      | VM-009   | pass    |
      | VM-010   | pass    |
      | VM-014   | pass    |

  Scenario Outline: <check> is <verdict> with <wrong>
    Given the BMC of a "<server>" server
    And the BMC has: <wrong>
    When the reversible checks <which> run
    Then <check> is <verdict>
    And beside <check>, only these differ: <also>

    @sample-25
    Examples:
      | check    | verdict | server    | which           | wrong                                                                                                                                               | also                         |
      | AUTH-004 | warn    | generic   | AUTH-004        | quirk session-limit most=4                                                                                                                          | none                         |
      | AUTH-004 | fail    | generic   | AUTH-004        | fault in AUTH-004 {"path": "/redfish/v1/SessionService/Sessions", "method": ["POST"], "status": 500, "after": 20, "count": 1}                       | none                         |
      | AUTH-005 | fail    | generic   | AUTH-005        | quirk auth-delay                                                                                                                                    | none                         |
      | AUTH-009 | fail    | generic   | AUTH-009        | fault {"path": "/redfish/v1/AccountService/Accounts/*", "method": ["PATCH"], "status": 200}                                                         | none                         |
      | AUTH-009 | warn    | dell-r760 | AUTH-009        | quirk accounts-are-slots                                                                                                                            | none                         |
      | AUTH-010 | fail    | generic   | AUTH-010        | fault {"path": "/redfish/v1/AccountService/Accounts", "method": ["POST"], "status": 400, "after": 1, "count": 1}                                    | none                         |
      | SYS-008  | fail    | generic   | SYS-008         | fault {"path": "/redfish/v1/Systems/1", "method": ["PATCH"], "status": 200}                                                                         | none                         |
      | SYS-009  | fail    | generic   | SYS-009         | fault {"path": "/redfish/v1/Systems/1", "method": ["PATCH"], "status": 400}                                                                         | none                         |
      | BOOT-002 | fail    | generic   | around BOOT-002 | quirk boot-silently-ignored                                                                                                                         | BOOT-012 fail, VM-002 pass   |
      | BOOT-003 | warn    | generic   | around BOOT-003 | quirk boot-enabled-required                                                                                                                         | none                         |
      | BOOT-003 | warn    | generic   | around BOOT-003 | quirk boot-full-request                                                                                                                             | none                         |
      | BOOT-003 | warn    | generic   | around BOOT-003 | quirk boot-minimal-request                                                                                                                          | none                         |
      | BOOT-003 | warn    | generic   | around BOOT-003 | quirk boot-redundant-rejected                                                                                                                       | none                         |
      | BOOT-004 | warn    | generic   | around BOOT-004 | quirk etag-required                                                                                                                                 | none                         |
      | BOOT-004 | warn    | generic   | around BOOT-004 | quirk etag-mismatch-own                                                                                                                             | none                         |
      | BOOT-004 | warn    | generic   | around BOOT-004 | quirk etag-weak-vs-strong                                                                                                                           | none                         |
      | BOOT-004 | warn    | generic   | around BOOT-004 | quirk etag-gzip-suffix                                                                                                                              | none                         |
      | BOOT-005 | warn    | generic   | around BOOT-005 | quirk boot-readonly-use-settings                                                                                                                    | BOOT-004 warn, BOOT-012 warn |
      | BOOT-006 | warn    | generic   | around BOOT-006 | quirk boot-no-continuous                                                                                                                            | none                         |
      | BOOT-007 | fail    | generic   | BOOT-007        | fault {"path": "/redfish/v1/Systems/1", "method": ["PATCH"], "status": 200, "after": 3, "count": 1}                                                 | none                         |
      | BOOT-009 | fail    | generic   | BOOT-009        | fault in BOOT-009 {"path": "/redfish/v1/Systems/1", "method": ["GET"], "set": {"/Boot/BootSourceOverrideMode": "Legacy"}, "after": 1}               | none                         |
      | BOOT-012 | fail    | generic   | BOOT-012        | fault {"path": "/redfish/v1/Systems/1", "method": ["PATCH"], "status": 200}                                                                         | none                         |
      | BOOT-014 | fail    | generic   | BOOT-014        | fault {"path": "/ipmi/00/09", "code": 193}                                                                                                          | none                         |
      | BOOT-014 | warn    | generic   | BOOT-014        | quirk ipmi-no-bootparam3                                                                                                                            | none                         |
      | BOOT-014 | warn    | generic   | BOOT-014        | quirk ipmi-smc-uefi-0x24                                                                                                                            | none                         |
      | VM-002   | fail    | generic   | VM-002          | quirk license-denied                                                                                                                                | none                         |
      | VM-003   | warn    | generic   | around VM-003   | quirk vmedia-strict-payload                                                                                                                         | none                         |
      | VM-003   | warn    | generic   | around VM-003   | quirk vmedia-missing-params                                                                                                                         | none                         |
      | VM-003   | warn    | generic   | around VM-003   | quirk vmedia-missing-params account=yes                                                                                                             | none                         |
      | VM-003   | warn    | generic   | around VM-003   | quirk vmedia-patch-only                                                                                                                             | VM-001 warn                  |
      | VM-003   | fail    | generic   | around VM-003   | quirk vmedia-own-way                                                                                                                                | VM-001 warn                  |
      | VM-003   | fail    | dell-r760 | VM-003          | quirk vmedia-detached                                                                                                                               | none                         |
      | VM-003   | warn    | generic   | around VM-003   | quirk vmedia-no-http                                                                                                                                | none                         |
      | VM-004   | fail    | generic   | VM-004          | fault {"path": "/redfish/v1/Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", "method": ["POST"], "status": 400, "after": 2}             | none                         |
      | VM-005   | fail    | generic   | VM-005          | fault {"path": "/redfish/v1/Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", "method": ["POST"], "status": 204, "after": 2, "count": 1} | none                         |
      | VM-006   | fail    | generic   | VM-006          | fault {"path": "/redfish/v1/Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", "method": ["POST"], "status": 204, "after": 2, "count": 1} | none                         |
      | VM-007   | fail    | generic   | VM-007          | fault {"path": "/redfish/v1/Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", "method": ["POST"], "status": 204, "after": 3, "count": 1} | none                         |
      | VM-008   | warn    | generic   | around VM-008   | quirk vmedia-eject-needs-body                                                                                                                       | none                         |
      | VM-008   | fail    | generic   | around VM-008   | quirk vmedia-stale-inserted                                                                                                                         | none                         |
      | VM-009   | warn    | generic   | VM-009          | fault {"path": "/redfish/v1/Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", "method": ["POST"], "status": 204, "after": 3, "count": 1} | none                         |
      | VM-010   | fail    | generic   | VM-010          | fault {"path": "/redfish/v1/Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia", "method": ["POST"], "status": 400, "after": 2}             | none                         |
      | VM-014   | fail    | generic   | VM-014          | fault {"path": "/redfish/v1/Systems/1/VirtualMedia/Usb/Actions/VirtualMedia.InsertMedia", "method": ["POST"], "status": 400}                        | none                         |
      | BIOS-003 | fail    | generic   | BIOS-003        | quirk jobs-blocked                                                                                                                                  | none                         |
      | BIOS-005 | fail    | generic   | BIOS-005        | fault {"path": "/redfish/v1/Systems/1/Bios/Settings", "method": ["PATCH"], "status": 200}                                                           | none                         |
      | BIOS-006 | fail    | generic   | BIOS-006        | fault {"path": "/redfish/v1/Systems/1/Bios/Settings", "method": ["PATCH"], "status": 200}                                                           | none                         |
      | FW-003   | fail    | generic   | FW-003          | fault {"path": "/redfish/v1/UpdateService/Actions/UpdateService.SimpleUpdate", "status": 202}                                                       | none                         |
      | FW-003   | warn    | generic   | FW-003          | quirk task-404-race                                                                                                                                 | none                         |
      | EVT-001  | fail    | generic   | EVT-001         | quirk sse-malformed                                                                                                                                 | none                         |
      | EVT-001  | fail    | generic   | EVT-001         | fault {"path": "/redfish/v1/EventService/Subscriptions", "method": ["POST"], "status": 405}                                                         | none                         |
      | TIME-001 | warn    | generic   | TIME-001        | quirk clock-offset-same-value                                                                                                                       | none                         |
      | CERT-001 | fail    | generic   | CERT-001        | fault {"path": "/redfish/v1/CertificateService/Actions/CertificateService.GenerateCSR", "status": 200, "body": "{\\"CSRString\\": \\"x\\"}"}        | none                         |
      | IPMI-005 | fail    | generic   | IPMI-005        | quirk ipmi-solpayloadsize                                                                                                                           | none                         |

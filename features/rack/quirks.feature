Feature: Quirks of real BMCs
  Each quirk deviates from the standard as some real BMC does. A request that the
  standard allows fails; a client that knows the quirk retries with another one.

  Background:
    Given a rack of 2 servers

  @Q1 @Q4 @Q5 @Q7 @Q8 @Q9 @Q2
  Scenario Outline: Virtual media: <quirk>
    Given the BMC has the quirk "<quirk>"
    When these requests succeed: <before>
    And the client sends <request>
    Then the response is <status> with "<message>"
    When the client sends <retry>
    Then the response is <status of the retry>

    Examples:
      | quirk                             | before                                                                                                                                             | request                                                                                                                                        | status | message                     | retry                                                                                                                                                                          | status of the retry |
      | vmedia-strict-payload             | none                                                                                                                                               | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE", "Inserted": true}                                           | 400    | ActionParameterUnknown      | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                                                                                             | 204                 |
      | vmedia-patch-only                 | none                                                                                                                                               | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                                                             | 404    | ActionNotSupported          | PATCH Systems/1/VirtualMedia/Cd {"Image": "IMAGE", "Inserted": true}                                                                                                           | 200                 |
      | vmedia-patch-only                 | none                                                                                                                                               | PATCH Systems/1/VirtualMedia/Cd {"Image": "IMAGE"}                                                                                             | 400    | PropertyMissing             | PATCH Systems/1/VirtualMedia/Cd {"Image": "IMAGE", "Inserted": true}                                                                                                           | 200                 |
      | vmedia-missing-params             | none                                                                                                                                               | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                                                             | 400    | ActionParameterMissing      | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE", "TransferMethod": "Stream", "TransferProtocolType": "HTTP"}                                 | 204                 |
      | vmedia-missing-params account=yes | none                                                                                                                                               | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE", "TransferMethod": "Stream", "TransferProtocolType": "HTTP"} | 400    | ActionParameterMissing      | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE", "UserName": "", "Password": "", "TransferMethod": "Stream", "TransferProtocolType": "HTTP"} | 204                 |
      | vmedia-no-http but=nfs            | none                                                                                                                                               | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "https://127.0.0.1:1/none.iso"}                                      | 400    | ActionParameterNotSupported | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia                                                                                                                 | 204                 |
      | vmedia-eject-needs-body           | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                                                                 | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia                                                                                 | 400    | MalformedJSON               | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia {}                                                                                                              | 204                 |
      | vmedia-no-http                    | none                                                                                                                                               | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                                                             | 400    | ActionParameterNotSupported | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia                                                                                                                 | 204                 |
      | vmedia-stale-inserted for=10s     | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}; POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                                                             | 500    | VRM0012                     | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia                                                                                                                 | 204                 |

  @Q1
  Scenario: vmedia-stale-inserted ends after a while
    Given the BMC has the quirk "vmedia-stale-inserted for=10s"
    When these requests succeed: POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}; POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia; wait 11s
    And the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 204

  @Q2
  Scenario: vmedia-detached ends with Manager.Reset
    Given the BMC has the quirk "vmedia-detached"
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 500 with "VRM0021"
    When the client sends POST Managers/1/Actions/Manager.Reset {"ResetType": "ForceRestart"}
    And 90 seconds pass
    And the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 204

  @Q12 @Q13 @Q15
  Scenario Outline: Boot override: <quirk>
    Given the BMC has the quirk "<quirk>"
    When the client sends <request>
    Then the response is <status> with "<message>"
    When the client sends <retry>
    Then the response is 200
    And the client sends to the second BMC: <request>
    And the response is 200

    Examples:
      | quirk                 | request                                                                                                                              | status | message                | retry                                                                                                                                |
      | boot-enabled-required | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe"}}                                                                        | 400    | PropertyMissing        | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}                                   |
      | boot-full-request     | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}                                   | 400    | PropertyMissing        | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}} |
      | boot-minimal-request  | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}} | 400    | PropertyValueConflict  | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}                                   |
      | boot-no-continuous    | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous"}}                             | 400    | PropertyValueNotInList | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}                                   |

  @Q16 @Q17 @Q18
  Scenario Outline: Power: <quirk>
    Given the BMC has the quirk "<quirk>"
    When these requests succeed: <before>
    And the client sends <request>
    Then the response is <status> with "<message>"
    When <wait> seconds pass
    And the client sends <request>
    Then the response is <status of the retry>

    Examples:
      | quirk                           | before                                                                                                                                          | request                                                         | status | message                        | wait | status of the retry |
      | power-settle-409 for=10s        | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "ForceOff"}; wait 8s | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"} | 409    | ActionParameterValueConflict   | 10   | 204                 |
      | power-invalid-state-400 for=10s | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "ForceOff"}; wait 8s | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"} | 400    | InvalidOperationForSystemState | 10   | 204                 |
      | post-rejects-changes            | POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 10s                                                                       | PATCH Systems/1 {"AssetTag": "a"}                               | 400    | UnableToModifyDuringSystemPOST | 300  | 200                 |

  @Q19 @Q20
  Scenario: bmc-not-ready answers PATCH with 503 after Manager.Reset
    Given the BMC has the quirk "bmc-not-ready for=1m"
    When the client sends POST Managers/1/Actions/Manager.Reset {"ResetType": "ForceRestart"}
    And 65 seconds pass
    And the client sends PATCH Systems/1 {"AssetTag": "a"}
    Then the response is 503 with "SYS518"
    When 60 seconds pass
    And the client sends PATCH Systems/1 {"AssetTag": "a"}
    Then the response is 200

  @Q19
  Scenario: bmc-not-ready can answer with 400 and show empty collections
    Given the BMC has the quirk "bmc-not-ready for=1m how=400 members=empty"
    When the client sends POST Managers/1/Actions/Manager.Reset {"ResetType": "ForceRestart"}
    And 65 seconds pass
    And the client sends PATCH Systems/1 {"AssetTag": "a"}
    Then the response is 400 with "SWC0700"
    And GET Systems has "Members@odata.count": 0
    And GET Systems/1 has "Id": "1"
    When 60 seconds pass
    Then GET Systems has "Members@odata.count": 1

  @Q22 @Q34
  Scenario Outline: Sessions and accounts: <quirk>
    Given the BMC has the quirk "<quirk>"
    When these requests succeed: <before>
    And the client sends <request>
    Then the response is <status> with "<message>"
    And the client sends to the second BMC: <request>
    And the response is 201

    Examples:
      | quirk                | before                                                                           | request                                                                                             | status | message              |
      | no-sessions          | none                                                                             | POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}                    | 405    | SYS402               |
      | session-limit most=1 | POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"} | POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}                    | 503    | SessionLimitExceeded |
      | accounts-are-slots   | none                                                                             | POST AccountService/Accounts {"UserName": "joe", "Password": "joes-password", "RoleId": "ReadOnly"} | 405    | OperationNotAllowed  |

  @Q23
  Scenario Outline: ETags: <quirk>
    Given the BMC has the quirk "<quirk>"
    When the client sends <request>
    Then the response is <status>
    When the client sends <retry>
    Then the response is <status of the retry>

    Examples:
      | quirk               | request                                                                               | status | retry                                                          | status of the retry |
      | etag-required       | PATCH Systems/1 {"AssetTag": "a"}                                                     | 428    | PATCH Systems/1 {"AssetTag": "a"} with If-Match: ETAG          | 200                 |
      | etag-weak-vs-strong | PATCH Systems/1 {"AssetTag": "a"} with If-Match: ETAG                                 | 412    | PATCH Systems/1 {"AssetTag": "a"}                              | 200                 |
      | etag-mismatch-own   | PATCH Systems/1 {"AssetTag": "a"} with If-Match: ETAG                                 | 412    | PATCH Systems/1 {"AssetTag": "a"}                              | 200                 |
      | etag-double-quoted  | PATCH Systems/1 {"AssetTag": "a"}                                                     | 200    | PATCH Systems/1 {"AssetTag": "a"} with If-Match: ETAG          | 200                 |
      | etag-on-action-412  | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia {} with If-Match: ETAG | 412    | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia | 204                 |
      | etag-empty          | PATCH Systems/1 {"AssetTag": "a"} with If-Match: ETAG                                 | 412    | PATCH Systems/1 {"AssetTag": "a"}                              | 200                 |
      | etag-gzip-suffix    | PATCH Systems/1 {"AssetTag": "a"} with If-Match: ETAG-GZIP                            | 412    | PATCH Systems/1 {"AssetTag": "a"} with If-Match: ETAG-GZIP-CUT | 200                 |

  @Q24 @Q25 @Q26 @Q27
  Scenario: conn-abrupt-close, license-denied, extendedinfo-object and missing-links
    Given the BMC has the quirk "conn-abrupt-close"
    When the client sends PATCH Systems/1 {"AssetTag": "a"}
    Then the connection is closed after the response
    Given the BMC has the quirk "license-denied"
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 403 with "OemLicenseNotPassed"
    When the client sends PATCH Systems/1/SecureBoot {"SecureBootEnable": true}
    Then the response is 403 with "OemLicenseNotPassed"
    Given the BMC has the quirk "extendedinfo-object"
    When the client sends PATCH Systems/1 {"Nonsense": 1}
    Then the response has "error/@Message.ExtendedInfo" of the JSON type object
    Given the BMC has the quirk "extendedinfo-object as=text"
    When the client sends PATCH Systems/1 {"Nonsense": 1}
    Then the response has "error/@Message.ExtendedInfo" of the JSON type string
    Given the BMC has the quirk "missing-links"
    Then GET Systems/1 has no "Links/ManagedBy"
    And GET Systems/1 has no "EthernetInterfaces"
    And GET Systems/1/EthernetInterfaces/1 has "MACAddress" matching ^$
    Given the BMC has no quirk
    When the client sends PATCH Systems/1 {"AssetTag": "a"}
    Then the response is 200

  @Q6
  Scenario: vmedia-own-way has neither InsertMedia nor PATCH
    Given the BMC has the quirk "vmedia-own-way"
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 404
    When the client sends PATCH Systems/1/VirtualMedia/Cd {"Image": "IMAGE", "Inserted": true}
    Then the response is 405 with "OperationNotAllowed"
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.EjectMedia
    Then the response is 404

  @Q24
  Scenario: http-only serves HTTP without TLS
    Given the BMC has the quirk "http-only"
    Then the BMC serves HTTP alone
    Given the BMC has no quirk
    Then the BMC serves HTTPS alone

  @Q28
  Scenario: members-null shows empty collections with Members null
    Given the BMC has the quirk "members-null"
    Then GET EventService/Subscriptions has "Members": null

  @Q28
  Scenario: collections-paged shows a part of a collection and a nextLink
    Given the BMC has the quirk "collections-paged size=2"
    When the client sends GET AccountService/Roles
    Then the response is 200
    And the response has 2 members
    And the response has "Members@odata.count": 3
    And the response has "Members@odata.nextLink": "/redfish/v1/AccountService/Roles?$skip=2"
    When the client sends GET AccountService/Roles?$skip=2
    Then the response has 1 member
    And the response has no "Members@odata.nextLink"
    Given the BMC has no quirk
    When the client sends GET AccountService/Roles
    Then the response has 3 members

  @Q3 @Q6
  Scenario Outline: Virtual media at another URI: <quirk>
    Given the BMC has the quirk "<quirk>"
    When the client sends <request>
    Then the response is <status> with "<message>"
    When the client sends <retry>
    Then the response is 204

    Examples:
      | quirk                         | request                                                                             | status | message              | retry                                                                               |
      | vmedia-uri-moved              | POST Managers/1/VirtualMedia/CD/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"} | 404    | RAC0904              | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}  |
      | vmedia-dead-slots             | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}  | 404    | ResourceMissingAtURI | POST Systems/1/VirtualMedia/Usb/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"} |
      | vmedia-dead-slots n=1 how=400 | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}  | 400    | ActionNotSupported   | POST Systems/1/VirtualMedia/Usb/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"} |
      | vmedia-dead-slots n=1 how=405 | POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}  | 405    | OperationNotAllowed  | POST Systems/1/VirtualMedia/Usb/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"} |

  @Q7
  Scenario: vmedia-missing-params error=text names the missing parameter in a text alone
    Given the BMC has the quirk "vmedia-missing-params error=text"
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 400
    And the response is not valid JSON
    And the response contains 'The action needs the parameter TransferProtocolType'
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE", "TransferMethod": "Stream", "TransferProtocolType": "HTTP"}
    Then the response is 204

  @Q10
  Scenario: vmedia-cd-alias boots virtual media as UsbCd
    Given the BMC has the quirk "vmedia-cd-alias"
    When these requests succeed: POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}; PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}; POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 400s
    Then BootProgress/LastState of the system is not "OSRunning"
    When these requests succeed: POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "ForceOff"}; wait 10s; PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideEnabled": "Once"}}; POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 400s
    Then GET Systems/1 has "BootProgress/LastState": "OSRunning"

  @Q11
  Scenario: boot-silently-ignored answers 200 and sets nothing
    Given the BMC has the quirk "boot-silently-ignored"
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    Then the response is 200
    And GET Systems/1 has "Boot/BootSourceOverrideEnabled": "Disabled"
    Given the BMC has no quirk
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    Then GET Systems/1 has "Boot/BootSourceOverrideEnabled": "Once"

  @Q14
  Scenario: boot-readonly-use-settings sets the override by the settings resource
    Given the BMC has the quirk "boot-readonly-use-settings"
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    Then the response is 405 with "PropertyNotWritable"
    And GET Systems/1 has "@Redfish.Settings/SettingsObject/@odata.id": "/redfish/v1/Systems/1/Settings"
    When the client sends PATCH Systems/1/Settings {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    Then the response is 428 with "PreconditionRequired"
    When the client sends PATCH Systems/1/Settings {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}} with If-Match: ETAG
    Then the response is 200
    And GET Systems/1 has "Boot/BootSourceOverrideTarget": "Pxe"
    When the client sends PATCH Systems/1 {"AssetTag": "a"}
    Then the response is 200

  @Q21
  Scenario: task-404-race, taskmonitor-get-deletes and task-purged
    Given the BMC has the quirk "task-404-race n=2"
    When the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"} with Prefer: respond-async
    Then the response is 202
    When the client sends GET TaskService/Tasks/1
    Then the response is 404
    When the client sends GET TaskService/Tasks/1
    Then the response is 404
    When the client sends GET TaskService/Tasks/1
    Then the response is 200
    Given the BMC has the quirk "taskmonitor-get-deletes"
    When the client sends GET TaskService/TaskMonitors/1
    Then the response is 204
    When the client sends GET TaskService/TaskMonitors/1
    Then the response is 404
    Given the BMC has the quirk "task-purged after=1m"
    When 61 seconds pass
    And the client sends GET TaskService/Tasks/1
    Then the response is 404

  @Q21
  Scenario: task-state-new shows a running task as New
    Given the BMC has the quirk "task-state-new"
    When the client sends POST UpdateService/Actions/UpdateService.SimpleUpdate {"ImageURI": "FIRMWARE"}
    And 5 seconds pass
    Then GET TaskService/Tasks/1 has "TaskState": "New"
    Given the BMC has no quirk
    Then GET TaskService/Tasks/1 has "TaskState" matching Running|Pending

  @Q29
  Scenario: sse-malformed and dates-bad break the schema
    Given the BMC has the quirk "sse-malformed"
    When the client opens the SSE stream
    And the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}
    And 5 seconds pass
    Then no event of the stream has "MemberId"
    Given the BMC has the quirk "dates-bad"
    Then GET Managers/1 has "DateTime" matching ^20..-..-..T..:..:..-0600$
    And GET UpdateService/FirmwareInventory/BIOS has "ReleaseDate": "0000-00-00T00:00:00Z"
    Given the BMC has no quirk
    Then GET Managers/1 has "DateTime" matching ^20..-..-..T..:..:..(Z|[+]00:00)$

  @Q30
  Scenario: bios-registry-lag has attributes that the BIOS does not know
    Given the BMC has the quirk "bios-registry-lag n=1"
    Then GET Systems/1/Bios/Settings has no "Attributes"
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"NumLock": "Off", "ProcHyperThreading": "Disabled"}}
    Then the response is 200
    And GET Systems/1/Bios/Settings has "Attributes/ProcHyperThreading": "Disabled"
    When these requests succeed: POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 400s
    Then GET Systems/1/Bios has "Attributes/NumLock": "Off"
    And GET Systems/1/Bios has "Attributes/ProcHyperThreading": "Enabled"
    And GET Systems/1/Bios has "@Redfish.Settings/Messages" matching PropertyUnknown.*ProcHyperThreading|ProcHyperThreading.*PropertyUnknown
    And GET Systems/1/Bios/Settings has no "Attributes"

  @Q31
  Scenario: forcerestart-hangs leaves the system in POST
    Given the BMC has the quirk "forcerestart-hangs"
    When these requests succeed: POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}; PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Cd", "BootSourceOverrideEnabled": "Once"}}; POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 30s; POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "ForceRestart"}; wait 900s
    Then GET Systems/1 has "BootProgress/LastState" matching Initialization|Memory|Primary|PCI|SystemHardware
    And GET Systems/1 has "Boot/BootSourceOverrideEnabled": "Once"
    When these requests succeed: POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "ForceOff"}; wait 10s; POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 400s
    Then GET Systems/1 has "BootProgress/LastState": "OSRunning"

  @Q32
  Scenario: clock-offset-same-value refuses the current DateTimeLocalOffset
    Given the BMC has the quirk "clock-offset-same-value"
    When the client sends PATCH Managers/1 {"DateTimeLocalOffset": "+00:00"}
    Then the response is 400 with "PropertyValueError"
    When the client sends PATCH Managers/1 {"DateTimeLocalOffset": "+01:00"}
    Then the response is 200
    And the client sends to the second BMC: PATCH Managers/1 {"DateTimeLocalOffset": "+00:00"}
    And the response is 200

  @Q12
  Scenario: boot-redundant-rejected refuses the current boot override
    Given the BMC has the quirk "boot-redundant-rejected"
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    Then the response is 200
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}}
    Then the response is 400 with "PropertyValueConflict"
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Hdd"}}
    Then the response is 200
    And GET Systems/1 has "Boot/BootSourceOverrideEnabled": "Once"
    And GET Systems/1 has "Boot/BootSourceOverrideTarget": "Hdd"

  @Q24
  Scenario: identity-406 serves a registry with gzip alone
    Given the BMC has the quirk "identity-406"
    When the client sends GET Registries/BiosAttributeRegistryG1.v1_2_0/BiosAttributeRegistryG1.v1_2_0.json
    Then the response is 406
    When the client sends GET Registries/BiosAttributeRegistryG1.v1_2_0/BiosAttributeRegistryG1.v1_2_0.json with Accept-Encoding: gzip
    Then the response is 200
    Given the BMC has no quirk
    When the client sends GET Registries/BiosAttributeRegistryG1.v1_2_0/BiosAttributeRegistryG1.v1_2_0.json
    Then the response is 200

  @Q24
  Scenario: slow-patch-60s applies a PATCH at once and answers late
    Given the BMC has the quirk "slow-patch-60s for=65s"
    When the client begins PATCH Systems/1 {"AssetTag": "a"}
    Then GET Systems/1 has "AssetTag": "a"
    When 60 seconds pass
    Then the request is still pending
    When 5 seconds pass
    Then the pending request is answered with 200
    When the client sends PATCH Systems/1 {"Nonsense": 1}
    Then the response is 400 with "PropertyUnknown"

  @Q25
  Scenario: license-two-documents puts an error before the resource
    Given the BMC has the quirk "license-two-documents"
    When the client sends GET Managers/1
    Then the response is 200 with "InternalError"
    And GET Managers/1 has no "Id"
    And the body of GET Managers/1 is 2 JSON documents, the last of which is the resource
    And GET Systems/1 has "Id": "1"

  @Q28
  Scenario: expand-broken leaves properties out of expanded members
    Given the BMC has the quirk "expand-broken"
    Then every member of GET Chassis/1/NetworkAdapters?$expand=.($levels=1) lacks "Name"
    And every member of GET Chassis/1/NetworkAdapters?$expand=.($levels=1) lacks "Id"
    And every member of GET Chassis/1/NetworkAdapters?$expand=.($levels=1) has "Manufacturer"
    And GET Chassis/1/NetworkAdapters/1 has "Name" matching .
    Given the BMC has no quirk
    Then every member of GET Chassis/1/NetworkAdapters?$expand=.($levels=1) has "Name"

  @Q28
  Scenario: ids-shift-on-reboot renumbers network interfaces
    Given the BMC has the quirk "ids-shift-on-reboot"
    Then the client saves "MACAddress" of GET Systems/1/EthernetInterfaces/1
    When these requests succeed: POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 400s
    Then GET Systems/1/EthernetInterfaces/1 lacks the saved "MACAddress"
    And GET Systems/1/EthernetInterfaces/2 has the saved "MACAddress"
    Given the BMC has no quirk
    Then GET Systems/1/EthernetInterfaces/1 has the saved "MACAddress"

  @Q34
  Scenario: auth-delay refuses logins for longer each time
    Given the BMC has the quirk "auth-delay after=1 for=10s most=40s"
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "no-password"}
    Then the response is 401
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}
    Then the response is 201
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "no-password"}
    Then the response is 401
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "no-password"}
    Then the response is 401
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}
    Then the response is 401
    When 11 seconds pass
    And the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "no-password"}
    Then the response is 401
    When 11 seconds pass
    And the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}
    Then the response is 401
    When 10 seconds pass
    And the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}
    Then the response is 201
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "no-password"}
    Then the response is 401
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}
    Then the response is 201

  @Q34
  Scenario: ip-block refuses every login from an address with failed logins
    Given the BMC has the quirk "ip-block after=3 within=60s for=10m"
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "no-password"}
    Then the response is 401
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "no-password"}
    Then the response is 401
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "no-password"}
    Then the response is 401
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}
    Then the response is 401
    When a client from another address sends POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}
    Then the response is 201
    When 11 minutes pass
    And the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}
    Then the response is 201

  @Q20
  Scenario: jobs-blocked refuses BIOS settings while others are pending
    Given the BMC has the quirk "jobs-blocked"
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"NumLock": "Off"}}
    Then the response is 200
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"NumLock": "Off", "ProcHyperThreading": "Disabled"}}
    Then the response is 400 with "SYS011"
    When these requests succeed: POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}; wait 400s
    And the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"NumLock": "Off", "ProcHyperThreading": "Disabled"}}
    Then the response is 200

  @Q33
  Scenario: volume-delete-applytime refuses @Redfish.OperationApplyTime in DELETE
    Given a rack of 1 server of the profile "raid"
    And the client resets the system with ResetType On
    And 5 minutes pass
    And the client creates a volume of RAIDType RAID1 on drives 4, 5
    And the BMC has the quirk "volume-delete-applytime"
    When the client sends DELETE Systems/1/Storage/1/Volumes/1 {"@Redfish.OperationApplyTime": "Immediate"}
    Then the response is 400 with "PropertyUnknown"
    When the client sends DELETE Systems/1/Storage/1/Volumes/1
    Then the response is 204

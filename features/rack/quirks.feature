Feature: What real BMCs do wrong
  Each is a switch. A client that knows the standard and no vendor runs into it;
  where one knows how to cope, the last column says how it goes on.

  Background:
    Given a rack of 2 servers

  @Q1 @Q4 @Q5 @Q7 @Q8 @Q9 @Q2
  Scenario Outline: Virtual media: <quirk>
    Given the BMC has the quirk "<quirk>"
    When a naive client has done this before: <before>
    And a naive client <does>
    Then it is answered <status> with "<message>"
    When a naive client <copes>
    Then it is answered <then> with ""

    Examples:
      | quirk                          | before                   | does                                  | status | message                     | copes                               | then |
      | vmedia-strict-payload          | nothing                  | inserts an image, saying that it does | 400    | ActionParameterUnknown      | inserts an image                    | 204  |
      | vmedia-patch-only              | nothing                  | inserts an image                      | 404    |                             | sets the image, saying that it does | 200  |
      | vmedia-patch-only              | nothing                  | sets the image                        | 400    | PropertyMissing             | sets the image, saying that it does | 200  |
      | vmedia-missing-params          | nothing                  | inserts an image                      | 400    | ActionParameterMissing      | inserts an image, saying how        | 204  |
      | vmedia-missing-params account=yes | nothing               | inserts an image, saying how          | 400    | ActionParameterMissing      | inserts an image, saying how and with an account | 204  |
      | vmedia-missing-params error=text  | nothing               | inserts an image                      | 400    |                             | inserts an image, saying how        | 204  |
      | vmedia-no-http but=nfs            | nothing               | inserts an image from a server with HTTPS | 400 | ActionParameterNotSupported | ejects                             | 204  |
      | vmedia-eject-needs-body        | inserts an image         | ejects                                | 400    | MalformedJSON               | ejects with an empty object         | 204  |
      | vmedia-no-http                 | nothing                  | inserts an image                      | 400    | ActionParameterNotSupported | ejects                              | 204  |
      | vmedia-stale-inserted for=10s  | inserts an image; ejects | inserts an image                      | 500    | VRM0012                     | ejects                              | 204  |

  @Q1
  Scenario: A drive that is stale can be used again after a while
    Given the BMC has the quirk "vmedia-stale-inserted for=10s"
    When a naive client has done this before: inserts an image; ejects; waits 11 seconds
    And a naive client inserts an image
    Then it is answered 204 with ""

  @Q2
  Scenario: Virtual media that are detached come back with a reset of the BMC
    Given the BMC has the quirk "vmedia-detached"
    When a naive client inserts an image
    Then it is answered 500 with "VRM0021"
    When a naive client resets the BMC
    And 90 seconds pass
    And a naive client inserts an image
    Then it is answered 204 with ""

  @Q12 @Q13 @Q15
  Scenario Outline: Booting: <quirk>
    Given the BMC has the quirk "<quirk>"
    When a naive client <does>
    Then it is answered <status> with "<message>"
    When a naive client <copes>
    Then it is answered 200 with ""
    And the other server's BMC, without the quirk, answers 200 to a naive client that <does>

    Examples:
      | quirk                 | does                                     | status | message                | copes                                    |
      | boot-enabled-required | sets the boot target                     | 400    | PropertyMissing        | sets the boot target for once            |
      | boot-full-request     | sets the boot target for once            | 400    | PropertyMissing        | sets the boot target for once, with UEFI |
      | boot-minimal-request  | sets the boot target for once, with UEFI | 400    | PropertyValueConflict  | sets the boot target for once            |
      | boot-no-continuous    | sets the boot target for good            | 400    | PropertyValueNotInList | sets the boot target for once            |

  @Q16 @Q17 @Q18
  Scenario Outline: Power: <quirk>
    Given the BMC has the quirk "<quirk>"
    When a naive client has done this before: <before>
    And a naive client <does>
    Then it is answered <status> with "<message>"
    When <wait> seconds pass
    And a naive client <does>
    Then it is answered <then> with ""

    Examples:
      | quirk                           | before                                     | does               | status | message                        | wait | then |
      | power-settle-409 for=10s        | switches on; switches off; waits 8 seconds | switches on        | 409    | ActionParameterValueConflict   | 10   | 204  |
      | power-invalid-state-400 for=10s | switches on; switches off; waits 8 seconds | switches on        | 400    | InvalidOperationForSystemState | 10   | 204  |
      | post-rejects-changes            | switches on; waits 10 seconds              | sets the asset tag | 400    | UnableToModifyDuringSystemPOST | 300  | 200  |

  @Q19 @Q20
  Scenario: A BMC that has just come up is not ready for changes
    Given the BMC has the quirk "bmc-not-ready for=1m"
    When a naive client resets the BMC
    And 65 seconds pass
    And a naive client sets the asset tag
    Then it is answered 503 with "SYS518"
    When 60 seconds pass
    And a naive client sets the asset tag
    Then it is answered 200 with ""

  @Q19
  Scenario: A BMC that has just come up says so as if the client were wrong, and shows nothing
    Given the BMC has the quirk "bmc-not-ready for=1m how=400 members=empty"
    When a naive client resets the BMC
    And 65 seconds pass
    And a naive client sets the asset tag
    Then it is answered 400 with "SWC0700"
    And "Members@odata.count" of "Systems" is "0"
    And "Id" of "Systems/1" is "1"
    When 60 seconds pass
    Then "Members@odata.count" of "Systems" is "1"

  @Q22 @Q34
  Scenario Outline: Sessions and accounts: <quirk>
    Given the BMC has the quirk "<quirk>"
    When a naive client has done this before: <before>
    And a naive client <does>
    Then it is answered <status> with "<message>"
    And the other server's BMC, without the quirk, answers 201 to a naive client that <does>

    Examples:
      | quirk                | before          | does             | status | message              |
      | no-sessions          | nothing         | opens a session  | 405    | SYS402               |
      | session-limit most=1 | opens a session | opens a session  | 503    | SessionLimitExceeded |
      | accounts-are-slots   | nothing         | makes an account | 405    | OperationNotAllowed  |

  @Q23
  Scenario Outline: ETags: <quirk>
    Given the BMC has the quirk "<quirk>"
    When a naive client <does>
    Then it is answered <status> with ""
    When a naive client <copes>
    Then it is answered <then> with ""

    Examples:
      | quirk              | does                             | status | copes                                | then |
      | etag-required      | sets the asset tag               | 428    | sets the asset tag with the ETag     | 200  |
      | etag-weak-vs-strong | sets the asset tag with the ETag | 412    | sets the asset tag                   | 200  |
      | etag-mismatch-own  | sets the asset tag with the ETag | 412    | sets the asset tag                   | 200  |
      | etag-double-quoted | sets the asset tag               | 200    | sets the asset tag with the ETag     | 200  |
      | etag-on-action-412 | ejects with the ETag             | 412    | ejects                               | 204  |
      | etag-empty         | sets the asset tag with the ETag | 412    | sets the asset tag                   | 200  |
      | etag-gzip-suffix   | sets the asset tag with the ETag of what was packed | 412 | sets the asset tag with that ETag, without the suffix | 200 |

  @Q24 @Q25 @Q26 @Q27
  Scenario: Connections, licences, forms and links
    Given the BMC has the quirk "conn-abrupt-close"
    When a naive client sets the asset tag
    Then the connection is closed after the answer
    Given the BMC has the quirk "license-denied"
    When a naive client inserts an image
    Then it is answered 403 with "OemLicenseNotPassed"
    When a naive client switches secure boot on
    Then it is answered 403 with "OemLicenseNotPassed"
    Given the BMC has the quirk "extendedinfo-object"
    When a naive client sets a property that the system lacks
    Then the answer's messages are an object
    Given the BMC has the quirk "extendedinfo-object as=text"
    When a naive client sets a property that the system lacks
    Then the answer's messages are a text
    Given the BMC has the quirk "missing-links"
    Then the system shows no "Links/ManagedBy"
    And the system shows no "EthernetInterfaces"
    And "MACAddress" of "Systems/1/EthernetInterfaces/1" is like "^$"
    Given the BMC has no quirk
    When a naive client sets the asset tag
    Then it is answered 200 with ""

  @Q6
  Scenario: Only what the vendor has of his own inserts images
    Given the BMC has the quirk "vmedia-own-way"
    When a naive client inserts an image
    Then it is answered 404 with ""
    When a naive client sets the image, saying that it does
    Then it is answered 405 with "OperationNotAllowed"
    When a naive client ejects
    Then it is answered 404 with ""

  @Q24
  Scenario: A service without TLS
    Given the BMC has the quirk "http-only"
    Then the BMC's service answers over HTTP alone
    Given the BMC has no quirk
    Then the BMC's service answers over TLS alone

  @Q28
  Scenario: Members of empty collections are null
    Given the BMC has the quirk "members-null"
    Then "Members" of an empty collection is null

  @Q3 @Q6
  Scenario Outline: Virtual media that are elsewhere: <quirk>
    Given the BMC has the quirk "<quirk>"
    When a naive client <does>
    Then it is answered <status> with "<message>"
    When a naive client <copes>
    Then it is answered 204 with ""

    Examples:
      | quirk                          | does                                      | status | message             | copes                                 |
      | vmedia-uri-moved               | inserts an image where the manager had it | 404    | RAC0904             | inserts an image                      |
      | vmedia-dead-slots              | inserts an image                          | 404    |                     | inserts an image into the other drive |
      | vmedia-dead-slots n=1 how=400  | inserts an image                          | 400    | ActionNotSupported  | inserts an image into the other drive |
      | vmedia-dead-slots n=1 how=405  | inserts an image                          | 405    | OperationNotAllowed | inserts an image into the other drive |

  @Q10
  Scenario: A CD of the BMC's that is not what is called CD
    Given the BMC has the quirk "vmedia-cd-alias"
    When a naive client has done this before: inserts an image; sets the boot target to the CD; switches on; waits 400 seconds
    Then the server has found nothing to boot
    When a naive client has done this before: switches off; waits 10 seconds; sets the boot target to the CD by USB; switches on; waits 400 seconds
    Then the server runs the live system

  @Q11
  Scenario: A boot override that is taken and forgotten
    Given the BMC has the quirk "boot-silently-ignored"
    When a naive client sets the boot target for once
    Then it is answered 200 with ""
    And "Boot/BootSourceOverrideEnabled" of "Systems/1" is "Disabled"
    Given the BMC has no quirk
    When a naive client sets the boot target for once
    Then "Boot/BootSourceOverrideEnabled" of "Systems/1" is "Once"

  @Q14
  Scenario: A boot override that is set in the settings of the system
    Given the BMC has the quirk "boot-readonly-use-settings"
    When a naive client sets the boot target for once
    Then it is answered 405 with "PropertyNotWritable"
    And "@Redfish.Settings/SettingsObject/@odata.id" of "Systems/1" is "/redfish/v1/Systems/1/Settings"
    When a naive client sets the boot target in the settings
    Then it is answered 428 with "PreconditionRequired"
    When a naive client sets the boot target in the settings with the ETag
    Then it is answered 200 with ""
    And "Boot/BootSourceOverrideTarget" of "Systems/1" is "Pxe"
    When a naive client sets the asset tag
    Then it is answered 200 with ""

  @Q21
  Scenario: Tasks that are not there yet, or no longer
    Given the BMC has the quirk "task-404-race n=2"
    When a naive client inserts an image, and does not wait
    Then it is answered 202 with ""
    When a naive client reads "TaskService/Tasks/1"
    Then it is answered 404 with ""
    When a naive client reads "TaskService/Tasks/1"
    Then it is answered 404 with ""
    When a naive client reads "TaskService/Tasks/1"
    Then it is answered 200 with ""
    Given the BMC has the quirk "taskmonitor-get-deletes"
    When a naive client reads "TaskService/TaskMonitors/1"
    Then it is answered 204 with ""
    When a naive client reads "TaskService/TaskMonitors/1"
    Then it is answered 404 with ""
    Given the BMC has the quirk "task-purged after=1m"
    When 61 seconds pass
    And a naive client reads "TaskService/Tasks/1"
    Then it is answered 404 with ""

  @Q21
  Scenario: A task that runs and calls itself new
    Given the BMC has the quirk "task-state-new"
    When the operator updates the BIOS
    And 5 seconds pass
    Then "TaskState" of "TaskService/Tasks/1" is "New"
    Given the BMC has no quirk
    Then "TaskState" of "TaskService/Tasks/1" is like "Running|Pending"

  @Q29
  Scenario: Events and times of a form that no schema has
    Given the BMC has the quirk "sse-malformed"
    When a client opens a stream of events
    And a naive client switches on
    And 5 seconds pass
    Then no event of the stream tells its "MemberId"
    Given the BMC has the quirk "dates-bad"
    Then "DateTime" of "Managers/1" is like "^20..-..-..T..:..:..-0600$"
    And "ReleaseDate" of "UpdateService/FirmwareInventory/BIOS" is "0000-00-00T00:00:00Z"
    Given the BMC has no quirk
    Then "DateTime" of "Managers/1" is like "^20..-..-..T..:..:..(Z|[+]00:00)$"

  @Q30
  Scenario: BIOS settings that the BMC knows and the BIOS does not
    Given the BMC has the quirk "bios-registry-lag n=1"
    Then "Attributes" of "Systems/1/Bios/Settings" is not there
    When a naive client changes two settings of the BIOS
    Then it is answered 200 with ""
    And "Attributes/ProcHyperThreading" of "Systems/1/Bios/Settings" is "Disabled"
    When a naive client has done this before: switches on; waits 400 seconds
    Then "Attributes/NumLock" of "Systems/1/Bios" is "Off"
    And "Attributes/ProcHyperThreading" of "Systems/1/Bios" is "Enabled"
    And "@Redfish.Settings/Messages" of "Systems/1/Bios" is like "PropertyUnknown.*ProcHyperThreading|ProcHyperThreading.*PropertyUnknown"
    And "Attributes" of "Systems/1/Bios/Settings" is not there

  @Q31
  Scenario: A reset by force that the server does not get over
    Given the BMC has the quirk "forcerestart-hangs"
    When a naive client has done this before: inserts an image; sets the boot target to the CD; switches on; waits 30 seconds; resets the server by force; waits 900 seconds
    Then "BootProgress/LastState" of "Systems/1" is like "Initialization|Memory|Primary|PCI|SystemHardware"
    And "Boot/BootSourceOverrideEnabled" of "Systems/1" is "Once"
    When a naive client has done this before: switches off; waits 10 seconds; switches on; waits 400 seconds
    Then the server runs the live system

  @Q32
  Scenario: A time zone that is refused because it is so already
    Given the BMC has the quirk "clock-offset-same-value"
    When a naive client sets the time zone to what it is
    Then it is answered 400 with "PropertyValueError"
    When a naive client sets the time zone to another
    Then it is answered 200 with ""
    And the other server's BMC, without the quirk, answers 200 to a naive client that sets the time zone to what it is

  @Q12
  Scenario: A boot override that is refused because it is so already
    Given the BMC has the quirk "boot-redundant-rejected"
    When a naive client sets the boot target for once
    Then it is answered 200 with ""
    When a naive client sets the boot target for once
    Then it is answered 400 with "PropertyValueConflict"
    When a naive client sets another boot target alone
    Then it is answered 200 with ""
    And "Boot/BootSourceOverrideEnabled" of "Systems/1" is "Once"
    And "Boot/BootSourceOverrideTarget" of "Systems/1" is "Hdd"

  @Q24
  Scenario: A registry that comes packed or not at all
    Given the BMC has the quirk "identity-406"
    When a naive client reads "Registries/BiosAttributeRegistryG1.v1_2_0/BiosAttributeRegistryG1.v1_2_0.json"
    Then it is answered 406 with ""
    When a naive client that takes gzip reads "Registries/BiosAttributeRegistryG1.v1_2_0/BiosAttributeRegistryG1.v1_2_0.json"
    Then it is answered 200 with ""
    Given the BMC has no quirk
    When a naive client reads "Registries/BiosAttributeRegistryG1.v1_2_0/BiosAttributeRegistryG1.v1_2_0.json"
    Then it is answered 200 with ""

  @Q24
  Scenario: A change that is done long before it is answered
    Given the BMC has the quirk "slow-patch-60s for=65s"
    When a naive client waits for an answer, who sets the asset tag
    Then "AssetTag" of "Systems/1" is "a"
    When 60 seconds pass
    Then the client waits still
    When 5 seconds pass
    Then the client is answered 200
    When a naive client sets a property that the system lacks
    Then it is answered 400 with "PropertyUnknown"

  @Q25
  Scenario: A licence that is missing is told before what is shown all the same
    Given the BMC has the quirk "license-two-documents"
    When a naive client reads "Managers/1"
    Then it is answered 200 with "InternalError"
    And "Id" of "Managers/1" is not there
    And the body of "Managers/1" has 2 documents, the last of which is the resource
    And "Id" of "Systems/1" is "1"

  @Q28
  Scenario: $expand shows resources of which something is missing
    Given the BMC has the quirk "expand-broken"
    Then every member of "Chassis/1/NetworkAdapters?$expand=.($levels=1)" lacks "Name"
    And every member of "Chassis/1/NetworkAdapters?$expand=.($levels=1)" lacks "Id"
    And every member of "Chassis/1/NetworkAdapters?$expand=.($levels=1)" has "Manufacturer"
    And "Name" of "Chassis/1/NetworkAdapters/1" is like "."
    Given the BMC has no quirk
    Then every member of "Chassis/1/NetworkAdapters?$expand=.($levels=1)" has "Name"

  @Q28
  Scenario: Network interfaces whose IDs move on with each start
    Given the BMC has the quirk "ids-shift-on-reboot"
    Then "MACAddress" of "Systems/1/EthernetInterfaces/1" is noted
    When a naive client has done this before: switches on; waits 400 seconds
    Then "MACAddress" of "Systems/1/EthernetInterfaces/1" is not what was noted
    And "MACAddress" of "Systems/1/EthernetInterfaces/2" is what was noted
    Given the BMC has no quirk
    Then "MACAddress" of "Systems/1/EthernetInterfaces/1" is what was noted

  @Q34
  Scenario: A login that has to wait, longer each time
    Given the BMC has the quirk "auth-delay after=1 for=10s most=40s"
    When a naive client opens a session with a wrong password
    Then it is answered 401 with ""
    When a naive client opens a session
    Then it is answered 201 with ""
    When a naive client opens a session with a wrong password
    And a naive client opens a session with a wrong password
    And a naive client opens a session
    Then it is answered 401 with ""
    When 11 seconds pass
    And a naive client opens a session with a wrong password
    And 11 seconds pass
    And a naive client opens a session
    Then it is answered 401 with ""
    When 10 seconds pass
    And a naive client opens a session
    Then it is answered 201 with ""
    When a naive client opens a session with a wrong password
    And a naive client opens a session
    Then it is answered 201 with ""

  @Q34
  Scenario: Where wrong passwords come from nobody gets in
    Given the BMC has the quirk "ip-block after=3 within=60s for=10m"
    When a naive client opens a session with a wrong password
    And a naive client opens a session with a wrong password
    And a naive client opens a session with a wrong password
    And a naive client opens a session
    Then it is answered 401 with ""
    When a naive client at another address opens a session
    Then it is answered 201 with ""
    When 11 minutes pass
    And a naive client opens a session
    Then it is answered 201 with ""

  @Q20
  Scenario: Settings that keep others out until they are applied
    Given the BMC has the quirk "jobs-blocked"
    When a naive client changes the BIOS again
    Then it is answered 200 with ""
    When a naive client changes two settings of the BIOS
    Then it is answered 400 with "SYS011"
    When a naive client has done this before: switches on; waits 400 seconds
    And a naive client changes two settings of the BIOS
    Then it is answered 200 with ""

  @Q33
  Scenario: A volume that is not deleted when one says when
    Given a rack of 1 server with RAID
    And the operator switches the server on
    And 5 minutes pass
    And the operator makes a mirror of drives 4, 5
    And the BMC has the quirk "volume-delete-applytime"
    When a naive client deletes the volume, saying when
    Then it is answered 400 with "PropertyUnknown"
    When a naive client deletes the volume
    Then it is answered 204 with ""

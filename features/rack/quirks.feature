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
    Given the BMC has the quirk "missing-links"
    Then the system shows no "Links/ManagedBy"
    And the system shows no "EthernetInterfaces"
    Given the BMC has no quirk
    When a naive client sets the asset tag
    Then it is answered 200 with ""

  @Q28
  Scenario: Members of empty collections are null
    Given the BMC has the quirk "members-null"
    Then "Members" of an empty collection is null

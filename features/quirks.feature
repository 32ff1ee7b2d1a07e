Feature: Quirks of real BMCs
  Each row is a BMC that deviates from the standard as some real BMC does. The
  controllers find a workaround and provision the server. Tags are numbers of the
  table of quirks.

  Background:
    Given a lab with 1 server

  @sample-12
  Scenario Outline: A server with the quirk <quirk> is provisioned
    Given the server's BMC has the quirk "<quirk>"
    When the operator registers the server
    Then the host becomes "available"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the server's virtual CD is empty
    And the host reports the workaround "<workaround>"

    @Q1
    Examples:
      | quirk                         | workaround |
      | vmedia-stale-inserted for=10s |            |

    @Q2
    Examples:
      | quirk           | workaround                                                   |
      | vmedia-detached | virtual media detached: a restart of the BMC reattaches them |

    @Q3
    Examples:
      | quirk            | workaround |
      | vmedia-uri-moved |            |

    @Q6
    Examples:
      | quirk             | workaround                       |
      | vmedia-dead-slots | virtual media: PATCH of the slot |

    @Q9
    Examples:
      | quirk          | workaround              |
      | vmedia-no-http | virtual media by: HTTPS |

    @Q10
    Examples:
      | quirk           | workaround                     |
      | vmedia-cd-alias | boot from virtual media: UsbCd |

    @Q14
    Examples:
      | quirk                      | workaround                              |
      | boot-readonly-use-settings | boot override: in the settings resource |

    @Q21
    Examples:
      | quirk                   | workaround |
      | task-404-race n=2       |            |
      | task-state-new          |            |
      | taskmonitor-get-deletes |            |
      | task-purged             |            |

    @Q4
    Examples:
      | quirk                 | workaround |
      | vmedia-strict-payload |            |

    @Q5
    Examples:
      | quirk             | workaround                       |
      | vmedia-patch-only | virtual media: PATCH of the slot |

    @Q7
    Examples:
      | quirk                 | workaround                                                              |
      | vmedia-missing-params | virtual media: InsertMedia with TransferProtocolType and TransferMethod |

    @Q8
    Examples:
      | quirk                   | workaround |
      | vmedia-eject-needs-body |            |

    @Q12
    Examples:
      | quirk                 | workaround |
      | boot-enabled-required |            |

    @Q12
    Examples:
      | quirk                   | workaround |
      | boot-redundant-rejected |            |

    @Q13
    Examples:
      | quirk                | workaround                                       |
      | boot-full-request    | boot override: target, enabled and mode together |
      | boot-minimal-request |                                                  |

    @Q15
    Examples:
      | quirk              | workaround                                                  |
      | boot-no-continuous | persistent boot override: once, set again before each start |

    @Q16
    Examples:
      | quirk                | workaround |
      | post-rejects-changes |            |

    @Q17
    Examples:
      | quirk                    | workaround              |
      | power-settle-409 for=30s | power: it has to settle |

    @Q18
    Examples:
      | quirk                           | workaround              |
      | power-invalid-state-400 for=30s | power: it has to settle |

    @Q19
    Examples:
      | quirk                                      | workaround |
      | bmc-not-ready for=3m                       |            |
      | bmc-not-ready for=3m how=400 members=empty |            |

    @Q20
    Examples:
      | quirk        | workaround |
      | jobs-blocked |            |

    @Q22
    Examples:
      | quirk                | workaround |
      | no-sessions          |            |
      | session-limit most=1 |            |

    @Q23
    Examples:
      | quirk               | workaround             |
      | etag-required       |                        |
      | etag-weak-vs-strong | ETag: without          |
      | etag-mismatch-own   | ETag: without If-Match |
      | etag-double-quoted  |                        |
      | etag-on-action-412  |                        |
      | etag-empty          |                        |
      | etag-gzip-suffix    |                        |

    @Q24
    Examples:
      | quirk                 | workaround |
      | conn-abrupt-close     |            |
      | identity-406          |            |
      | slow-patch-60s for=2s |            |

    @Q25
    Examples:
      | quirk                                                             | workaround |
      | license-two-documents of=Manager,ComputerSystem,VirtualMedia,Bios |            |

    @Q26
    Examples:
      | quirk               | workaround |
      | extendedinfo-object |            |

    @Q27
    Examples:
      | quirk         | workaround |
      | missing-links |            |

    @Q28
    Examples:
      | quirk               | workaround |
      | members-null        |            |
      | expand-broken       |            |
      | collections-paged   |            |
      | ids-shift-on-reboot |            |

    @Q29
    Examples:
      | quirk         | workaround |
      | sse-malformed |            |
      | dates-bad     |            |

    @Q30
    Examples:
      | quirk             | workaround |
      | bios-registry-lag |            |

    @Q31
    Examples:
      | quirk              | workaround |
      | forcerestart-hangs |            |

    @Q32
    Examples:
      | quirk                   | workaround |
      | clock-offset-same-value |            |

    @Q33
    Examples:
      | quirk                   | workaround |
      | volume-delete-applytime |            |

    @Q34
    Examples:
      | quirk              | workaround |
      | auth-delay         |            |
      | ip-block           |            |
      | accounts-are-slots |            |

    @Q35
    Examples:
      | quirk                    | workaround |
      | ipmi-disabled-by-default |            |

  @Q35 @sample-4
  Scenario Outline: A server with the quirk <quirk> is provisioned by IPMI
    Given the server's BMC has the quirk "<quirk>"
    When the operator registers the server by "ipmi"
    Then the host becomes "available"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the host reports the workaround "<workaround>"

    Examples:
      | quirk                       | workaround                              |
      | ipmi-cipher17-only          |                                         |
      | ipmi-supermicro20           | code of RAKP 2: a byte too long         |
      | ipmi-sun20                  | code of RAKP 2: a byte too long         |
      | ipmi-intel20                | login: the user name padded to 16 bytes |
      | ipmi-idzero                 |                                         |
      | ipmi-endianseq              |                                         |
      | ipmi-slowcommit             |                                         |
      | ipmi-discretereading        |                                         |
      | ipmi-noauthcodecheck        |                                         |
      | ipmi-nochecksumcheck        |                                         |
      | ipmi-assumebmcowner         |                                         |
      | ipmi-ignorescanningdisabled |                                         |
      | ipmi-cipher-list-silent     |                                         |
      | ipmi-cipher-list-lies       |                                         |
      | ipmi-off-when-off-errors    |                                         |
      | ipmi-no-bootparam3          |                                         |
      | ipmi-authcap                |                                         |
      | ipmi-opensesspriv           |                                         |
      | ipmi-integritycheckvalue    |                                         |
      | ipmi-solpayloadsize         |                                         |
      | ipmi-smc-uefi-0x24          |                                         |

  @Q11 @Q25
  Scenario Outline: A quirk without a workaround is reported: <quirk>
    Given the server's BMC has the quirk "<quirk>"
    When the operator registers the server
    Then the host reports "inspection error"
    And the host has reported the error message "<says>"

    Examples:
      | quirk                 | says                                   |
      | license-denied        | needs a licence                        |
      | boot-silently-ignored | the BMC accepted it and did not set it |

Feature: SSDP
  A client finds Redfish services by SSDP (DSP0266, 10.3).

  @A27
  Scenario: M-SEARCH for Redfish services is answered by every BMC
    Given a rack of 3 servers with SSDP
    When a client multicasts M-SEARCH for printers and for Redfish services
    Then every BMC answers once with its AL and its USN

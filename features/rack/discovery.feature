Feature: BMCs that are searched for
  Where a client that knows no address begins.

  @A27
  Scenario: A client that knows no address finds the BMCs
    Given a rack of 3 servers that can be searched for
    When a client that knows no address searches for printers, and then for BMCs
    Then it finds every BMC, where it is and by its own name

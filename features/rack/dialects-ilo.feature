Feature: Servers whose BMC is an iLO
  A client that knows the standard and no vendor runs into what iLO does
  otherwise; one that knows better goes on.

  @dialect
  Scenario Outline: <model>: a client <does>
    Given a rack of 1 server with the profile "<model>"
    When a client of its iLO <before>
    And a client of its iLO <does>
    Then it is answered <status> with "<message>"
    When a client of its iLO <copes>
    Then it is answered 200 with "<says>"

    Examples:
      | model           | before           | does                                            | status | message                        | copes                                    | says                |
      | hpe-dl360-gen10 | does nothing     | sets the boot target for once, with UEFI        | 400    | PropertyNotWritableOrUnknown   | sets the boot target for once            | Success             |
      | hpe-dl360-gen10 | does nothing     | switches off                                    | 400    | InvalidOperationForSystemState | switches on                              | Success             |
      | hpe-dl360-gen10 | does nothing     | cuts the power for a moment                     | 400    | ActionParameterValueNotInList  | presses the power button                 | Success             |
      | hpe-dl360-gen10 | inserts an image | ejects                                          | 400    | MalformedJSON                  | ejects with an empty object              | Success             |
      | hpe-dl360-gen10 | does nothing     | changes the BIOS at the next reset, and says so | 400    | PropertyNotWritableOrUnknown   | changes the BIOS                         | SystemResetRequired |
      | hpe-dl360-gen10 | does nothing     | says where to boot from by HTTP                 | 400    | PropertyNotWritableOrUnknown   | says so to the BIOS                      | SystemResetRequired |
      | hpe-dl360-gen10 | does nothing     | makes a mirror of two drives                    | 405    | OperationNotAllowed            | has the array make one at the next start | SystemResetRequired |
      | hpe-dl360-gen11 | does nothing     | sets the boot target for once, with UEFI        | 400    | PropertyNotWritableOrUnknown   | sets the boot target for once            | Success             |
      | hpe-dl360-gen12 | inserts an image | ejects                                          | 400    | MalformedJSON                  | ejects with an empty object              | Success             |
      | hpe-dl360-gen9  | does nothing     | inserts an image                                | 404    |                                | sets the image                           | Success             |

  @dialect
  Scenario: Changes are refused while the system is in POST
    Given a rack of 1 server with the profile "hpe-dl360-gen11"
    When a client of its iLO switches on
    And 10 seconds pass
    And a client of its iLO sets the boot target for once
    Then it is answered 400 with "UnableToModifyDuringSystemPOST"
    And a client of its iLO changes the BIOS
    Then it is answered 400 with "UnableToModifyDuringSystemPOST"

  @dialect
  Scenario: A Smart Array makes its volumes when the system starts
    Given a rack of 1 server with the profile "hpe-dl360-gen10"
    When a client of its iLO has the array make one at the next start
    And a client of its iLO switches on
    Then the iLO's array comes to have the volume "root"

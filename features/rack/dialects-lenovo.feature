Feature: Lenovo's XClarity Controller
  Its drives of virtual media take an image by a change, and only those called
  EXT do; overrides of the boot hold once; settings of the BIOS wait in a place of
  their own.

  @dialect
  Scenario Outline: XCC: a client <does>
    Given a rack of 1 server of the model ThinkSystem SR650 V2
    When a client of an XCC <does>
    Then it is answered <status> with "<message>"
    When a client of an XCC <copes>
    Then it is answered <then> with ""

    Examples:
      | does                                         | status | message                | copes                                       | then |
      | inserts an image by the action               | 404    |                        | sets the image of EXT1, saying that it does | 200  |
      | sets the image of EXT1                       | 400    | PropertyMissing        | sets the image of EXT1, saying that it does | 200  |
      | sets the image of RDOC1, saying that it does | 400    | PropertyNotWritable    | sets the image of EXT1, saying that it does | 200  |
      | boots the network for good                   | 400    | PropertyValueNotInList | boots the network once                      | 200  |
      | changes the settings of the BIOS             | 404    |                        | changes what is pending of the BIOS         | 200  |

  @dialect
  Scenario: XCC2 does not know the ETag of its own readings again
    Given a rack of 1 server of the model ThinkSystem SR650 V3
    When a client of an XCC limits the power with the ETag
    Then it is answered 412 with "PreconditionFailed"
    When a client of an XCC limits the power
    Then it is answered 200 with ""

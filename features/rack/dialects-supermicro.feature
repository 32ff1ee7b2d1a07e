Feature: Supermicro's BMCs
  Of virtual media, X11 takes the image alone, or by a configuration of its own;
  they boot as a CD on USB, and the mode of a boot flips for who does not say it.

  @dialect
  Scenario Outline: X11: a client <does>
    Given a rack of 1 server of the model SYS-1029U-TR4
    When a client of a Supermicro <does>
    Then it is answered <status> with "<message>"
    When a client of a Supermicro has done this before: <before>
    And a client of a Supermicro <copes>
    Then it is answered <then> with ""

    Examples:
      | does                                  | status | message                | before               | copes                                  | then |
      | inserts an image, saying that it does | 400    | ActionParameterUnknown | nothing              | inserts an image                       | 200  |
      | mounts what is configured             | 400    |                        | configures the image | mounts what is configured              | 200  |
      | boots the virtual CD                  | 400    | PropertyMissing        | nothing              | boots the virtual CD once, with UEFI   | 200  |
      | changes the settings of the BIOS      | 404    |                        | nothing              | changes the settings of the BIOS at SD | 200  |

  @dialect
  Scenario: The mode of a boot flips
    Given a rack of 1 server of the model SYS-1029U-TR4
    When a client of a Supermicro boots the virtual CD once
    Then the system boots "UsbCd", in the mode "Legacy"
    When a client of a Supermicro boots the virtual CD once, with UEFI
    Then the system boots "UsbCd", in the mode "UEFI"

  @dialect
  Scenario: Virtual media need a licence
    Given a rack of 1 server of the model SYS-1029U-TR4
    When a client of a Supermicro gives up the licence
    And a client of a Supermicro inserts an image
    Then it is answered 403 with "OemLicenseNotPassed"
    When a client of a Supermicro activates a licence
    And a client of a Supermicro inserts an image
    Then it is answered 200 with ""

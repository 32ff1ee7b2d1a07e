Feature: AMI's MegaRAC
  Whatever is changed asks for an ETag; a boot override is target, duration and
  mode together; an image comes by a protocol that is named.

  @dialect
  Scenario Outline: MegaRAC: a client <does>
    Given a rack of 1 server of the model <model>
    When a client of a MegaRAC <does>
    Then it is answered <status> with "<message>"
    When a client of a MegaRAC <copes>
    Then it is answered <then> with ""

    Examples:
      | model             | does                                   | status | message                   | copes                                                | then |
      | R282-Z93          | sets the asset tag                     | 428    | PreconditionHeaderMissing | sets the asset tag with the ETag                     | 200  |
      | R282-Z93          | boots the network once, with the ETag  | 400    | PropertyMissing           | boots the network once, with UEFI and the ETag       | 200  |
      | R282-Z93          | inserts an image                       | 400    | ActionParameterMissing    | inserts an image, saying by which protocol           | 202  |
      | ThinkSystem SR655 | changes the settings of the BIOS at SD | 428    | PreconditionHeaderMissing | changes the settings of the BIOS at SD with the ETag | 200  |

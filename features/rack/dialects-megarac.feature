Feature: Dialect of AMI's MegaRAC
  PATCH needs If-Match.
  InsertMedia needs TransferProtocolType.

  @dialect
  Scenario Outline: <profile> answers <status> to <request>
    Given a rack of 1 server of the profile "<profile>"
    When the client sends <request>
    Then the response is <status> with "<message>"
    When the client sends <retry>
    Then the response is <status of the retry>

    Examples:
      | profile       | request                                                                                                                   | status | message                   | retry                                                                                                                                                       | status of the retry |
      | gigabyte-r282 | PATCH Systems/Self {"AssetTag": "a"}                                                                                      | 428    | PreconditionHeaderMissing | PATCH Systems/Self {"AssetTag": "a"} with If-Match: ETAG                                                                                                    | 200                 |
      | gigabyte-r282 | POST Managers/Self/VirtualMedia/CD1/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                                   | 400    | ActionParameterMissing    | POST Managers/Self/VirtualMedia/CD1/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE", "TransferProtocolType": "HTTP"}                                     | 202                 |
      | lenovo-sr655  | PATCH Systems/Self/Bios/SD {"Attributes": {"SETUP008": "Disabled"}}                                                       | 428    | PreconditionHeaderMissing | PATCH Systems/Self/Bios/SD {"Attributes": {"SETUP008": "Disabled"}} with If-Match: ETAG                                                                     | 200                 |

  @dialect
  Scenario: A boot override is changed in part
    Given a rack of 1 server of the profile "gigabyte-r282"
    When the client sends PATCH Systems/Self {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}} with If-Match: ETAG
    Then the response is 200
    And GET Systems/Self has "Boot/BootSourceOverrideTarget": "Pxe"

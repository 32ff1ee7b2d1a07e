Feature: Dialect of Lenovo's XClarity Controller
  Virtual media take an image by PATCH, and only the slots EXT do. A boot override
  lasts for one boot. Pending BIOS attributes are at Bios/Pending.

  @dialect
  Scenario Outline: XCC answers <status> to <request>
    Given a rack of 1 server of the profile "lenovo-sr650-v2"
    When the client sends <request>
    Then the response is <status> with "<message>"
    When the client sends <retry>
    Then the response is <status of the retry>

    Examples:
      | request                                                                                                  | status | message                | retry                                                                                              | status of the retry |
      | POST Managers/1/VirtualMedia/EXT1/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                    | 404    | ActionNotSupported     | PATCH Managers/1/VirtualMedia/EXT1 {"Image": "IMAGE", "Inserted": true}                            | 200                 |
      | PATCH Managers/1/VirtualMedia/EXT1 {"Image": "IMAGE"}                                                    | 400    | PropertyMissing        | PATCH Managers/1/VirtualMedia/EXT1 {"Image": "IMAGE", "Inserted": true}                            | 200                 |
      | PATCH Managers/1/VirtualMedia/RDOC1 {"Image": "IMAGE", "Inserted": true}                                 | 400    | PropertyNotWritable    | PATCH Managers/1/VirtualMedia/EXT1 {"Image": "IMAGE", "Inserted": true}                            | 200                 |
      | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Continuous"}} | 400    | PropertyValueNotInList | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "Pxe", "BootSourceOverrideEnabled": "Once"}} | 200                 |
      | PATCH Systems/1/Bios/Settings {"Attributes": {"Processors_HyperThreading": "Disabled"}}                  | 404    | ResourceMissingAtURI   | PATCH Systems/1/Bios/Pending {"Attributes": {"Processors_HyperThreading": "Disabled"}}             | 200                 |

  @dialect
  Scenario: XCC2 answers 412 to the ETag that it has just shown for Power
    Given a rack of 1 server of the profile "lenovo-sr650-v3"
    When the client sends PATCH Chassis/1/Power {"PowerControl": [{"PowerLimit": {"LimitInWatts": 600}}]} with If-Match: ETAG
    Then the response is 412 with "PreconditionFailed"
    When the client sends PATCH Chassis/1/Power {"PowerControl": [{"PowerLimit": {"LimitInWatts": 600}}]}
    Then the response is 200

Feature: Dialect of Supermicro's BMCs
  X11 takes InsertMedia with the Image alone, or its own IsoConfig. Virtual media
  boot as UsbCd, and a boot override without a mode falls back to Legacy.

  @dialect
  Scenario Outline: X11 answers <status> to <request>
    Given a rack of 1 server of the profile "supermicro-1029u"
    When the client sends <request>
    Then the response is <status> with "<message>"
    When these requests succeed: <before>
    And the client sends <retry>
    Then the response is <status of the retry>

    Examples:
      | request                                                                                                               | status | message                         | before                                                                   | retry                                                                                                                                  | status of the retry |
      | POST Managers/1/VM1/CD1/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE", "Inserted": true, "WriteProtected": true} | 400    | ActionParameterUnknown          | none                                                                     | POST Managers/1/VM1/CD1/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}                                                            | 200                 |
      | POST Managers/1/VM1/CfgCD/Actions/IsoConfig.Mount                                                                     | 400    | ActionParameterValueFormatError | PATCH Managers/1/VM1/CfgCD {"Host": "IMAGE-SERVER", "Path": "/live.iso"} | POST Managers/1/VM1/CfgCD/Actions/IsoConfig.Mount                                                                                      | 200                 |
      | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "UsbCd"}}                                                       | 400    | PropertyMissing                 | none                                                                     | PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}} | 200                 |
      | PATCH Systems/1/Bios/Settings {"Attributes": {"QuietBoot#002D": false}}                                               | 404    | ResourceMissingAtURI            | none                                                                     | PATCH Systems/1/Bios/SD {"Attributes": {"QuietBoot#002D": false}}                                                                      | 200                 |

  @dialect
  Scenario: A boot override without BootSourceOverrideMode falls back to Legacy
    Given a rack of 1 server of the profile "supermicro-1029u"
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideEnabled": "Once"}}
    Then GET Systems/1 has "Boot/BootSourceOverrideTarget": "UsbCd"
    And GET Systems/1 has "Boot/BootSourceOverrideMode": "Legacy"
    When the client sends PATCH Systems/1 {"Boot": {"BootSourceOverrideTarget": "UsbCd", "BootSourceOverrideEnabled": "Once", "BootSourceOverrideMode": "UEFI"}}
    Then GET Systems/1 has "Boot/BootSourceOverrideTarget": "UsbCd"
    And GET Systems/1 has "Boot/BootSourceOverrideMode": "UEFI"

  @dialect
  Scenario: InsertMedia without a licence is answered with 403
    Given a rack of 1 server of the profile "supermicro-1029u"
    When the client sends POST Managers/1/LicenseManager/Actions/LicenseManager.ClearLicense
    And the client sends POST Managers/1/VM1/CD1/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 403 with "OemLicenseNotPassed"
    When the client sends POST Managers/1/LicenseManager/Actions/LicenseManager.ActivateLicense {"LicenseKey": "a key"}
    And the client sends POST Managers/1/VM1/CD1/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 200

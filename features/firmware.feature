Feature: Firmware settings and versions
  An operator reads a server's BIOS settings and firmware versions, and changes
  both before the server is provisioned. Tags are numbers of statements; where the
  specification differs from upstream, it wins.

  @B-43 @B-200 @B-201 @B-202 @B-203 @B-210
  Scenario: Settings and components are listed after registration
    Given a lab with 1 server
    And the operator has registered the server
    Then the firmware settings show all settings of the server
    And the firmware settings are applied
    And their FirmwareSchema has the server's vendor and model
    And the firmware components are "bios, bmc, nic:1"

  @B-204 @B-205 @B-206
  Scenario Outline: A setting of the type <type> is applied
    Given a lab with 1 server of the model "dense"
    And the operator has registered the server
    When the operator sets the firmware settings "<setting>"
    Then the firmware settings are applied
    And the server's BIOS has "<setting>"
    And the server has booted 1 time for the change
    And the host reports no error

    Examples:
      | type        | setting                     |
      | Enumeration | ProcVirtualization=Disabled |
      | Integer     | ProcCores=8                 |
      | Boolean     | QuietBoot=false             |
      | String      | ServiceContact=Room 12      |

  @B-54 @B-203 @B-204 @sample-4
  Scenario Outline: An invalid setting is refused: <setting>
    Given a lab with 1 server of the model "dense"
    And the operator has registered the server
    When the operator sets the firmware settings "<setting>"
    Then the firmware settings are invalid, because "<why>"
    And the host stays "available"
    When the operator sets the firmware settings "QuietBoot=true"
    Then the firmware settings are applied

    Examples:
      | setting                                   | why                                                                                                    |
      | ProcVirtualization=Maybe                  | Setting ProcVirtualization is invalid, unknown enumeration value - Maybe                               |
      | ProcCores=many                            | Setting ProcCores is invalid, String many entered while integer expected                               |
      | ProcCores=-1                              | Setting ProcCores is invalid, integer -1 is below minimum value 0                                      |
      | ProcCores=65                              | Setting ProcCores is invalid, integer 65 is above maximum value 64                                     |
      | QuietBoot=perhaps                         | Setting QuietBoot is invalid, perhaps is not a boolean                                                 |
      | BootBanner=x                              | Setting BootBanner is invalid, string x length is below minimum length 3                               |
      | BootBanner=much longer than 24 characters | Setting BootBanner is invalid, string much longer than 24 characters length is above maximum length 24 |
      | SystemModel=Another                       | Setting SystemModel is invalid, it is ReadOnly                                                         |
      | AssetTag=T-1                              | Setting AssetTag is invalid, it is Unique                                                              |
      | AdminPassword=secret                      | cannot set Password field                                                                              |
      | NoSuchThing=1                             | setting NoSuchThing is not in the Status field                                                         |

  @B-200 @B-204
  Scenario: Settings that exist before the host are applied
    Given a lab with 1 server of the model "dense"
    When the operator creates the firmware settings "ProcCores=4" before the host
    And the operator registers the server
    Then the host becomes "available"
    And the firmware settings are applied
    And the server's BIOS has "ProcCores=4"

  @B-206
  Scenario: A setting that depends on another one takes two boots
    Given a lab with 1 server of the model "dense"
    And the operator has registered the server
    When the operator sets the firmware settings "MemoryMode=Mirror, MirrorPercent=25"
    Then the firmware settings are applied
    And the server's BIOS has "MemoryMode=Mirror, MirrorPercent=25"
    And the server has booted 2 times for the change

  @B-204 @B-206
  Scenario: A setting that stays locked is refused with what unlocks it
    Given a lab with 1 server of the model "dense"
    And the operator has registered the server
    When the operator sets the firmware settings "MirrorPercent=25"
    Then the firmware settings are invalid, because "Setting MirrorPercent is invalid, it is ReadOnly while MemoryMode is Independent: set MemoryMode to Mirror first"
    And the host stays "available"
    When the operator sets the firmware settings "MemoryMode=Mirror"
    Then the firmware settings are applied
    When the operator sets the firmware settings "MirrorPercent=25"
    Then the firmware settings are applied
    And the server's BIOS has "MemoryMode=Mirror, MirrorPercent=25"
    And the host reports no error

  @B-204 @B-206
  Scenario Outline: What one setting unlocks is set in the same change: <model>
    Given a server of the model "<model>" in a lab of all models
    And the operator has registered the server
    When the operator sets the firmware settings "<locked>"
    Then the firmware settings are invalid, because "<why>"
    When the operator sets the firmware settings "<both>"
    Then the firmware settings are applied
    And the server's BIOS has "<both>"
    And the host reports no error

    Examples:
      | model             | locked                  | why                                                                                                                                                | both                                                |
      | dell-r650         | ProcTurboMode=Disabled  | Setting ProcTurboMode is invalid, it is ReadOnly while SysProfile is PerfPerWattOptimizedDapc: set SysProfile to Custom first                      | SysProfile=Custom, ProcTurboMode=Disabled           |
      | fujitsu-rx2530-m6 | TurboModeEnabled=false  | Setting TurboModeEnabled is invalid, it is true while PowerTechnology is EnergyEfficient: set PowerTechnology to Custom first                       | PowerTechnology=Custom, TurboModeEnabled=false      |
      | supermicro-1029u  | TurboMode#3D07=Disable  | Setting TurboMode#3D07 is invalid, it is Enable while PowerTechnology#FF77 is Energy Efficient: set PowerTechnology#FF77 to Custom first            | PowerTechnology#FF77=Custom, TurboMode#3D07=Disable |

  @B-205
  Scenario Outline: An Integer is an Integer, however it is written: <setting>
    Given a lab with 1 server of the model "dense"
    And the operator has registered the server
    When the operator sets the firmware settings "ProcCores=<setting>"
    Then the firmware settings are applied
    And the server's BIOS has "ProcCores=<value>"
    And the server has booted <boots> for the change
    And the host reports no error

    Examples:
      | setting | value | boots   |
      | 012     | 12    | 1 time  |
      | +5      | 5     | 1 time  |

  @B-206
  Scenario: The controller is killed while settings are applied
    Given a lab with 1 server of the model "dense"
    And the operator has registered the server
    When the operator sets the firmware settings "MemoryMode=Mirror, MirrorPercent=25"
    And the host becomes "preparing"
    And the controller is killed
    And another controller starts
    Then the firmware settings are applied
    And the server's BIOS has "MemoryMode=Mirror, MirrorPercent=25"

  @B-202 @B-204
  Scenario: A setting that the attribute registry lacks is applied
    Given a lab with 1 server of the model "vast"
    And the server's attribute registry lacks "ProcCores"
    And the operator has registered the server
    When the operator sets the firmware settings "ProcCores=6"
    Then the firmware settings are applied
    And the server's BIOS has "ProcCores=6"
    When the attribute registry is complete again
    And the operator sets the firmware settings "ProcCores=65"
    Then the firmware settings are invalid, because "Setting ProcCores is invalid, integer 65 is above maximum value 64"

  @B-04 @B-202
  Scenario: Servers of one model share a FirmwareSchema, which is deleted with the last of them
    Given a lab with 2 servers of the model "generic" and 1 of the model "dense"
    And the operator has registered all servers
    Then servers 1 and 2 share a FirmwareSchema
    And servers 1 and 3 have different FirmwareSchemas
    When the operator deletes the host of server 1
    Then the FirmwareSchema of server 1 still exists
    When the operator deletes the host of server 2
    Then the FirmwareSchema of server 2 is deleted
    And the FirmwareSchema of server 3 still exists

  @B-262
  Scenario Outline: spec.firmware is applied by the vendor's names: <address>
    Given a server of the model "<model>" in a lab of all models
    When the operator registers the server at the address "<address>" with:
      """
      spec: {firmware: {virtualizationEnabled: false, simultaneousMultithreadingEnabled: false, sriovEnabled: false}}
      """
    Then the host becomes "available"
    And the server's BIOS has "<settings>"
    And the host reports no error
    When the operator edits the host:
      """
      spec: {firmware: {virtualizationEnabled: true, sriovEnabled: true}}
      """
    Then the host becomes "preparing"
    And the host becomes "available"
    And the server's BIOS has "<changed>"

    Examples:
      | address                              | model             | settings                                                                                              | changed                                                           |
      | idrac://HOST:PORT                    | dell-r650         | ProcVirtualization=Disabled, LogicalProc=Disabled, SriovGlobalEnable=Disabled                         | ProcVirtualization=Enabled, SriovGlobalEnable=Enabled             |
      | idrac-virtualmedia://HOST:PORT/SYSTEM | dell-r650         | ProcVirtualization=Disabled, LogicalProc=Disabled, SriovGlobalEnable=Disabled                         | ProcVirtualization=Enabled, SriovGlobalEnable=Enabled             |
      | ilo4://HOST:PORT                     | hpe-dl360-gen9    | ProcVirtualization=Disabled, ProcHyperthreading=Disabled, Sriov=Disabled                              | ProcVirtualization=Enabled, Sriov=Enabled                         |
      | ilo5://HOST:PORT                     | hpe-dl360-gen10   | ProcVirtualization=Disabled, ProcHyperthreading=Disabled, Sriov=Disabled                              | ProcVirtualization=Enabled, Sriov=Enabled                         |
      | irmc://HOST:PORT                     | fujitsu-rx2530-m6 | CpuVtEnabled=false, HyperThreadingEnabled=false, SingleRootIOVirtualizationSupportEnabled=false       | CpuVtEnabled=true, SingleRootIOVirtualizationSupportEnabled=true  |

  @B-53 @B-262
  Scenario Outline: A field of spec.firmware that the server cannot have is reported once: <address>
    Given a server of the model "<model>" in a lab of all models
    When the operator registers the server at the address "<address>" with:
      """
      spec: {firmware: {virtualizationEnabled: false, sriovEnabled: true}}
      """
    Then the host reports "preparation error"
    And the host's error message contains "<message>"
    When 100 hours pass
    Then its error count is 1
    And the host stays "preparing"
    When the operator edits the host:
      """
      spec: {firmware: null}
      """
    Then the host becomes "available"
    And the host reports no error

    Examples:
      | address                                 | model            | message                                                                                                        |
      | idrac-virtualmedia://HOST:PORT/SYSTEM   | hpe-dl360-gen10  | spec.firmware.sriovEnabled needs the BIOS setting SriovGlobalEnable, which the server does not have: remove it |
      | irmc://HOST:PORT                        | lenovo-sr650-v2  | spec.firmware.virtualizationEnabled needs the BIOS setting CpuVtEnabled, which the server does not have        |
      | redfish-virtualmedia://HOST:PORT/SYSTEM | supermicro-1029u | firmware settings for redfish are not supported: remove spec.firmware, and use HostFirmwareSettings            |

  @B-52 @B-211 @B-212
  Scenario: Firmware is updated
    Given a lab with 1 server
    And the operator has registered the server
    When the operator updates the firmware "nic:1=22.40.1, bios=2.4.0"
    Then the firmware is updated
    And the server runs "nic:1=22.40.1, bios=2.4.0"
    And the host reports no error

  @B-212
  Scenario: The BMC firmware is updated, and the BMC restarts
    Given a lab with 1 server
    And the operator has registered the server
    When the operator updates the firmware "bmc=1.5.0"
    Then the firmware is updated
    And the server runs "bmc=1.5.0"

  @B-53 @B-212
  Scenario: A failed update is reported and retried
    Given a lab with 1 server
    And the operator has registered the server
    And the next update of the BIOS will fail at 60 percent
    When the operator updates the firmware "bios=2.4.0"
    Then the host reports "preparation error"
    And an error event contains "firmware update of bios"
    And the update has failed at 60 percent
    And the firmware is updated
    And the server runs "bios=2.4.0"
    And the host reports no error

  @B-53
  Scenario: An image that does not exist is reported
    Given a lab with 1 server
    And the operator has registered the server
    When the operator updates the BIOS with an image that does not exist
    Then the host reports "preparation error"
    When the operator updates the firmware "bios=2.4.1"
    Then the firmware is updated
    And the server runs "bios=2.4.1"
    And the host reports no error

  @B-211
  Scenario: An unknown component is refused
    Given a lab with 1 server
    And the operator has registered the server
    When the operator updates the component "fan"
    Then the firmware components are invalid, because "component fan is invalid, only 'bmc', 'bios', or names starting with 'nic:' are allowed as update names"
    And the host stays "available"

  @B-220
  Scenario: A provisioned server is serviced when it is rebooted, not before
    Given a lab with 1 server
    And the operator has provisioned the server
    And the HostUpdatePolicy allows changes on reboot
    When the operator sets the firmware settings "ProcCores=8"
    And the operator updates the firmware "nic:1=22.40.1"
    And ten minutes pass
    Then the server's BIOS has "ProcCores=0"
    When the operator sets online to false
    Then the server is off
    When the operator sets online to true
    Then the host has been serviced
    And the server's BIOS has "ProcCores=8"
    And the server runs "nic:1=22.40.1"
    And the server runs from its first disk
    And the host stays "provisioned"

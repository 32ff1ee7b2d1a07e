Feature: Admission
  Invalid objects are refused at once, with the messages of upstream's webhooks,
  whether the controllers run or not.

  Background:
    Given a lab with 1 server

  Scenario Outline: A BareMetalHost is refused: <text>
    When the operator tries to create a BareMetalHost with '<change>'
    Then it is refused with: <text>

    @B-05
    Examples: the schema
      | change                                              | text                                                                                           |
      | spec: {bootMode: BIOS}                              | spec.bootMode: Unsupported value: "BIOS": supported values: "UEFI", "UEFISecureBoot", "legacy" |
      | spec: {bootMACAddress: 00-11-22-33-44-55}           | should match '[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}'                                              |
      | spec: {automatedCleaningMode: full}                 | supported values: "metadata", "disabled"                                                       |
      | spec: {raid: {hardwareRAIDVolumes: [{level: "3"}]}} | supported values: "0", "1", "2", "5", "6", "1+0", "5+0", "6+0"                                 |

    @B-125
    Examples: power
      | change                                       | text                                                                           |
      | spec: {online: false, disablePowerOff: true} | node can't simultaneously have online set to false and have power off disabled |

    @B-150
    Examples: image URLs
      | change                                           | text                                                                      |
      | spec: {image: {url: "file:///a", checksum: "0"}} | image URL file:///a is invalid: invalid scheme in URL, "file" not allowed |
      | spec: {image: {url: a, checksum: "0"}}           | image URL a is invalid: parse "a": invalid URI for request                |

    @B-151
    Examples: checksums
      | change                                           | text                                                                                     |
      | spec: {image: {url: "http://a/b"}}               | checksum is required for normal images                                                   |
      | spec: {image: {url: "oci://a/b", checksum: "0"}} | spec.image.checksum must be empty for OCI images (oci:// images have embedded checksums) |

    @B-161
    Examples: root device hints
      | change                                                   | text                                                                                                 |
      | spec: {rootDeviceHints: {deviceName: sda}}               | device name of root device hint must be a /dev/ path, not "sda"                                      |
      | spec: {rootDeviceHints: {deviceName: /dev/disk/by-id/x}} | device name of root device hint must be path in /dev/ or /dev/disk/by-path/, not "/dev/disk/by-id/x" |

    @B-171
    Examples: RAID
      | change                                                                                                              | text                                                                                     |
      | spec: {raid: {hardwareRAIDVolumes: [{level: "1"}], softwareRAIDVolumes: [{level: "1"}]}}                            | hardwareRAIDVolumes and softwareRAIDVolumes can not be set at the same time              |
      | spec: {raid: {hardwareRAIDVolumes: [{level: "1", physicalDisks: [a, b]}]}}                                          | 'physicalDisks' specified without 'controller' in hardware RAID volume 0                 |
      | spec: {raid: {hardwareRAIDVolumes: [{level: "1", controller: c, physicalDisks: [a, b], numberOfPhysicalDisks: 3}]}} | the 'numberOfPhysicalDisks'[3] and number of 'physicalDisks'[2] is not same for volume 0 |
      | spec: {bmc: {address: "ipmi://a"}, raid: {hardwareRAIDVolumes: [{level: "1"}]}}                                     | raid settings are defined, but the node's driver ipmi does not support RAID.             |
      | spec: {bmc: {address: "ilo4-virtualmedia://a"}, raid: {softwareRAIDVolumes: [{level: "1"}]}}                        | raid settings are defined, but the node's driver ilo does not support RAID.              |
      | spec: {bmc: {address: "idrac://a"}, raid: {softwareRAIDVolumes: [{level: "1"}]}}                                    | node's driver idrac does not support software RAID.                                      |

    @B-270
    Examples: everything else
      | change                                                                                        | text                                                                                 |
      | spec: {bmc: {address: "telnet://a"}}                                                          | Unknown BMC type 'telnet' for address telnet://a                                     |
      | spec: {bmc: {address: "ipmi://a_b"}}                                                          | failed to parse BMC address information: BMC address hostname/IP : [a_b] is invalid  |
      | spec: {bmc: {address: "libvirt://a"}, bootMACAddress: null}                                   | BMC driver libvirt requires a BootMACAddress value                                   |
      | spec: {bmc: {address: "ipmi://a"}, bootMode: UEFISecureBoot}                                  | BMC driver ipmi does not support secure boot                                         |
      | spec: {bootMACAddress: "00:11:22:33:44:55:66"}                                                | address 00:11:22:33:44:55:66: invalid MAC address                                    |
      | metadata: {name: 0e8e1b6c-1b7c-4a52-b5c3-3f0e5b8a7d11}                                        | BareMetalHost resource name cannot be a UUID                                         |
      | metadata: {annotations: {inspect.metal3.io: twice}}                                           | invalid value for the inspect.metal3.io annotation, allowed are "disabled" or ""     |
      | metadata: {annotations: {inspect.metal3.io/hardwaredetails: "{}"}}                            | when hardware details are provided, inspection must be disabled                      |
      | metadata: {annotations: {reboot.metal3.io: now}}                                              | failed to unmarshal the data from the reboot.metal3.io annotation: invalid character |
      | metadata: {annotations: {reboot.metal3.io/me: "{\"mode\":\"kind\"}"}}                         | invalid mode in the reboot.metal3.io annotation, allowed are "hard", "soft" or ""    |
      | metadata: {annotations: {baremetalhost.metal3.io/status: fine}}                               | error decoding status annotation: invalid character                                  |
      | metadata: {annotations: {baremetalhost.metal3.io/status: "{\"operationalStatus\":\"fine\"}"}} | invalid operationalStatus 'fine' in the baremetalhost.metal3.io/status annotation    |

    @B-251
    Examples: contradictions about inspection
      | change                                                                                  | text                                                                            |
      | {metadata: {annotations: {inspect.metal3.io: disabled}}, spec: {inspectionMode: agent}} | inspect.metal3.io annotation and inspectionMode field have contradicting values |

  Scenario Outline: Another object is refused: <text>
    When the operator tries to create a <kind> with '<change>'
    Then it is refused with: <text>

    @B-211
    Examples:
      | kind                   | change                                                | text                                                                                                    |
      | HostFirmwareComponents | spec: {updates: [{component: bmc, url: "file:///a"}]} | invalid URL "file:///a" in FirmwareUpdate in component "bmc": invalid scheme in URL, "file" not allowed |

    @B-230
    Examples:
      | kind      | change                   | text                                                                  |
      | DataImage | spec: {url: "file:///a"} | URL "file:///a" is invalid: invalid scheme in URL, "file" not allowed |

    @B-245
    Examples:
      | kind                 | change                                        | text                                                       |
      | BMCEventSubscription | spec: {destination: "https://a/"}             | hostName cannot be empty                                   |
      | BMCEventSubscription | spec: {hostName: a}                           | destination cannot be empty                                |
      | BMCEventSubscription | spec: {hostName: a, destination: a}           | destination is invalid: parse "a": invalid URI for request |
      | BMCEventSubscription | spec: {hostName: a, destination: "https://a"} | hostname-only destination must have a trailing slash       |

  @B-141 @B-260 @B-271
  Scenario: Fields that cannot be changed
    Given the operator has provisioned the server
    When the operator tries to change the host to 'spec: {bmc: {address: "ipmi://a"}}'
    Then it is refused with: BMC address can not be changed if the BMH is not in the Registering state, or if the BMH is not detached
    When the operator tries to change the host to 'spec: {bootMACAddress: "00:11:22:33:44:55"}'
    Then it is refused with: bootMACAddress can not be changed once it is set
    When the operator tries to change the host to 'spec: {externallyProvisioned: true}'
    Then it is refused with: externallyProvisioned can only be enabled when in Available state, currently in provisioned
    When the operator tries to change the host to 'spec: {image: {url: ""}}'
    Then it is accepted

  @B-270
  Scenario: Policies are enforced while no controller runs
    Given the controller is killed
    When the operator tries to create a BareMetalHost with 'spec: {bmc: {address: "telnet://a"}}'
    Then it is refused with: Unknown BMC type 'telnet' for address telnet://a

  @B-262 @B-270
  Scenario: kubectl shows refusals and warnings
    When the operator fails to run kubectl apply -f FILE:
      """
      apiVersion: metal3.io/v1alpha1
      kind: BareMetalHost
      metadata: {name: SERVER}
      spec: {online: false, disablePowerOff: true}
      """
    Then kubectl prints node can't simultaneously have online set to false and have power off disabled
    When the operator runs kubectl apply --dry-run=server -f FILE:
      """
      apiVersion: metal3.io/v1alpha1
      kind: BareMetalHost
      metadata: {name: SERVER}
      spec: {online: true, firmware: {sriovEnabled: true}}
      """
    Then kubectl prints Currently the firmware field is only supported by ilo4/ilo5/irmc/idrac
    And kubectl prints HostFirmwareSettings set these and all other BIOS settings
    And kubectl prints baremetalhost.metal3.io/SERVER created (server dry run)
    When the operator runs kubectl explain bmh.spec.firmware
    Then kubectl prints Currently only supported by ilo4/ilo5/irmc/idrac

  @B-115 @B-270
  Scenario: A Secret of another namespace is for users who may read it
    Given the operator runs kubectl create namespace SERVER-data
    And the operator runs kubectl create role hosts-SERVER --verb=get,create --resource=baremetalhosts.metal3.io
    And the operator runs kubectl create rolebinding hosts-SERVER --role=hosts-SERVER --user=jane-SERVER
    When the operator fails to run kubectl create --dry-run=server --as=jane-SERVER -f FILE:
      """
      apiVersion: metal3.io/v1alpha1
      kind: BareMetalHost
      metadata: {name: SERVER}
      spec: {online: true, userData: {name: user-data, namespace: SERVER-data}}
      """
    Then kubectl prints userData: user "jane-SERVER" cannot get Secret "user-data" in the namespace "SERVER-data"
    When the operator runs kubectl create role reader -n SERVER-data --verb=get --resource=secrets --resource-name=user-data
    And the operator runs kubectl create rolebinding reader -n SERVER-data --role=reader --user=jane-SERVER
    And the operator runs kubectl create --dry-run=server --as=jane-SERVER -f FILE:
      """
      apiVersion: metal3.io/v1alpha1
      kind: BareMetalHost
      metadata: {name: SERVER}
      spec: {online: true, userData: {name: user-data, namespace: SERVER-data}}
      """
    Then kubectl prints baremetalhost.metal3.io/SERVER created (server dry run)

Feature: Every vendor, by every address scheme
  Each row is a server model and an address scheme that its BMC supports. A test
  checks that every dialect has a row for every scheme, or a reason why not. The
  generic dialect is in bmc.feature.

  # B-131 B-132 B-133
  Scenario Outline: <model> is provisioned by <scheme>
    Given a server of the model "<model>" in a lab of all models
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    When the operator removes the image
    Then the host becomes "available"

    @Dell @sample-3
    Examples:
      | model     | scheme               |
      | dell-r730 | idrac                |
      | dell-r730 | idrac-redfish        |
      | dell-r730 | idrac-virtualmedia   |
      | dell-r730 | redfish              |
      | dell-r730 | redfish-virtualmedia |
      | dell-r730 | ipmi                 |
      | dell-r640 | idrac                |
      | dell-r640 | idrac-redfish        |
      | dell-r640 | idrac-virtualmedia   |
      | dell-r640 | redfish              |
      | dell-r640 | redfish-virtualmedia |
      | dell-r640 | ipmi                 |
      | dell-r650 | idrac                |
      | dell-r650 | idrac-redfish        |
      | dell-r650 | idrac-virtualmedia   |
      | dell-r650 | redfish              |
      | dell-r650 | ipmi                 |
      | dell-r760 | idrac-virtualmedia   |
      | dell-r760 | redfish-virtualmedia |

    @HPE @sample-3
    Examples:
      | model           | scheme               |
      | hpe-dl360-gen9  | ilo4                 |
      | hpe-dl360-gen9  | ilo4-virtualmedia    |
      | hpe-dl360-gen9  | redfish              |
      | hpe-dl380-gen9  | redfish-virtualmedia |
      | hpe-dl380-gen9  | redfish-uefihttp     |
      | hpe-dl380-gen9  | ipmi                 |
      | hpe-dl360-gen10 | ilo5                 |
      | hpe-dl360-gen10 | ilo5-redfish         |
      | hpe-dl360-gen10 | ilo5-virtualmedia    |
      | hpe-dl360-gen10 | redfish              |
      | hpe-dl380-gen10 | redfish-virtualmedia |
      | hpe-dl380-gen10 | redfish-uefihttp     |
      | hpe-dl380-gen10 | ipmi                 |
      | hpe-dl360-gen11 | redfish              |
      | hpe-dl360-gen11 | redfish-virtualmedia |
      | hpe-dl380-gen11 | redfish-uefihttp     |
      | hpe-dl380-gen11 | ipmi                 |
      | hpe-dl360-gen12 | redfish              |
      | hpe-dl360-gen12 | redfish-virtualmedia |
      | hpe-dl380-gen12 | redfish-uefihttp     |
      | hpe-dl380-gen12 | ipmi                 |

    @Lenovo @sample-1
    Examples:
      | model           | scheme               |
      | lenovo-sr650-v2 | redfish              |
      | lenovo-sr650-v2 | redfish-virtualmedia |
      | lenovo-sr650-v2 | ipmi                 |
      | lenovo-sr650-v3 | redfish              |
      | lenovo-sr650-v3 | redfish-virtualmedia |
      | lenovo-sr650-v3 | redfish-uefihttp     |
      | lenovo-sr655    | redfish-virtualmedia |

    @Supermicro @sample-1
    Examples:
      | model            | scheme               |
      | supermicro-1029u | redfish              |
      | supermicro-1029u | redfish-virtualmedia |
      | supermicro-1029u | ipmi                 |
      | supermicro-621c  | redfish              |
      | supermicro-621c  | redfish-virtualmedia |
      | supermicro-621c  | redfish-uefihttp     |
      | supermicro-621c  | ipmi                 |

    # bmcweb fetches images by HTTPS alone.
    @OpenBMC @sample-1
    Examples:
      | model             | scheme               |
      | openbmc-tiogapass | redfish              |
      | openbmc-tiogapass | redfish-virtualmedia |
      | openbmc-tiogapass | ipmi                 |

    @Fujitsu @sample-1
    Examples:
      | model             | scheme               |
      | fujitsu-rx2540-m5 | irmc                 |
      | fujitsu-rx2540-m5 | redfish              |
      | fujitsu-rx2540-m5 | redfish-virtualmedia |
      | fujitsu-rx2540-m5 | ipmi                 |
      | fujitsu-rx2540-m7 | irmc                 |
      | fujitsu-rx2540-m7 | redfish              |
      | fujitsu-rx2540-m7 | redfish-virtualmedia |

    # So does iBMC.
    @Huawei @sample-1
    Examples:
      | model           | scheme               |
      | huawei-1288h-v5 | ibmc                 |
      | huawei-1288h-v5 | redfish-virtualmedia |
      | huawei-2288h-v5 | redfish              |
      | huawei-2288h-v5 | ipmi                 |

    @AMI @sample-1
    Examples:
      | model         | scheme               |
      | gigabyte-r282 | redfish              |
      | gigabyte-r282 | redfish-virtualmedia |
      | gigabyte-r282 | redfish-uefihttp     |
      | gigabyte-r282 | ipmi                 |

  # B-131 B-160: the default hardware profile expects /dev/sda.
  Scenario Outline: <model>, which has NVMe drives only, is provisioned by <scheme>
    Given a server of the model "<model>" in a lab of all models
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    When the operator sets a root device hint with the serial number of the second disk
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's second disk begins with the image
    When the operator removes the image
    Then the host becomes "available"

    @NVMe @sample-2
    Examples:
      | model             | scheme               |
      | dell-r770         | idrac                |
      | dell-r770         | idrac-redfish        |
      | dell-r770         | idrac-virtualmedia   |
      | dell-r770         | redfish              |
      | dell-r770         | redfish-virtualmedia |
      | dell-r770         | ipmi                 |
      | fujitsu-rx2530-m7 | redfish-virtualmedia |
      | openbmc-mtjade    | redfish              |

  # B-131 B-160: an override to UefiHttp boots nothing before that.
  Scenario Outline: <model>, whose BIOS needs HTTP boot enabled, is provisioned by <scheme>
    Given a server of the model "<model>" in a lab of all models
    When the operator creates the firmware settings "HttpDev1EnDis=Enabled" before the host
    And the operator registers the server by "<scheme>"
    Then the host becomes "available"
    And the firmware settings are applied
    When the operator sets a root device hint with the serial number of the second disk
    And the operator sets the image
    Then the host becomes "provisioned"
    And the server's second disk begins with the image
    When the operator removes the image
    Then the host becomes "available"

    @Dell @sample-1
    Examples:
      | model     | scheme           |
      | dell-r640 | redfish-uefihttp |
      | dell-r760 | redfish-uefihttp |
      | dell-r770 | redfish-uefihttp |

  # B-131 B-133: +http is for BMCs that speak HTTP without TLS.
  Scenario Outline: <model>, whose BMC has no TLS, is provisioned by <scheme>
    Given a server of the model "<model>" in a lab of all models
    And the server's BMC has the quirk "http-only"
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image

    @noTLS @sample-2
    Examples:
      | model           | scheme                    |
      | generic         | redfish+http              |
      | generic         | redfish-virtualmedia+http |
      | generic         | redfish-uefihttp+http     |
      | dell-r650       | idrac+http                |
      | dell-r650       | idrac-redfish+http        |
      | dell-r650       | idrac-virtualmedia+http   |
      | hpe-dl360-gen10 | ilo5-redfish+http         |
      | hpe-dl360-gen10 | ilo5-virtualmedia+http    |
      | huawei-2288h-v5 | ibmc+http                 |

  # B-132: the BMC has neither InsertMedia nor PATCH, but IsoConfig of the vendor.
  Scenario: supermicro-1029u is provisioned by its OEM resource for virtual media
    Given a server of the model "supermicro-1029u" in a lab of all models
    And the server's BMC has the quirk "vmedia-own-way"
    When the operator registers the server by "redfish-virtualmedia"
    Then the host becomes "available"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    And the server's virtual CD is empty
    And the host reports the workaround "virtual media: IsoConfig"

  # B-153 B-150: the BMC fetches a live ISO from the URL of the image.
  Scenario: openbmc-tiogapass boots a live ISO by HTTPS
    Given a server of the model "openbmc-tiogapass" in a lab of all models
    When the operator registers the server by "redfish-virtualmedia"
    Then the host becomes "available"
    When the operator sets a live ISO with an HTTPS URL
    Then the host becomes "provisioned"
    And the server runs from its virtual CD

Feature: Servers of every vendor
  Each row is a server of a vendor, and a kind of BMC address that it supports:
  the controllers get it its image, whatever its BMC is like.

  # B-131 B-132 B-133
  Scenario Outline: <model> gets its image by <scheme>
    Given a server of the model "<model>" in a lab of all models
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"
    When the operator asks for the lab's image
    Then the host becomes "provisioned"
    And the server's first disk begins with the image
    When the operator takes the image away
    Then the host becomes "available"

    @Dell
    Examples:
      | model     | scheme             |
      | dell-r730 | idrac              |
      | dell-r730 | idrac-redfish      |
      | dell-r640 | idrac-virtualmedia |
      | dell-r650 | idrac-redfish      |
      | dell-r650 | idrac-virtualmedia |
      | dell-r650 | ipmi               |
      | dell-r760 | idrac-virtualmedia |

    @HPE
    Examples:
      | model           | scheme               |
      | hpe-dl360-gen10 | ilo5                 |
      | hpe-dl360-gen10 | ilo5-redfish         |
      | hpe-dl360-gen10 | ilo5-virtualmedia    |
      | hpe-dl380-gen10 | redfish-virtualmedia |
      | hpe-dl380-gen10 | ipmi                 |

    @Lenovo
    Examples:
      | model           | scheme               |
      | lenovo-sr650-v2 | redfish-virtualmedia |
      | lenovo-sr650-v2 | redfish              |
      | lenovo-sr650-v3 | redfish-virtualmedia |
      | lenovo-sr655    | redfish-virtualmedia |

    @Supermicro
    Examples:
      | model            | scheme               |
      | supermicro-1029u | redfish-virtualmedia |
      | supermicro-1029u | ipmi                 |
      | supermicro-621c  | redfish-virtualmedia |
      | supermicro-621c  | redfish              |

    # bmcweb fetches images by HTTPS alone, which the lab's controllers do not serve.
    @OpenBMC
    Examples:
      | model             | scheme  |
      | openbmc-tiogapass | redfish |
      | openbmc-tiogapass | ipmi    |

    @Fujitsu
    Examples:
      | model             | scheme               |
      | fujitsu-rx2540-m5 | irmc                 |
      | fujitsu-rx2540-m5 | redfish-virtualmedia |
      | fujitsu-rx2540-m5 | ipmi                 |
      | fujitsu-rx2540-m7 | irmc                 |
      | fujitsu-rx2540-m7 | redfish-virtualmedia |

    # Nor does iBMC fetch images by plain HTTP.
    @Huawei
    Examples:
      | model           | scheme  |
      | huawei-1288h-v5 | ibmc    |
      | huawei-2288h-v5 | redfish |
      | huawei-2288h-v5 | ipmi    |

    @AMI
    Examples:
      | model         | scheme               |
      | gigabyte-r282 | redfish-virtualmedia |
      | gigabyte-r282 | redfish              |
      | gigabyte-r282 | ipmi                 |

  # B-131: their disks are not where the default profile looks for the first one.
  Scenario Outline: <model>, which has NVMe drives alone, is made ready by <scheme>
    Given a server of the model "<model>" in a lab of all models
    When the operator registers the server by "<scheme>"
    Then the host becomes "available"

    Examples:
      | model             | scheme               |
      | dell-r770         | idrac-virtualmedia   |
      | fujitsu-rx2530-m7 | redfish-virtualmedia |
      | openbmc-mtjade    | redfish              |

Feature: Checks of schemas and interoperability profiles
  They compare a BMC with the schemas and profiles of DMTF's archive, and with the
  profile of OpenStack Ironic in it.

  Scenario Outline: <check> is <verdict> with <wrong>
    Given the BMC of a "generic" server
    And the run has DMTF's schemas and profiles
    And the BMC has: <wrong>
    When the read-only checks around <check> run
    Then <check> is <verdict> because of "<reason>"
    And beside <check>, only these differ: <also>

    Examples:
      | check   | verdict | reason                                                             | wrong                                                                                                                                                                                                                                                                                                                                         | also                        |
      | SCH-001 | pass    |                                                                    | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                                                                                             | none                        |
      | SCH-001 | fail    | value must be one of                                               | fault {"path": "/redfish/v1/Systems/1/SecureBoot", "set": {"/SecureBootMode": "Sometimes"}}                                                                                                                                                                                                                                                   | none                        |
      | SCH-002 | pass    | recommendations are not followed                                   | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                                                                                             | none                        |
      | SCH-002 | fail    | OpenStackIronicProfile 1.2.0: 1 mandatory requirements do not hold | fault {"path": "/redfish/v1/Systems/1/SecureBoot", "patch": {"SecureBootEnable": null}}                                                                                                                                                                                                                                                       | SB-001 fail                 |
      | SCH-003 | warn    | OCPServerHardwareManagement 1.1.0: 6 mandatory requirements        | fault {"path": "/redfish/v1/none", "status": 404}                                                                                                                                                                                                                                                                                             | none                        |
      | SCH-003 | pass    | recommendations are not followed                                   | fault {"path": "/redfish/v1/Systems/1/EthernetInterfaces/*", "set": {"/FQDN": "node.example.org", "/HostName": "node"}} and fault {"path": "/redfish/v1/Systems/1", "set": {"/SerialConsole/ConnectTypesSupported": ["IPMI"]}} and fault {"path": "/redfish/v1/Chassis/1/Thermal", "set": {"/Temperatures/1/PhysicalContext": "SystemBoard"}} | ROOT-006 warn, SCH-001 fail |

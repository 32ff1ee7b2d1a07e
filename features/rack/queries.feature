Feature: Query parameters
  $top, $skip, $expand, $select, $filter, only and excerpt (DSP0266, 7.3), and what
  ProtocolFeaturesSupported says of them.

  Background:
    Given a rack of 1 server

  @A11 @fault-6
  Scenario: $top=1 returns one member, the count and a nextLink, and changes nothing for others
    When the client sends GET AccountService/Roles?$top=1
    Then the response has 1 member
    And the response has "Members@odata.count": 3
    And the response has "Members@odata.nextLink"
    And GET AccountService/Roles has 3 members, which are links

  @A12
  Scenario: $expand=. expands subordinate resources, ~ those of Links, * both
    When the client sends GET Systems/1?$expand=.
    Then the response has "Storage/Members"
    And the response has no "Storage/Members/0/Name"
    And the response has no "Links/ManagedBy/0/Id"
    When the client sends GET Systems/1?$expand=~
    Then the response has "Links/ManagedBy/0/Id": "1"
    And the response has no "Storage/Members"
    When the client sends GET Systems/1?$expand=*
    Then the response has "Links/ManagedBy/0/Id": "1"
    And the response has "Storage/Members"
    And the response has no "Storage/Members/0/Name"

  @A12
  Scenario: ($levels=n) expands n levels, up to MaxLevels
    Then GET /redfish/v1/ has "ProtocolFeaturesSupported/ExpandQuery": {"ExpandAll": true, "Levels": true, "Links": true, "MaxLevels": 6, "NoLinks": true}
    When the client sends GET Systems?$expand=.($levels=1)
    Then the response has "Members/0/Storage/@odata.id"
    And the response has no "Members/0/Storage/Members"
    When the client sends GET Systems?$expand=.($levels=2)
    Then the response has "Members/0/Storage/Members/0/@odata.id"
    And the response has no "Members/0/Storage/Members/0/Id"
    When the client sends GET Systems?$expand=.($levels=6)
    Then the response has "Members/0/Storage/Members/0/Drives/0/SerialNumber"
    When the client sends GET Systems?$expand=.($levels=7)
    Then the response is 400 with "QueryParameterOutOfRange"
    When the client sends GET Systems?$expand=Storage
    Then the response is 400 with "QueryParameterValueFormatError"

  @A12 @A13
  Scenario: $select applies to what $expand has expanded
    When the client sends GET Systems?$expand=.&$select=Members/PowerState,Members/Boot/BootOrder
    Then the response has "Members/0/PowerState": "Off"
    And the response has "Members/0/Boot/BootOrder"
    And the response has no "Members/0/Boot/BootSourceOverrideTarget"
    And the response has no "Members/0/Id"
    When the client sends GET Systems/1?$expand=~&$select=Links
    Then the response has "Links/ManagedBy/0/Id": "1"
    And the response has no "PowerState"

  @A12 @fault-3 @fault-6
  Scenario: $expand=. returns whole members, and changes nothing for others
    When the client sends GET AccountService/Roles?$expand=.
    Then the first member of the response has a RoleId that equals its Id
    And GET AccountService/Roles has 3 members, which are links

  @A13 @A14
  Scenario: $filter and $select narrow a response
    When the client sends GET AccountService/Roles?$filter=AssignedPrivileges%20eq%20'ConfigureUsers'
    Then the response has "Members@odata.count": 1
    When the client sends GET Systems/1?$select=PowerState
    Then PowerState is the only property of the response, besides annotations

  @A13
  Scenario: only returns the member of a collection that has one
    When the client saves "SerialNumber" of GET Systems/1
    And the client sends GET Systems?only
    Then the response has the saved "SerialNumber"
    When the client sends GET AccountService/Roles?only
    Then the response has 3 members
    When the client sends GET Systems/1?only
    Then the response is 400 with "QueryNotSupportedOnResource"
    When the client sends GET Systems?only=x
    Then the response is 400 with "QueryParameterValueFormatError"

  @A13
  Scenario: excerpt returns the excerpt of a resource
    When the client saves "Reading" of GET Chassis/1/Sensors/TotalPower
    And the client sends GET Chassis/1/Sensors/TotalPower?excerpt
    Then the response has the saved "Reading"
    And the response has no "ReadingUnits"
    And the response has no "Id"
    When the client sends GET Chassis/1/Sensors?$expand=.&excerpt
    Then the response has "Members/0/Reading"
    And the response has no "Members/0/Id"
    When the client sends GET Chassis/1/Sensors/TotalPower?excerpt=x
    Then the response is 400 with "QueryParameterValueFormatError"

  @A15 @fault-8
  Scenario: An unsupported $ option is answered with 501, another one is ignored
    When the client sends GET Systems?$orderby=Name
    Then the response is 501 with "QueryParameterUnsupported"
    When the client sends GET Systems?$skip=-1
    Then the response is 400 with "QueryParameterOutOfRange"
    When the client sends GET Systems?colour=green
    Then the response is 200

  @A16 @A12 @A14
  Scenario Outline: ProtocolFeaturesSupported of <profile> is what the service does
    Given a rack of 1 server of the profile "<profile>"
    Then each query of ProtocolFeaturesSupported works, and no other

    Examples:
      | profile           |
      | generic           |
      | dell-r640         |
      | dell-r650         |
      | dell-r730         |
      | dell-r770         |
      | fujitsu-rx2540-m7 |
      | gigabyte-r282     |
      | hpe-dl360-gen10   |
      | hpe-dl360-gen12   |
      | lenovo-sr650-v2   |
      | lenovo-sr650-v3   |
      | openbmc-mtjade    |
      | supermicro-1029u  |
      | supermicro-621c   |

  @A16
  Scenario: ProtocolFeaturesSupported of a dialect file claims what the service does not do
    Given a rack of 1 server of the dialect file:
      """
      name: liar
      base: generic
      protocol:
        queries: {select: true, topSkip: false, filter: false, only: false, excerpt: false, expandAll: false, expandLinks: false, expandRest: false, maxLevels: 0}
        advertisedQueries: {select: true, topSkip: true, expandAll: true, maxLevels: 3}
      """
    Then GET /redfish/v1/ has "ProtocolFeaturesSupported/TopSkipQuery": true
    And GET /redfish/v1/ has "ProtocolFeaturesSupported/ExpandQuery/MaxLevels": 3
    And GET /redfish/v1/ has "ProtocolFeaturesSupported/FilterQuery": false
    When the client sends GET Systems?$top=1
    Then the response is 501 with "QueryParameterUnsupported"
    When the client sends GET Systems?$expand=*
    Then the response is 501 with "QueryParameterUnsupported"
    When the client sends GET Systems/1?$select=PowerState
    Then PowerState is the only property of the response, besides annotations

Feature: Redfish protocol
  Methods, headers, preconditions and queries (DSP0266). Tags name the rows of the
  requirements, and faults of other emulators.

  Background:
    Given a rack of 1 server

  @A1 @B1
  Scenario: The service root needs no credentials, everything below it does
    Given the client has no credentials
    When the client sends GET /redfish
    Then the response has "v1": "/redfish/v1/"
    And GET /redfish/v1/ is answered with 200
    And GET $metadata is answered with 200
    And GET odata is answered with 200
    And GET Systems/1 is answered with 401
    And GET Chassis is answered with 401

  @A2 @A4
  Scenario: GET has the standard headers, and HEAD the same ones
    When the client sends GET Systems/1
    Then the response has the header OData-Version: 4.0
    And the response has the header Cache-Control: no-cache
    And the header Link contains rel=describedby
    And the header Allow contains GET, HEAD
    And the header Content-Type contains application/json
    When the client saves the headers of the response
    And the client sends HEAD Systems/1
    Then the response has no body
    And the ETag and Content-Length are the saved ones

  @A3
  Scenario: OData-Version 4.1 is answered with 412
    When the client sends GET Systems/1 with OData-Version: 4.1
    Then the response is 412 with "HeaderInvalid"

  @A5
  Scenario: An unsupported method is answered with 405 and Allow, an unknown one with 501
    When the client sends DELETE Systems/1
    Then the response is 405
    And the response has the header Allow: GET, HEAD, PATCH, OPTIONS
    When the client sends BREW Systems/1
    Then the response is 501

  @A6 @A7 @A8 @fault-1
  Scenario: PATCH with an If-Match or a property that does not exist changes nothing
    When the client sends PATCH Systems/1 {"AssetTag": "bogus"} with If-Match: "bogus"
    Then the response is 412 with "PreconditionFailed"
    When the client sends PATCH Systems/1 {"NotAProp": 1}
    Then the response is 400 with "PropertyUnknown"
    And GET Systems/1 has no "NotAProp"
    And AssetTag of the system is not "bogus"

  @A7
  Scenario: Of two PATCH requests with the same ETag the second is answered with 412
    When two clients send PATCH Systems/1 with the same ETag
    Then the responses are 200 and 412

  @A8
  Scenario: PATCH applies what it can and annotates an unknown property
    When the client sends PATCH Systems/1 {"AssetTag": "A-1", "NotAProp": 1}
    Then the response is 200
    And the response has "AssetTag": "A-1"
    And the response has "NotAProp@Message.ExtendedInfo"

  @A8 @A10 @fault-5
  Scenario: An error response has @Message.ExtendedInfo
    When the client sends PATCH Systems/1 {"NotAProp": 1}
    Then the response is 400 with "PropertyUnknown"
    When the client sends GET Systems?$top=-1
    Then the response is 400

  @A10 @C1 @fault-3
  Scenario: ComputerSystem.Reset with an unknown ResetType is answered with 400
    When the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "Sideways"}
    Then the response is 400 with "ActionParameterValueNotInList"

  @A11 @fault-6
  Scenario: $top=1 returns one member, the count and a nextLink, and changes nothing for others
    When the client sends GET AccountService/Roles?$top=1
    Then the response has 1 member
    And the response has "Members@odata.count": 3
    And the response has "Members@odata.nextLink"
    And GET AccountService/Roles has 3 members, which are links

  @A12 @fault-3 @fault-6
  Scenario: $expand=. returns whole members, and changes nothing for others
    When the client sends GET AccountService/Roles?$expand=.
    Then the first member of the response has a RoleId that equals its Id
    And GET AccountService/Roles has 3 members, which are links

  @A13 @A14 @A16
  Scenario: $filter and $select narrow a response
    When the client sends GET AccountService/Roles?$filter=AssignedPrivileges%20eq%20'ConfigureUsers'
    Then the response has "Members@odata.count": 1
    When the client sends GET Systems/1?$select=PowerState
    Then PowerState is the only property of the response, besides annotations

  @A15 @fault-8
  Scenario: An unsupported $ option is answered with 501, another one is ignored
    When the client sends GET Systems?$orderby=Name
    Then the response is 501 with "QueryParameterUnsupported"
    When the client sends GET Systems?$skip=-1
    Then the response is 400 with "QueryParameterOutOfRange"
    When the client sends GET Systems?colour=green
    Then the response is 200

  @A17
  Scenario: Prefer: return=minimal is answered with 204 and Preference-Applied
    When the client sends PATCH Systems/1 {"AssetTag": "A-2"} with Prefer: return=minimal
    Then the response is 204
    And the response has the header Preference-Applied: return=minimal

  @A21
  Scenario: @Redfish.ActionInfo of each action lists its Parameters
    Then the @Redfish.ActionInfo of each action of the system lists Parameters

  @A23
  Scenario: Accept-Encoding: gzip compresses the same representation
    When the client saves "SerialNumber" of GET Systems/1
    And the client sends GET Systems/1 with Accept-Encoding: gzip
    Then the response is compressed with gzip and has the saved "SerialNumber"

  @A24 @A25
  Scenario: JsonSchemas and Registries list what the service uses
    Then JsonSchemas has at least 5 members
    And Registries has at least 5 members

Feature: Redfish protocol
  Methods, headers and preconditions (DSP0266). Tags name the rows of the
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

  @A2
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

  @A4
  Scenario Outline: HEAD of <uri> has the headers of GET, OPTIONS has Allow
    When the client sends GET <uri>
    Then the response is <status>
    And the client saves the headers of the response
    When the client sends HEAD <uri>
    Then the response is <status>
    And the response has no body
    And the headers are the saved ones
    When the client sends OPTIONS <uri>
    Then the response is <of OPTIONS>
    And the response has no body
    And the header Allow is the saved one

    Examples:
      | uri                                | status | of OPTIONS |
      | /redfish/v1/                       | 200    | 204        |
      | $metadata                          | 200    | 204        |
      | Systems                            | 200    | 204        |
      | Systems/1                          | 200    | 204        |
      | Systems/1?$select=PowerState       | 200    | 204        |
      | AccountService/Roles/Administrator | 200    | 204        |
      | Systems/1/Bios/Settings            | 200    | 204        |

  @A4
  Scenario: HEAD and OPTIONS of what is not there
    When the client sends HEAD Systems/2
    Then the response is 404
    And the response has no body
    When the client sends OPTIONS Systems/2
    Then the response is 404

  @A4
  Scenario: OPTIONS of an action allows POST alone
    When the client sends OPTIONS Systems/1/Actions/ComputerSystem.Reset
    Then the response is 204
    And the response has the header Allow: POST, OPTIONS

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

  @A6
  Scenario: Every resource has a strong ETag, and is not sent to a client that has it
    Then every resource has a strong ETag, which is its @odata.etag, and is answered with 304 to If-None-Match

  @A6
  Scenario: An ETag changes when the representation changes, and only then
    When the client saves "@odata.etag" of GET Systems/1
    And the client creates a session
    And the client sends PATCH Systems/1 {"AssetTag": ""}
    Then GET Systems/1 has the saved "@odata.etag"
    When the client sends PATCH Systems/1 {"AssetTag": "A-1"}
    Then GET Systems/1 lacks the saved "@odata.etag"
    When the client sends PATCH Systems/1 {"AssetTag": ""}
    Then GET Systems/1 has the saved "@odata.etag"
    When the client sends GET Systems/1 with If-None-Match: ETAG
    Then the response is 304
    And the response has no body
    When the client sends GET Systems/1 with If-None-Match: "bogus"
    Then the response is 200

  @A7 @A8 @fault-1
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

  @A17
  Scenario: Prefer: return=minimal is answered with 204 and Preference-Applied
    When the client sends PATCH Systems/1 {"AssetTag": "A-2"} with Prefer: return=minimal
    Then the response is 204
    And the response has no body
    And the response has the header Preference-Applied: return=minimal
    And GET Systems/1 has "AssetTag": "A-2"

  @A17
  Scenario: Prefer: return=representation is answered with a body
    When the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}
    Then the response is 204
    And the response has no header Preference-Applied
    When the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "ForceOff"} with Prefer: return=representation
    Then the response is 200 with "Success"
    And the response has the header Preference-Applied: return=representation
    When the client sends PATCH Systems/1 {"AssetTag": "A-3"} with Prefer: return=representation
    Then the response is 200
    And the response has "AssetTag": "A-3"
    And the response has the header Preference-Applied: return=representation

  @A17
  Scenario: Prefer: respond-async is answered with 202 and a task
    When the client sends PATCH Systems/1 {"AssetTag": "A-4"} with Prefer: respond-async
    Then the response is 202
    And the response has the header Preference-Applied: respond-async
    And the response has "TaskState": "Completed"
    When the client sends GET MONITOR
    Then the response is 200
    And the response has "AssetTag": "A-4"
    When the client sends PATCH Systems/1 {"NotAProp": 1} with Prefer: respond-async
    Then the response is 400 with "PropertyUnknown"
    And the response has no header Preference-Applied

  @A21
  Scenario: @Redfish.ActionInfo of each action lists its Parameters
    Then the @Redfish.ActionInfo of each action of the system lists Parameters

  @A23
  Scenario: A connection is kept alive, unless the profile closes it
    When the client sends 5 times GET Systems/1
    Then the client has opened 1 connection, and speaks HTTP/1.1
    When the client sends GET Systems/1 with Connection: close
    Then the connection is closed after the response
    Given the BMC has the quirk "conn-abrupt-close"
    When the client sends 5 times GET Systems/1
    Then the client has opened 5 connections, and speaks HTTP/1.1

  @A23
  Scenario: HTTP version 2 is spoken where the lab allows it
    When an HTTP/2 client sends 5 times GET Systems/1
    Then the client has opened 1 connection, and speaks HTTP/1.1
    Given a rack of 1 server with HTTP/2
    When an HTTP/2 client sends 5 times GET Systems/1
    Then the client has opened 1 connection, and speaks HTTP/2.0
    When the client sends 5 times GET Systems/1
    Then the client has opened 1 connection, and speaks HTTP/1.1

  @A23
  Scenario: Accept-Encoding: gzip compresses the same representation
    When the client saves "SerialNumber" of GET Systems/1
    And the client sends GET Systems/1 with Accept-Encoding: gzip
    Then the response is compressed with gzip and has the saved "SerialNumber"
    When the client sends GET Systems/1 with Accept-Encoding: gzip;q=0
    Then the response has no header Content-Encoding
    And the response has "SerialNumber"

  @A24 @A25
  Scenario: JsonSchemas and Registries list what the service uses
    Then JsonSchemas has at least 5 members
    And Registries has at least 5 members

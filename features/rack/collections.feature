Feature: Creating and deleting resources
  POST, PUT and DELETE (DSP0266, 7.7 to 7.11), and the schema that each resource names.

  Background:
    Given a rack of 1 server

  @A9
  Scenario: POST to a collection returns the new resource, DELETE removes it
    When the client creates the account "carol" with the role Operator
    Then GET ACCOUNT equals the response to POST
    When the client sends DELETE ACCOUNT
    Then GET ACCOUNT is answered with 404
    When the client sends DELETE ACCOUNT
    Then the response is 404
    When the client sends POST AccountService/Accounts/Members {"UserName": "dave", "Password": "dave-password", "RoleId": "ReadOnly"}
    Then GET ACCOUNT equals the response to POST

  @A9
  Scenario Outline: <request> is refused with <status>
    When the client sends <request>
    Then the response is <status> with "<message>"
    And GET AccountService/Accounts has "Members@odata.count": 1
    And GET AccountService/Roles has "Members@odata.count": 3
    And GET Systems has "Members@odata.count": 1

    Examples:
      | request                                                                                                | status | message                 |
      | DELETE AccountService/Roles/Operator                                                                   | 405    | ResourceCannotBeDeleted |
      | PUT Systems/1 {"AssetTag": "new"}                                                                      | 405    | OperationNotAllowed     |
      | POST Systems {"Name": "second"}                                                                        | 405    | OperationNotAllowed     |
      | POST AccountService/Accounts {"UserName": "half", "RoleId": "ReadOnly"}                                | 400    | PropertyMissing         |
      | POST AccountService/Accounts {"UserName": "half",                                                      | 400    | MalformedJSON           |
      | POST AccountService/Accounts {"UserName": "admin", "Password": "other-password", "RoleId": "ReadOnly"} | 400    | ResourceAlreadyExists   |

  @A26
  Scenario: Every resource names a version of its schema that JsonSchemas and $metadata list
    Then every resource has an @odata.type that JsonSchemas and $metadata list

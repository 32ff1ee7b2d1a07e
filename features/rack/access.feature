Feature: Sessions, accounts and privileges
  Redfish sessions (DSP0266, 13.3), accounts, roles and lockout.

  Background:
    Given a rack of 2 servers

  @B2 @fault-2
  Scenario: POST to Sessions needs no credentials and returns a token
    Given the client has no credentials
    When the client sends POST SessionService/Sessions {"UserName": "admin", "Password": "admin-password"}
    Then the response is 201
    And the client uses the X-Auth-Token of the response
    And GET Systems/1 is answered with 200
    When the client sends DELETE SESSION
    Then GET Systems/1 is answered with 401

  @B2
  Scenario: A session ends after SessionTimeout seconds without a request
    Given the client sends PATCH SessionService {"SessionTimeout": 60}
    When the client creates a session
    And 2 minutes pass
    Then GET Systems/1 is answered with 401

  @B3
  Scenario: POST to Sessions beyond the session limit returns 503
    When clients create sessions until one is refused
    Then the response is 503 with "SessionLimitExceeded"

  @B4 @B5
  Scenario: A ReadOnly account reads and cannot reset
    Given the client creates the account "reader" with the role ReadOnly
    Then GET ACCOUNT has "Password": null
    And the response does not contain '-password'
    When the client authenticates as "reader"
    Then GET Systems/1 is answered with 200
    When the client sends POST Systems/1/Actions/ComputerSystem.Reset {"ResetType": "On"}
    Then the response is 403 with "InsufficientPrivilege"
    When the client authenticates as the administrator
    And the client sends DELETE ACCOUNT
    And the client authenticates as "reader"
    Then GET Systems/1 is answered with 401

  @B4
  Scenario: Failed logins lock an account until the lockout ends
    Given the client creates the account "guest" with the role ReadOnly
    When 10 logins as "guest" fail
    Then GET ACCOUNT has "Locked": true
    When 6 minutes pass
    Then GET ACCOUNT has "Locked": false

  @B6
  Scenario: Each BMC has a TLS certificate of its own, signed by the lab
    Then every BMC presents a different certificate that the lab's CA has signed

  @B11
  Scenario: The manager's log and the journal record who created an account
    Given the client creates the account "new" with the role Operator
    Then the manager's log has an entry AccountCreated with the argument "new"
    And the journal has POST AccountService/Accounts by "admin" from 127.0.0.1

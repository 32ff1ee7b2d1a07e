Feature: Who may do what
  Accounts, roles and sessions, and what becomes of those who guess.

  Background:
    Given a rack of 2 servers

  @B2 @fault-2
  Scenario: A name and a password are enough to log in
    When a client logs in with nothing but a name and a password
    Then it holds a token, and reads the system with it
    When the client logs out
    Then the token is worth nothing any longer

  @B2
  Scenario: A session that nobody uses ends
    Given the operator lets sessions live for a minute
    When a client logs in with nothing but a name and a password
    And 2 minutes pass
    Then the token is worth nothing any longer

  @B3
  Scenario: There is room for so many sessions and no more
    When clients log in until no more can
    Then it is refused as 503
    And it is refused because of "session limit"

  @B4 @B5
  Scenario: A reader reads, and changes nothing
    Given the operator makes an account "reader" with the role ReadOnly
    Then its password is shown nowhere
    When "reader" acts
    Then the system can be read
    When the operator asks for a reset of the kind "On"
    Then it is refused as 403
    And it is refused because of "missing privilege"
    When the operator acts again
    And the operator deletes the account
    And "reader" acts
    Then the token is worth nothing any longer

  @B4
  Scenario: Who guesses is locked out for a while
    Given the operator makes an account "guest" with the role ReadOnly
    When somebody guesses the password of "guest" 10 times
    Then the account is locked
    When 6 minutes pass
    Then the account is not locked

  @B6
  Scenario: Every BMC proves who it is
    Then every BMC shows a certificate of its own that the lab has signed

  @B11
  Scenario: Who did what is written down
    Given the operator makes an account "new" with the role Operator
    Then the manager's log tells that "new" was made
    And the journal tells that "admin" did it, and from where

Feature: Events
  Who wants to know is told: by a POST to an address of his, or over a stream that
  he has opened.

  Background:
    Given a rack of 1 server

  @E8
  Scenario: A monitoring system is told of everything
    Given a monitoring system subscribes to everything
    When the operator switches the server on
    And 10 minutes pass
    Then the monitoring system is told of the power
    When a client logs in with nothing but a name and a password
    Then the monitoring system is told of a login
    And the monitoring system is told of a new session

  @E8
  Scenario: A monitoring system is told of what it has asked for
    Given a monitoring system subscribes to what accounts and logins do
    When the operator switches the server on
    And a client logs in with nothing but a name and a password
    Then the monitoring system is told of a login
    And the monitoring system is not told of the power
    And the monitoring system is not told of a change

  @E8
  Scenario: A subscription that makes no sense
    When somebody subscribes with a protocol that no BMC speaks
    Then it is refused as 400
    And it is refused because of "unsupported protocol"

  @E8
  Scenario: An event is sent again until it arrives
    Given a monitoring system subscribes to everything
    And the monitoring system is away
    When the operator sends a test event
    Then the monitoring system is not told of a login
    And the subscription is there
    When the monitoring system is back
    And 30 seconds pass
    Then the monitoring system is told of a test

  @E8
  Scenario: A subscriber that never comes back is given up
    Given a monitoring system subscribes to everything
    And the monitoring system is away
    When the operator sends a test event
    And 30 seconds pass
    And 30 seconds pass
    And 30 seconds pass
    Then the subscription is gone

  @E8 @F4
  Scenario: Subscriptions outlive the lab
    Given a monitoring system subscribes to everything
    When the lab is restarted
    And the operator sends a test event
    Then the monitoring system is told of a test

  @E8
  Scenario: Silence can be told from absence
    Given a monitoring system subscribes to signs of life every minute
    When 1 minute passes
    Then the monitoring system is told of a sign of life

  @E9
  Scenario: A stream tells events as they happen
    When a client opens a stream of events
    Then the stream tells of its own making
    When the operator switches the server on
    And 10 minutes pass
    Then the stream tells of the power
    When the operator deletes the stream's subscription
    Then the stream has ended

  @E9
  Scenario: Who was away is told what he has missed
    Given a client opens a stream of events
    And the stream tells of its own making
    When the client loses the stream
    And the operator switches the server on
    And 10 minutes pass
    And the client opens it again where it had stopped
    Then the stream tells of the power

  @E9
  Scenario: A filter that makes no sense
    When a client opens a stream with a filter that makes no sense
    Then it is refused as 400

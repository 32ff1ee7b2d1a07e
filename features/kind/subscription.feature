Feature: BMCEventSubscription
  An operator has a BMC post what happens to a server, without an account on it.

  Background:
    Given a lab with 1 server

  @B-245 @B-03
  Scenario: A receiver is told until the subscription is deleted
    Given the operator has registered the server
    When the operator subscribes to the events of the server's BMC
    Then the subscription is made
    When the operator sets online to false
    And the server is off
    Then the receiver is told what happens to the server
    When the operator deletes the subscription
    Then the subscription is gone

  @B-245
  Scenario: A subscription waits for its host, and for its headers
    When the operator subscribes without the secret of its headers
    Then the subscription tells that its host does not exist
    When the operator registers the server
    Then the subscription tells "failed to retrieve HTTP headers secret"
    When the operator creates the secret of the headers
    Then the subscription is made
    When the controller is killed
    And another controller starts
    Then the subscription is made

  @B-245
  Scenario: A subscription to nobody can be taken back
    When the operator subscribes to the events of a server that nobody knows
    Then the subscription tells that its host does not exist
    When the operator deletes the subscription
    Then the subscription is gone

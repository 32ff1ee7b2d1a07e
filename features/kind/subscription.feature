Feature: BMCEventSubscription
  A BMC delivers events to a receiver that has no account on it.

  Background:
    Given a lab with 1 server

  @B-245 @B-03
  Scenario: Events are delivered until the subscription is deleted
    Given the operator has registered the server
    When the operator subscribes to the events of the server's BMC
    Then the subscription is active
    When the operator sets online to false
    And the server is off
    Then the receiver gets the event "ResourcePoweredOff"
    When the operator deletes the subscription
    Then the subscription is deleted

  @B-245
  Scenario: A subscription waits for its host and its Secret of headers
    When the operator subscribes with a Secret of headers that does not exist
    Then the subscription shows that its host does not exist
    When the operator registers the server
    Then the subscription shows the error "failed to retrieve HTTP headers secret"
    When the operator creates the Secret of headers
    Then the subscription is active
    When the controller is killed
    And another controller starts
    Then the subscription is active

  @B-245
  Scenario: A subscription to a host that does not exist can be deleted
    When the operator subscribes to the events of a host that does not exist
    Then the subscription shows that its host does not exist
    When the operator deletes the subscription
    Then the subscription is deleted

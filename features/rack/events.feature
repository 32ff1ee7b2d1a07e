Feature: Events
  Subscriptions that POST events, and server-sent events (DSP0266, 12).

  Background:
    Given a rack of 1 server

  @E8
  Scenario: A subscription without a filter receives every event
    Given an event receiver subscribes with {}
    When the client resets the system with ResetType On
    And 10 minutes pass
    Then the receiver has received the message ResourcePoweredOn
    When the client creates a session
    Then the receiver has received the message SuccessfulLogin
    And the receiver has received the message ResourceCreated

  @E8
  Scenario: RegistryPrefixes restricts a subscription
    Given an event receiver subscribes with {"RegistryPrefixes": ["AccountSecurity"]}
    When the client resets the system with ResetType On
    And the client creates a session
    Then the receiver has received the message SuccessfulLogin
    And the receiver has not received the message ResourcePoweredOn
    And the receiver has not received the message ResourceChanged

  @E8
  Scenario: A subscription with an unsupported Protocol is refused
    When the client sends POST EventService/Subscriptions {"Destination": "https://192.0.2.1/", "Protocol": "FTP"}
    Then the response is 400 with "PropertyValueNotInList"

  @E8
  Scenario: A subscription without a Protocol is refused
    When the client sends POST EventService/Subscriptions {"Destination": "https://192.0.2.1/"}
    Then the response is 400 with "PropertyMissing"

  @E8
  Scenario: An event is delivered again until the receiver accepts it
    Given an event receiver subscribes with {}
    And the receiver answers with 503
    When the client submits a test event
    Then the receiver has not received the message Success
    And GET SUBSCRIPTION is answered with 200
    When the receiver answers with 200
    And 30 seconds pass
    Then the receiver has received the message Success

  @E8
  Scenario: A subscription ends when its receiver stays unreachable
    Given an event receiver subscribes with {}
    And the receiver answers with 503
    When the client submits a test event
    And 30 seconds pass
    And 30 seconds pass
    And 30 seconds pass
    Then GET SUBSCRIPTION is answered with 404

  @E8 @F4
  Scenario: Subscriptions survive a restart of the lab
    Given an event receiver subscribes with {}
    When the lab is restarted
    And the client submits a test event
    Then the receiver has received the message Success

  @E8
  Scenario: SendHeartbeat delivers RedfishServiceFunctional
    Given an event receiver subscribes with {"SendHeartbeat": true, "HeartbeatIntervalMinutes": 1}
    When 1 minute passes
    Then the receiver has received the message RedfishServiceFunctional

  @E9
  Scenario: ServerSentEventUri streams events until its subscription is deleted
    When the client opens the SSE stream
    Then the stream delivers the message ResourceCreated
    When the client resets the system with ResetType On
    And 10 minutes pass
    Then the stream delivers the message ResourcePoweredOn
    When the client deletes the stream's subscription
    Then the stream has ended

  @E9
  Scenario: Last-Event-ID: the stream delivers the events that a client has missed
    Given the client opens the SSE stream
    And the stream delivers the message ResourceCreated
    When the client closes the stream
    And the client resets the system with ResetType On
    And 10 minutes pass
    And the client opens the SSE stream with the Last-Event-ID
    Then the stream delivers the message ResourcePoweredOn

  @E9
  Scenario: An unsupported $filter of the stream returns 400
    When the client sends GET EventService/SSE?$filter=Moon%20eq%20'full'
    Then the response is 400

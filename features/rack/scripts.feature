Feature: Latency and fault timelines
  Latency and faults of a rack definition run on the lab's clock and are drawn from
  its seed: they repeat.

  @F2
  Scenario: Latency delays each response of one BMC
    Given a rack of 2 servers
    And the fault {"latency": "20s"}
    When the client begins GET Systems/1
    And 19 seconds pass
    Then the request is still pending
    And GET Systems/1 of the second BMC is answered with 200
    When 1 second passes
    Then the pending request is answered with 200
    And the journal has requests for Systems/1 that took 20 seconds

  @F2 @F3
  Scenario: Latencies have the given percentiles, and repeat with the seed
    Given a rack of 1 server with the fault {"path": "/redfish/v1/Systems/1", "latency": "p50=300ms,p99=4s"}
    When the client repeats GET Systems/1 40 times, each up to a minute
    Then half of the requests took less than 300 ms, and at most one in twenty more than 4 seconds
    When the lab is created again from the same definition
    And the client repeats GET Systems/1 40 times, each up to a minute
    Then each request took as long as before

  @F3
  Scenario: A fault with from and until takes a BMC offline in between
    Given a rack of 2 servers with the fault {"bmc": "node-0", "offline": true, "from": "2m", "until": "3m"}
    When 1 minute passes
    Then GET Systems/1 is answered with 200
    When 1 minute passes
    And the client sends, response or not: GET Systems/1
    Then there is no response
    And GET Systems/1 of the second BMC is answered with 200
    When 1 minute passes
    Then GET Systems/1 is answered with 200
    And the journal has the first BMC offline for a minute

  @F3
  Scenario: A fault with a probability repeats with the seed
    Given a rack of 1 server with the fault {"path": "/redfish/v1/Systems/1", "status": 503, "probability": 0.5}
    When the client repeats GET Systems/1 40 times
    Then the journal has responses of 200 and of 503
    When the lab is created again from the same definition
    And the client repeats GET Systems/1 40 times
    Then the statuses are the same as before

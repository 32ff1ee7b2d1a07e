Feature: Power that is measured, reported and limited
  Reports of what sensors read, and the limit of what a server may take.

  Background:
    Given a rack of 1 server

  @E6
  Scenario: A limit of the power is kept to
    Given the operator switches the server on
    And 10 minutes pass
    And the server works as hard as it can
    And the server takes more than 350 W
    When the operator limits its power to 300 W
    Then everybody is told of a limit of 300 W
    And the server takes 300 W
    When the operator limits its power to 350 W as older tools do
    Then everybody is told of a limit of 350 W
    And the server takes 350 W
    When the operator lifts the limit
    Then nobody is told of a limit
    And the server takes more than 350 W

  @E6
  Scenario: A limit that no server could keep to
    When the operator tries to limit its power to less than it can be limited to
    Then it is refused because of "value out of range"
    And nobody is told of a limit

  @E10
  Scenario: A report that is made every minute
    Given the operator switches the server on
    And 10 minutes pass
    When the operator has the power reported every minute
    Then there is no report of the power
    When 1 minute passes
    Then the report of the power is of 1 minute after that
    And it tells what the sensor reads
    When the server works as hard as it can
    And 30 seconds pass
    Then the report of the power is of 1 minute after that
    When 30 seconds pass
    Then the report of the power is of 2 minutes after that
    And it tells what the sensor reads
    When the operator has no more reports made
    And 1 hour passes
    Then the report of the power is of 2 minutes after that
    When the operator deletes what was to be reported
    Then there is no report of the power

  @E10
  Scenario: A report that is made when something changes
    Given the operator switches the server on
    And 10 minutes pass
    When the operator has the power reported when it changes
    And 1 hour passes
    Then there is no report of the power
    When the server works as hard as it can
    Then the report of the power is of 60 minutes after that
    And it tells what the sensor reads

  @E10
  Scenario: Reports are sent to who wants them
    Given a monitoring system subscribes to reports
    When the operator has the power reported every minute
    And 3 minutes pass
    Then the monitoring system was sent 3 reports, a minute apart

  @E10
  Scenario: Reports that cannot be made
    When the operator asks for a report a thousand times per second
    Then it is refused because of "value out of range"
    When the operator asks for a report of the moon
    Then it is refused because of "value not in list"
    And there is no report of the power

Feature: Power limit and telemetry

  Background:
    Given a rack of 1 server

  @E6
  Scenario: SetPoint of the power limit caps the power
    Given the client resets the system with ResetType On
    And 10 minutes pass
    And the server runs at full load
    And TotalPower reads more than 350 W
    When the client sends PATCH Chassis/1/Controls/PowerLimit {"SetPoint": 300}
    Then the power limit is 300 W in PowerLimit, EnvironmentMetrics and Power
    And TotalPower reads 300 W
    When the client sends PATCH Chassis/1/Power {"PowerControl": [{"PowerLimit": {"LimitInWatts": 350}}]}
    Then the power limit is 350 W in PowerLimit, EnvironmentMetrics and Power
    And TotalPower reads 350 W
    When the client sends POST Chassis/1/Controls/PowerLimit/Actions/Control.ResetToDefaults {}
    Then the power limit is null in PowerLimit, EnvironmentMetrics and Power
    And TotalPower reads more than 350 W

  @E6
  Scenario: A SetPoint below AllowableMin is refused
    When the client sets SetPoint of the power limit 1 W below AllowableMin
    Then the response is 400 with "PropertyValueOutOfRange"
    And the power limit is null in PowerLimit, EnvironmentMetrics and Power

  @E10
  Scenario: A Periodic metric report is made every RecurrenceInterval
    Given the client resets the system with ResetType On
    And 10 minutes pass
    When the client creates a Periodic report of TotalPower with RecurrenceInterval PT1M
    Then GET TelemetryService/MetricReports/power is answered with 404
    When 1 minute passes
    Then the report has the Timestamp of 1 minute after its definition
    And the report has the Reading of TotalPower
    When the server runs at full load
    And 30 seconds pass
    Then the report has the Timestamp of 1 minute after its definition
    When 30 seconds pass
    Then the report has the Timestamp of 2 minutes after its definition
    And the report has the Reading of TotalPower
    When the client sends PATCH TelemetryService/MetricReportDefinitions/power {"MetricReportDefinitionEnabled": false}
    And 1 hour passes
    Then the report has the Timestamp of 2 minutes after its definition
    When the client sends DELETE TelemetryService/MetricReportDefinitions/power
    Then GET TelemetryService/MetricReports/power is answered with 404

  @E10
  Scenario: An OnChange metric report is made when the reading changes
    Given the client resets the system with ResetType On
    And 10 minutes pass
    When the client creates an OnChange report of TotalPower
    And 1 hour passes
    Then GET TelemetryService/MetricReports/power is answered with 404
    When the server runs at full load
    Then the report has the Timestamp of 60 minutes after its definition
    And the report has the Reading of TotalPower

  @E10
  Scenario: Metric reports are delivered to a subscription of EventFormatType MetricReport
    Given a receiver subscribes to metric reports
    When the client creates a Periodic report of TotalPower with RecurrenceInterval PT1M
    And 3 minutes pass
    Then the receiver has received 3 reports, a minute apart

  @E10
  Scenario: A definition with an impossible interval or an unknown MetricId is refused
    When the client sends POST TelemetryService/MetricReportDefinitions {"Id": "power", "MetricReportDefinitionType": "Periodic", "Metrics": [{"MetricId": "TotalPower"}], "ReportActions": ["LogToMetricReportsCollection"], "Schedule": {"RecurrenceInterval": "PT0.001S"}}
    Then the response is 400 with "PropertyValueOutOfRange"
    When the client sends POST TelemetryService/MetricReportDefinitions {"Id": "power", "MetricReportDefinitionType": "OnRequest", "Metrics": [{"MetricId": "Moon"}], "ReportActions": ["LogToMetricReportsCollection"]}
    Then the response is 400 with "PropertyValueNotInList"
    And GET TelemetryService/MetricReports/power is answered with 404

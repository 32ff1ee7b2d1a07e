Feature: Manager, logs and firmware updates

  Background:
    Given a rack of 1 server

  @E7
  Scenario: LogService.ClearLog empties the log, and entry IDs keep growing
    When the client resets the system with ResetType On
    And 10 minutes pass
    Then the system's log has an entry about power on
    When the client clears the system's log
    Then the system's log has 0 entries
    When the client resets the system with ResetType ForceOff
    And 1 minute passes
    Then the new entries have higher IDs than the cleared ones

  @A18 @E11 @E13
  Scenario: UpdateService.SimpleUpdate runs as a task
    When the client sends POST UpdateService/Actions/UpdateService.SimpleUpdate {"ImageURI": "FIRMWARE"}
    Then the response is 202 with a task monitor
    When 10 minutes pass
    And the client resets the system with ResetType On
    And 20 minutes pass
    Then GET TASK has "TaskState": "Completed"
    And GET Systems/1 has "BiosVersion": "2.4.0"
    And GET UpdateService/FirmwareInventory/BIOS has "Version": "2.4.0"

  @E11
  Scenario: A damaged image ends in TaskState Exception
    When the client sends POST UpdateService/Actions/UpdateService.SimpleUpdate {"ImageURI": "DAMAGED-FIRMWARE"}
    And 20 minutes pass
    Then GET TASK has "TaskState": "Exception"
    And GET UpdateService/FirmwareInventory/BIOS has "Version": "2.3.1"

  @A7 @E11 @fault-7
  Scenario: SimpleUpdate accepts If-Match: *
    When the client sends POST UpdateService/Actions/UpdateService.SimpleUpdate {"ImageURI": "FIRMWARE"} with If-Match: *
    Then the response is 202 with a task monitor

  @A7 @E11 @fault-7
  Scenario: SimpleUpdate accepts the current ETag
    When the client sends POST UpdateService/Actions/UpdateService.SimpleUpdate {"ImageURI": "FIRMWARE"} with If-Match: ETAG
    Then the response is 202 with a task monitor

  @E1
  Scenario: A BMC does not answer while Manager.Reset restarts it
    When the client resets the BMC
    And 5 seconds pass
    And the client sends, response or not: GET Systems/1
    Then there is no response
    When 5 minutes pass
    Then GET Systems/1 is answered with 200

  @E1 @B2
  Scenario: Manager.Reset ends all sessions
    When the client creates a session
    Then GET Systems/1 is answered with 200
    When the client resets the BMC
    And 5 minutes pass
    Then GET Systems/1 is answered with 401

  @E5
  Scenario: Sensor readings follow the power state
    Then no sensor of the CPUs has a Reading
    When the client resets the system with ResetType On
    And 30 minutes pass
    Then the CPUs read at least 5 degrees more than the intake

Feature: Pushed updates and scheduled jobs
  MultipartHttpPushUri, HttpPushUri and the JobService.

  Background:
    Given a rack of 1 server

  @E12
  Scenario Outline: An image that is pushed to <uri> is installed
    When the client pushes a BIOS image to <uri>
    Then the response is 202 with a task monitor
    When 10 minutes pass
    And the client resets the system with ResetType On
    And 20 minutes pass
    Then GET TASK has "TaskState": "Completed"
    And GET Systems/1 has "BiosVersion": "2.4.0"

    Examples:
      | uri                  |
      | MultipartHttpPushUri |
      | HttpPushUri          |

  @E12
  Scenario Outline: <image> that is pushed ends in TaskState Exception
    When the client pushes <image> to MultipartHttpPushUri
    And 20 minutes pass
    Then GET TASK has "TaskState": "Exception"
    And GET UpdateService/FirmwareInventory/BIOS has "Version": "2.3.1"

    Examples:
      | image                                  |
      | a damaged BIOS image                   |
      | a BIOS image with the Targets of a BMC |

  @E12
  Scenario: A multipart push without UpdateFile or UpdateParameters is refused
    When the client pushes UpdateParameters alone to MultipartHttpPushUri
    Then the response is 400 with "PropertyMissing"
    When the client pushes UpdateFile alone to MultipartHttpPushUri
    Then the response is 400 with "PropertyMissing"
    And GET UpdateService/FirmwareInventory/BIOS has "Version": "2.3.1"

  @E14
  Scenario: A job starts at InitialStartTime, and survives a restart of the lab
    When the client schedules ComputerSystem.Reset On in an hour
    And 59 minutes pass
    Then GET Systems/1 has "PowerState": "Off"
    And GET JOB has "JobState": "Pending"
    When the lab is restarted
    And 6 minutes pass
    Then GET Systems/1 has "PowerState": "On"
    And GET JOB has "JobState": "Completed"

  @E14
  Scenario: A job with RecurrenceInterval runs again until Job.Cancel
    Given the client schedules ComputerSystem.Reset ForceOff every hour, 5 times
    And the client resets the system with ResetType On
    And 50 minutes pass
    And GET Systems/1 has "PowerState": "On"
    When 11 minutes pass
    Then GET Systems/1 has "PowerState": "Off"
    And GET JOB has "JobState": "Pending"
    When the client resets the system with ResetType On
    And 60 minutes pass
    Then GET Systems/1 has "PowerState": "Off"
    When the client sends POST JOB/Actions/Job.Cancel {}
    And the client resets the system with ResetType On
    And 60 minutes pass
    Then GET Systems/1 has "PowerState": "On"
    And GET JOB has "JobState": "Cancelled"

  @E14
  Scenario: A job of an account that was deleted fails
    Given the client creates the account "carol" with the role Administrator
    When the client authenticates as "carol"
    And the client schedules ComputerSystem.Reset On in an hour
    And the client authenticates as the administrator
    And the client sends DELETE ACCOUNT
    And 2 hours pass
    Then GET Systems/1 has "PowerState": "Off"
    And GET JOB has "JobState": "Exception"

  @E14
  Scenario: A job whose payload no BMC supports is refused
    When the client sends POST JobService/Jobs {"Payload": {"HttpOperation": "DELETE", "TargetUri": "/redfish/v1/Systems/1"}}
    Then the response is 400
    And GET JobService/Jobs has "Members@odata.count": 0

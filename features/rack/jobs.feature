Feature: What is pushed to a BMC, and what it does later
  Updates that come with their request, and jobs with a time of their own.

  Background:
    Given a rack of 1 server

  @E12
  Scenario Outline: An update that is pushed goes its way
    When the operator pushes an update of the BIOS <how>
    Then a task goes on, and its monitor says so
    When 10 minutes pass
    And the operator switches the server on
    And 20 minutes pass
    Then the task has gone well
    And the BIOS has version "2.4.0"

    Examples:
      | how                          |
      | with what is to become of it |
      | as it is                     |

  @E12
  Scenario Outline: A pushed update that is not installed
    When the operator pushes <what>
    And 20 minutes pass
    Then the task has failed
    And the inventory of firmware says "2.3.1" of the BIOS

    Examples:
      | what                                                      |
      | a damaged update of the BIOS with what is to become of it |
      | an update of the BIOS that is to be for the BMC           |

  @E12
  Scenario: Half of a push
    When the operator pushes what is to become of an update, and no update
    Then it is refused because of "missing property"
    When the operator pushes an update of the BIOS without what is to become of it
    Then it is refused because of "missing property"
    And the inventory of firmware says "2.3.1" of the BIOS

  @E14
  Scenario: A job has its time, and outlives the lab
    When the operator plans to switch the server on in an hour
    And 59 minutes pass
    Then the server is off
    And the job waits
    When the lab is restarted
    And 6 minutes pass
    Then the server is on
    And the job is done

  @E14
  Scenario: A job that comes again until it is called off
    Given the operator plans to switch the server off every hour, 5 times
    And the operator switches the server on
    And 50 minutes pass
    And the server is on
    When 11 minutes pass
    Then the server is off
    And the job waits
    When the operator switches the server on
    And 60 minutes pass
    Then the server is off
    When the operator calls the job off
    And the operator switches the server on
    And 60 minutes pass
    Then the server is on
    And the job was called off

  @E14
  Scenario: A job of somebody who is no longer
    Given the operator makes an account "carol" with the role Administrator
    When "carol" acts
    And "carol" plans to switch the server on in an hour
    And the operator acts again
    And the operator deletes the account
    And 2 hours pass
    Then the server is off
    And the job has failed

  @E14
  Scenario: A job that no BMC can do
    When the operator tries to plan what no BMC can do
    Then it is refused as 400
    And there is no job

Feature: BMCs that are slow, and things that happen as they are written
  What is slow or goes wrong does so on the lab's clock and by its seed, so that
  it happens again in the same way.

  @F2
  Scenario: A slow BMC
    Given a rack of 2 servers
    And every answer of the BMC takes 20 seconds
    When the operator asks for the system, and waits
    And 19 seconds pass
    Then he waits still
    And the other server's BMC answers as ever
    When 1 second passes
    Then he has his answer
    And the journal tells that it took 20 seconds

  @F2 @F3
  Scenario: A BMC is as slow as one that was measured, and again
    Given a rack of 1 server whose script has the BMCs be as slow as one that was measured
    When the operator asks for the system 40 times, one after the other
    Then half of the answers took less than 300 ms, and hardly one more than 4 seconds
    When the lab is thrown away and made again from the same definition
    And the operator asks for the system 40 times, one after the other
    Then each took as long as it had before

  @F3
  Scenario: A script has its times
    Given a rack of 2 servers whose script takes the first BMC off the network for the third minute
    When 1 minute passes
    And the operator reads the system
    And 1 minute passes
    And the operator tries to read the system
    Then he gets no answer
    And the other server's BMC answers as ever
    When 1 minute passes
    And the operator reads the system
    Then the answer comes as asked
    And the journal tells that the first BMC was gone for a minute

  @F3
  Scenario: What happens by chance happens again
    Given a rack of 1 server whose script has the BMCs be busy by chance, every other time
    When the operator tries to read the system 40 times
    Then the BMC was busy some of the times, and some not
    When the lab is thrown away and made again from the same definition
    And the operator tries to read the system 40 times
    Then the BMC was busy at the same times

Feature: Dell's iDRAC
  Settings of the BIOS wait until there is a job for them; a server boots from
  virtual media by an attribute of the vendor's, or by a profile that sets it;
  what is under way stands in a queue, which an operator can clear.

  @dialect
  Scenario Outline: <model>: a client <does>
    Given a rack of 1 server of the model PowerEdge <model>
    When a client of an iDRAC has done this before: <before>
    And a client of an iDRAC <does>
    Then it is answered <status> with "<message>"
    When a client of an iDRAC <copes>
    Then it is answered <then> with ""

    Examples:
      | model | before                                       | does                                        | status | message                      | copes                                                 | then |
      | R650  | nothing                                      | makes a job of settings                     | 400    | SYS439                       | changes the BIOS                                      | 200  |
      | R650  | changes the BIOS; makes a job of settings    | changes the BIOS again                      | 400    | SYS011                       | clears the queue of jobs                              | 200  |
      | R650  | changes the BIOS at the next reset           | imports a profile that boots the virtual CD | 400    | LC068                        | clears the queue of jobs                              | 200  |
      | R650  | inserts an image                             | ejects with the ETag                        | 412    |                              | ejects                                                | 204  |
      | R650  | nothing                                      | makes an account                            | 405    | SYS402                       | changes an account that is free                       | 200  |
      | R640  | nothing                                      | inserts an image                            | 404    |                              | inserts an image at the manager                       | 204  |
      | R730  | nothing                                      | opens a session                             | 405    | SYS402                       | changes the BIOS                                      | 200  |
      | R730  | nothing                                      | resets the BIOS without a body              | 400    | SYS405                       | resets the BIOS                                       | 204  |
      | R770  | nothing                                      | boots the network once                      | 405    | SYS428                       | boots the network once by the settings, with the ETag | 200  |

  @dialect
  Scenario: Settings are applied by a job, which goes through the reset
    Given a rack of 1 server of the model PowerEdge R650
    When a client of an iDRAC has done this before: changes the BIOS; makes a job of settings; switches on
    And 10 minutes pass
    Then iDRAC's job 1 is "Completed" with "Job completed successfully."

  @dialect
  Scenario: A profile boots the virtual CD
    Given a rack of 1 server of the model PowerEdge R650
    When a client of an iDRAC imports a profile that boots the virtual CD
    And 1 minute passes
    Then iDRAC's job 1 is "Completed" with "Job completed successfully."
    And the iDRAC's server boots "Cd" for "Once"

Feature: What can be made and deleted
  Collections, what they take, and which words are used of all that there is.

  Background:
    Given a rack of 1 server

  @A9
  Scenario: What is made is there, and what is deleted is gone
    When the operator makes an account "carol" with the role Operator
    Then the account is there, as the answer has shown it
    When the operator deletes the account
    Then the account is gone, and cannot be deleted again
    When the operator makes an account "dave" among the members
    Then the account is there, as the answer has shown it

  @A9
  Scenario Outline: What cannot be made, replaced or deleted
    When the operator tries to <what>
    Then it is refused as <status>
    And it is refused because of "<why>"
    And there are the accounts and the roles that there were

    Examples:
      | what                                | status | why               |
      | delete a role that the standard has | 405    | not to be deleted |
      | replace the whole system            | 405    | method            |
      | make one more system                | 405    | method            |
      | make an account without a password  | 400    | missing property  |
      | make an account and break off       | 400    | broken request    |
      | make an account whose name is taken | 400    | exists already    |

  @A26
  Scenario: All that there is names the version of its schema
    Then whatever the service has names a version of its schema, which the service lists

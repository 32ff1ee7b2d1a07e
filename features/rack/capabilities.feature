Feature: What collections tell of themselves
  How many members they take, and of what new ones are made.

  @A22
  Scenario: A collection tells how many members it takes
    Given a rack of 1 server
    When the operator makes accounts until no more fit
    Then it is refused because of "no room"
    And there are as many accounts as their collection has said that it takes

  @A22
  Scenario: A collection tells what a new member is made of
    Given a rack of 1 server with RAID
    When the operator switches the server on
    And 10 minutes pass
    Then volumes of the kinds that their collection tells can be made, and of no other

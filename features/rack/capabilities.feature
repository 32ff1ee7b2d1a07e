Feature: @Redfish.CollectionCapabilities
  A collection states how many members it takes, and what a new one may have.

  @A22
  Scenario: POST beyond MaxMembers is refused with CreateLimitReachedForResource
    Given a rack of 1 server
    When the client creates accounts until one is refused
    Then the response is 400 with "CreateLimitReachedForResource"
    And AccountService/Accounts has as many members as its MaxMembers

  @A22
  Scenario: Volumes can be created of each RAIDType of the capabilities object, and of no other
    Given a rack of 1 server of the profile "raid"
    When the client resets the system with ResetType On
    And 10 minutes pass
    Then each RAIDType of the capabilities object can be created, and no other

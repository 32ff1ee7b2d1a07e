Feature: The protocol
  What every client of a BMC relies on, whatever it wants. Tags name the rows of
  the requirements and the faults of other emulators that shall not come back.

  Background:
    Given a rack of 1 server

  @A1 @B1
  Scenario: A stranger finds the service, and nothing more
    When a stranger asks for the service
    Then it is told where the service's root is
    And the stranger may read the root, and nothing below it

  @A2 @A4
  Scenario: Answers say how to read them
    When the operator reads the system
    Then the answer tells the protocol's version, how long to keep it, its schema and what may be done
    When the operator asks for the headers of the system alone
    Then they are those of the whole answer

  @A3
  Scenario: A client of another version is turned away
    When a client of OData 4.1 reads the system
    Then it is refused as 412
    And it is refused because of "wrong version"

  @A5
  Scenario: What a resource does not take is refused
    When the operator tries to delete the system
    Then it is refused as 405
    And the answer says that only reading and changing is possible
    When the operator tries a method that no standard knows
    Then it is refused as 501

  @A6 @A7 @A8 @fault-1
  Scenario: A bogus version or a bogus property changes nothing
    When the operator sets it for a version of the system that never was
    Then it is refused because of "precondition"
    When the operator sets the property "NotAProp" of the system, which it does not have
    Then it is refused because of "unknown property"
    And the system has neither

  @A7
  Scenario: Of two who change the same version one wins
    When two operators set the asset tag of the version that both have read
    Then one of them succeeds, the other has to read again

  @A8
  Scenario: What can be changed is, what cannot is named
    When the operator sets an asset tag beside a property that the system does not have
    Then the asset tag is set, and the answer names the other

  @A8 @A10 @fault-5
  Scenario: Refusals are told in the words of the standard
    When the operator sets the property "NotAProp" of the system, which it does not have
    Then it is refused as 400
    And it is refused because of "unknown property"
    When the operator asks with the option "$top=-1"
    Then it is refused as 400

  @A10 @C1 @fault-3
  Scenario: A reset of an unknown kind
    When the operator asks for a reset of the kind "Sideways"
    Then it is refused as 400
    And it is refused because of "unknown reset"

  @A11 @fault-6
  Scenario: One page does not shorten the collection for others
    When the operator asks for the first member of the accounts
    Then he is told one, how many there are, and where the next is
    And the whole collection is as it was for everybody

  @A12 @fault-3 @fault-6
  Scenario: Showing members whole does not change them for others
    When the operator has the members shown whole
    Then the whole collection is as it was for everybody

  @A13 @A14 @A16
  Scenario: Questions that are narrow get narrow answers
    When the operator asks for the roles that may configure users
    Then he is told one role
    When the operator asks for the power state alone
    Then he is told the power state and nothing else

  @A15 @fault-8
  Scenario: Options that nobody knows are not ignored
    When the operator asks with the option "$orderby=Name"
    Then it is refused as 501
    And it is refused because of "unsupported option"
    When the operator asks with the option "$skip=-1"
    Then it is refused as 400
    And it is refused because of "option out of range"
    When the operator asks with the option "colour=green"
    Then the answer comes as asked

  @A17
  Scenario: Who wants no more than a confirmation gets no more
    When the operator sets an asset tag and asks for no more than a confirmation
    Then it is confirmed without a word

  @A21
  Scenario: Actions tell what they take
    Then every action of the system tells what it takes

  @A23
  Scenario: Who can unpack is sent less
    When a client that can unpack reads the system
    Then the answer comes packed, and is the same

  @A24 @A25
  Scenario: The service says which words it uses
    Then the service lists the "schemas" that it uses
    And the service lists the "message registries" that it uses

@B-01
Feature: Some

  Scenario: First
    Given nothing

  @B-49 @fault
  Scenario Outline: Second
    Given <what>

    Examples:
      | what |

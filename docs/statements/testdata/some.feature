@B-01
Feature: Some

  # The background is that of all (B-05).
  Background:
    # statement

  # B-02, and statement A7
  Scenario: First
    Given nothing
      """
      # B-03
      @B-04
      """

  # B-06
  @B-49 @fault @sample-2 @I42
  Scenario Outline: Second
    Given <what>

    @B-50
    Examples:
      | what |
      | a    |

  @Q17
  Scenario: Third
    Given nothing
    # B-07
    Then nothing

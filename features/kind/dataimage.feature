Feature: DataImage
  An operator puts an ISO of configuration or tools into a server's drive. A
  system finds it there when it starts: nothing changes under one that runs.

  Background:
    Given a lab with 1 server
    And the operator has provisioned the server
    And the server runs what its first disk holds

  @B-230 @B-03 @B-04
  Scenario: A data image comes and goes when its server starts
    When the operator gives the server the data image "tools.iso"
    Then the data image belongs to the host
    And the server's virtual CD is empty
    When the operator sets online to false
    And the server is off
    And the operator sets online to true
    Then the data image "tools.iso" is told to be attached
    And the server's virtual CD holds "tools.iso"
    And the server runs what its first disk holds
    When the operator gives the server the data image "more.iso"
    And the operator deletes the data image
    And ten minutes pass
    Then the data image is still there
    And the server's virtual CD holds "tools.iso"
    When the operator sets online to false
    And the server is off
    And the operator sets online to true
    Then the data image is gone
    And the server's virtual CD is empty
    And the server runs what its first disk holds

  @B-230
  Scenario: Another data image takes the place of the first
    Given the operator gives the server the data image "tools.iso"
    And the operator sets online to false
    And the server is off
    And the operator sets online to true
    And the data image "tools.iso" is told to be attached
    When the operator gives the server the data image "more.iso"
    And the operator sets online to false
    And the server is off
    And the operator sets online to true
    Then the data image "more.iso" is told to be attached
    And the server's virtual CD holds "more.iso"

  @B-230 @fault
  Scenario: A data image that cannot be had keeps its server off
    Given the operator sets online to false
    And the server is off
    When the operator gives the server a data image that nobody serves
    And the operator sets online to true
    Then the data image tells why it is not attached
    And the server is off
    And the host reports no error
    When the operator gives the server the data image "tools.iso"
    Then the data image "tools.iso" is told to be attached
    And the server runs what its first disk holds

  @B-230 @B-03
  Scenario: A data image goes with its host
    Given the operator gives the server the data image "tools.iso"
    And the operator sets online to false
    And the server is off
    And the operator sets online to true
    And the data image "tools.iso" is told to be attached
    When the operator deletes the host
    Then the host is gone
    And the data image is gone

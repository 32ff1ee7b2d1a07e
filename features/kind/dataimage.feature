Feature: DataImage
  An operator attaches an ISO to a server as virtual media. It is attached and
  detached while the server is off, never under a running system.

  Background:
    Given a lab with 1 server
    And the operator has provisioned the server
    And the server runs from its first disk

  @B-230 @B-03 @B-04
  Scenario: A DataImage is attached and detached at a reboot
    When the operator sets the DataImage "tools.iso"
    And ten minutes pass
    Then the DataImage is owned by the host
    And the server's virtual CD is empty
    When the operator sets online to false
    And the server is off
    And the operator sets online to true
    Then the DataImage "tools.iso" is attached
    And the server's virtual CD holds "tools.iso"
    And the server runs from its first disk
    When the operator sets the DataImage "more.iso"
    And the operator deletes the DataImage
    And ten minutes pass
    Then the DataImage is still there
    And the server's virtual CD holds "tools.iso"
    When the operator sets online to false
    And the server is off
    And the operator sets online to true
    Then the DataImage is deleted
    And the server's virtual CD is empty
    And the server runs from its first disk

  @B-230
  Scenario: A changed DataImage replaces the attached one
    Given the operator sets the DataImage "tools.iso"
    And the operator sets online to false
    And the server is off
    And the operator sets online to true
    And the DataImage "tools.iso" is attached
    When the operator sets the DataImage "more.iso"
    And the operator sets online to false
    And the server is off
    And the operator sets online to true
    Then the DataImage "more.iso" is attached
    And the server's virtual CD holds "more.iso"

  @B-230 @fault
  Scenario: A DataImage that cannot be attached keeps the server off
    Given the operator sets online to false
    And the server is off
    When the operator sets a DataImage that does not exist
    And the operator sets online to true
    Then the DataImage shows an error
    And the server stays off
    And the host reports no error
    When the operator sets the DataImage "tools.iso"
    Then the DataImage "tools.iso" is attached
    And the server runs from its first disk

  @B-230 @B-03
  Scenario: A DataImage is deleted with its host
    Given the operator sets the DataImage "tools.iso"
    And the operator sets online to false
    And the server is off
    And the operator sets online to true
    And the DataImage "tools.iso" is attached
    When the operator deletes the host
    Then the host is deleted
    And the DataImage is deleted

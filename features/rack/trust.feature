Feature: Whom a server trusts, and why it can be trusted
  Secure boot, measurements and the TPM.

  Background:
    Given a rack of 1 server

  @B8
  Scenario: Secure boot counts from the next start on
    When the operator switches the server on
    And 10 minutes pass
    And the operator turns secure boot on
    Then secure boot is to be on
    And the server has booted with secure boot off
    When the operator switches the server off and on again
    And 10 minutes pass
    Then the server has booted with secure boot on

  @B8
  Scenario: Without the key of its platform a server boots anything
    Given the operator turns secure boot on
    And nobody may put keys in
    When the operator deletes the key of the platform
    Then anybody may put keys in
    When the operator switches the server on
    And 10 minutes pass
    Then secure boot is to be on
    And the server has booted with secure boot off
    When the operator brings back the keys that the server came with
    Then nobody may put keys in
    When the operator switches the server off and on again
    And 10 minutes pass
    Then the server has booted with secure boot on

  @B8
  Scenario: One more certificate that may sign what boots
    When the operator lets one more certificate sign what boots
    Then the certificate is among those that may sign what boots
    When the operator tries to let it sign what boots again
    Then it is refused as 409
    When the operator takes the certificate back
    Then the certificate is not among those that may sign what boots
    When the operator tries to let something sign what boots that is no certificate
    Then it is refused as 400

  @B9
  Scenario: A verifier believes what a server says of itself
    When a verifier has the server's measurements signed
    Then they are what the server shows, signed by its root of trust for this verifier
    When a verifier has the server's measurements signed again
    Then they are what they were
    When a verifier asks for a measurement that there is not
    Then it is refused as 400

  @B9
  Scenario: What is changed is measured
    Given a verifier has the server's measurements signed
    When the operator lets one more certificate sign what boots
    And a verifier has the server's measurements signed again
    Then one of them is another

  @B9
  Scenario: A TPM that the BIOS hides
    Given the operator switches the server on
    And 10 minutes pass
    And the server's TPM is on
    When the operator turns the TPM off
    Then the server's TPM is on
    When the operator switches the server off and on again
    And 10 minutes pass
    Then the server's TPM is off

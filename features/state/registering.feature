Feature: registering
  The controllers see whether they can work with a BMC. What keeps them from it
  is told, and they try again until it is mended.

  Background:
    Given a lab with 1 server

  @B-22 @B-40 @B-43 @B-44 @B-114 @B-190
  Scenario: A BMC that can be worked with
    When the operator registers the server
    Then the host becomes "inspecting"
    And it passed through "registering, inspecting"
    And the host's status has "hardwareProfile" as "unknown"
    And the host's status has "goodCredentials.credentials.namespace" as "default"
    And the events tell of "Registered, BMCAccessValidated, ProfileSet"
    And the host reports no error

  @B-45 @B-114 @B-82 @fault
  Scenario: A wrong password is told, and mended
    When the operator registers the server with a wrong password
    Then the host reports "registration error"
    And the host stays "registering"
    And the condition "Manageable" is False because of "RegistrationFailed"
    And the message of the error holds no password
    And the events tell of "RegistrationError"
    When the operator corrects the password
    Then the host becomes "available"
    And the host reports no error

  @B-111
  Scenario: A secret that comes late
    When the operator registers the server without its secret
    Then the host reports "registration error"
    And the host's error says "BMC CredentialsName secret doesn't exist The BMC secret default/"
    And the events tell of "BMCCredentialError"
    When the operator creates the secret
    Then the host becomes "available"
    And the host reports no error

  @B-110
  Scenario: Blanks around a password are not part of it
    When the operator registers the server with a wrong password
    Then the host reports "registration error"
    When the operator changes the password of the secret to "   "
    Then the host's error says "Validation error with BMC credentials: Missing BMC connection details 'password' in credentials"
    When the operator corrects the password, with blanks around it
    Then the host becomes "available"

  @B-112
  Scenario Outline: BMC details that are not whole: <what>
    When the operator registers the server with:
      """
      spec: {bmc: <bmc>}
      """
    Then the host reports "registration error"
    And the host's error says "<message>"
    And the host stays "registering"

    Examples:
      | what       | bmc                   | message                                                          |
      | no secret  | {credentialsName: ""} | No BMC CredentialsName defined The BMC secret reference is empty |
      | no address | {address: ""}         | Empty BMC address Missing BMC connection detail 'Address'        |

  @B-47 @B-190
  Scenario: A hardware profile that nobody knows
    When the operator registers the server with:
      """
      spec: {hardwareProfile: toaster}
      """
    Then the host reports "registration error"
    And the host's error says "no hardware profile named"
    When the operator edits the host:
      """
      spec: {hardwareProfile: dell}
      """
    Then the host becomes "available"
    And the host's status has "hardwareProfile" as "dell"

  @B-47 @B-134 @fault
  Scenario: A certificate that nobody can verify
    Given the BMC shows a certificate that it has signed itself
    When the operator registers the server
    Then the host reports "registration error"
    And the host's error says "certificate"
    When the operator edits the host:
      """
      spec: {bmc: {disableCertificateVerification: true}}
      """
    Then the host becomes "available"
    And the host reports no error

  @B-45 @B-47 @fault
  Scenario: A BMC that is silent, and then is not
    Given the BMC is silent
    When the operator registers the server
    Then the host reports "registration error"
    And the host stays "registering"
    When the BMC is as it was
    Then the host becomes "available"
    And the host reports no error

  @B-45 @fault
  Scenario Outline: A BMC that <trouble>
    Given the BMC <trouble>
    When the operator registers the server
    Then the host becomes "available"
    And the host reports no error

    Examples:
      | trouble              |
      | is busy for a while  |
      | breaks off an answer |

  @B-68 @B-69 @B-71
  Scenario: A host that never could be registered goes at once
    Given the operator registers the server with a wrong password
    And the host reports "registration error"
    When the operator deletes the host
    Then the host is gone
    And it never was "powering off before delete"

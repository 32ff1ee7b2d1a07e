Feature: registering
  The controllers check the access to the BMC. They report errors and retry.

  Background:
    Given a lab with 1 server

  @B-22 @B-40 @B-43 @B-44 @B-114 @B-190
  Scenario: A BMC with valid credentials is registered
    When the operator registers the server
    Then the host becomes "inspecting"
    And it passed through "registering, inspecting"
    And the host's status field "hardwareProfile" is "unknown"
    And the host's status field "goodCredentials.credentials.namespace" is "default"
    And the events include "Registered, BMCAccessValidated, ProfileSet"
    And the host reports no error

  @B-45 @B-114 @B-82 @fault
  Scenario: A wrong password is reported and corrected
    When the operator registers the server with a wrong password
    Then the host reports "registration error"
    And the host stays "registering"
    And the condition "Manageable" is False with reason "RegistrationFailed"
    And the error message contains no password
    And the host has reported the error message "correct username and password in the Secret default/"
    And the events include "RegistrationError"
    When the operator corrects the password
    Then the host becomes "available"
    And the host reports no error

  @B-80 @B-111
  Scenario: A Secret that is created later
    When the operator registers the server without its Secret
    Then the host reports "registration error"
    And the host has reported the error message "BMC CredentialsName secret doesn't exist The BMC secret default/"
    And the host's operational status is "discovered"
    And the events include "BMCCredentialError"
    When the operator creates the Secret
    Then the host becomes "available"
    And the host reports no error

  @B-80 @B-110
  Scenario: Whitespace around a password is ignored
    When the operator registers the server with a wrong password
    Then the host reports "registration error"
    And the host's operational status is "error"
    When the operator changes the password of the Secret to "   "
    Then the host has reported the error message "Validation error with BMC credentials: Missing BMC connection details 'password' in credentials"
    And the host's operational status is "discovered"
    When the operator corrects the password, with whitespace around it
    Then the host becomes "available"

  @B-80 @B-112
  Scenario: A host without the name of its Secret
    When the operator registers the server with:
      """
      spec: {bmc: {credentialsName: ""}}
      """
    Then the host reports "registration error"
    And the host has reported the error message "No BMC CredentialsName defined The BMC secret reference is empty"
    And the host's operational status is "discovered"
    And the host stays "registering"
    When the operator edits the host's BMC details
    Then the host becomes "available"
    And the host reports no error

  @B-80 @B-110 @B-114
  Scenario: A key of the Secret is emptied while the host is in use
    Given the operator has provisioned the server
    When the operator changes the password of the Secret to ""
    Then the host reports "registration error"
    And the host has reported the error message "Validation error with BMC credentials: Missing BMC connection details 'password' in credentials"
    And the host's operational status is "discovered"
    And the host stays "provisioned"
    When the operator corrects the password
    Then the host reports no error

  @B-47 @B-190
  Scenario: An unknown hardware profile is reported
    When the operator registers the server with:
      """
      spec: {hardwareProfile: toaster}
      """
    Then the host reports "registration error"
    And the host has reported the error message "no hardware profile named"
    When the operator edits the host:
      """
      spec: {hardwareProfile: dell}
      """
    Then the host becomes "available"
    And the host's status field "hardwareProfile" is "dell"

  @B-47 @B-134 @fault
  Scenario: A self-signed certificate is refused unless verification is disabled
    Given the BMC presents a self-signed certificate
    When the operator registers the server
    Then the host reports "registration error"
    And the host has reported the error message "spec.bmc.disableCertificateVerification"
    When the operator edits the host:
      """
      spec: {bmc: {disableCertificateVerification: true}}
      """
    Then the host becomes "available"
    And the host reports no error

  @B-45 @B-47 @fault
  Scenario: A BMC that is offline is registered when it is back
    Given the BMC is offline
    When the operator registers the server
    Then the host reports "registration error"
    And the host stays "registering"
    When the BMC works again
    Then the host becomes "available"
    And the host reports no error

  @B-45 @fault
  Scenario Outline: The BMC <trouble>
    Given the BMC <trouble>
    When the operator registers the server
    Then the host becomes "available"
    And the host reports no error

    Examples:
      | trouble                               |
      | answers with 503 for a while          |
      | closes a connection within a response |

  @B-68 @B-69 @B-71
  Scenario: A host that was never registered is deleted at once
    Given the operator registers the server with a wrong password
    And the host reports "registration error"
    When the operator deletes the host
    Then the host is deleted
    And it was never "powering off before delete"

  # One of two hosts with one server would clean and write the other's disks.
  Scenario Outline: A second host of a server waits while the first one has it
    Given a second host has the server by "<scheme>"
    When the operator registers the server by "redfish-virtualmedia" without its MAC address
    Then the host reports "registration error"
    And the host's error message contains "<reason>"
    And the host's error message contains "is that of BareMetalHost default/"
    And the host's error message contains "-twin"
    And the host stays "registering"
    And the server has booted "agent from Pxe 1"

    Examples: by its address, and by its UUID
      | scheme        | reason               |
      | idrac-redfish | BMC address          |
      | ipmi          | system with the UUID |

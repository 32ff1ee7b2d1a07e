Feature: SecureBoot, ComponentIntegrity and TPM

  Background:
    Given a rack of 1 server

  @B8
  Scenario: SecureBootEnable takes effect at the next boot
    When the client resets the system with ResetType On
    And 10 minutes pass
    And the client sends PATCH Systems/1/SecureBoot {"SecureBootEnable": true}
    Then GET Systems/1/SecureBoot has "SecureBootEnable": true
    And GET Systems/1/SecureBoot has "SecureBootCurrentBoot": "Disabled"
    When the client resets the system with ResetType ForceRestart
    And 10 minutes pass
    Then GET Systems/1/SecureBoot has "SecureBootCurrentBoot": "Enabled"

  @B8
  Scenario: Without a platform key secure boot is not enforced
    Given the client sends PATCH Systems/1/SecureBoot {"SecureBootEnable": true}
    And GET Systems/1/SecureBoot has "SecureBootMode": "UserMode"
    When the client sends POST Systems/1/SecureBoot/Actions/SecureBoot.ResetKeys {"ResetKeysType": "DeletePK"}
    Then GET Systems/1/SecureBoot has "SecureBootMode": "SetupMode"
    When the client resets the system with ResetType On
    And 10 minutes pass
    Then GET Systems/1/SecureBoot has "SecureBootEnable": true
    And GET Systems/1/SecureBoot has "SecureBootCurrentBoot": "Disabled"
    When the client sends POST Systems/1/SecureBoot/Actions/SecureBoot.ResetKeys {"ResetKeysType": "ResetAllKeysToDefault"}
    Then GET Systems/1/SecureBoot has "SecureBootMode": "UserMode"
    When the client resets the system with ResetType ForceRestart
    And 10 minutes pass
    Then GET Systems/1/SecureBoot has "SecureBootCurrentBoot": "Enabled"

  @B8
  Scenario: Certificates are added to and removed from the db database
    When the client adds the certificate of the KEK database to db
    Then db has the certificate
    When the client sends POST Systems/1/SecureBoot/SecureBootDatabases/db/Certificates {"CertificateString": "KEK-CERTIFICATE", "CertificateType": "PEM"}
    Then the response is 409
    When the client sends DELETE CERTIFICATE-URI
    Then db does not have the certificate
    When the client sends POST Systems/1/SecureBoot/SecureBootDatabases/db/Certificates {"CertificateString": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "CertificateType": "PEM"}
    Then the response is 400

  @B9
  Scenario: SPDMGetSignedMeasurements signs what MeasurementSet shows
    When the client gets signed measurements with a nonce
    Then they are the measurements of the MeasurementSet, signed for this nonce
    When the client gets signed measurements with another nonce
    Then the measurements are the same as before
    When the client sends POST ComponentIntegrity/RoT/Actions/ComponentIntegrity.SPDMGetSignedMeasurements {"MeasurementIndices": [77]}
    Then the response is 400

  @B9
  Scenario: A change of the secure boot databases changes one measurement
    Given the client gets signed measurements with a nonce
    When the client adds the certificate of the KEK database to db
    And the client gets signed measurements with another nonce
    Then one measurement differs from before

  @B9
  Scenario: The BIOS attribute TpmSecurity disables the TPM at the next boot
    Given the client resets the system with ResetType On
    And 10 minutes pass
    And the TPM is Enabled
    When the client sends PATCH Systems/1/Bios/Settings {"Attributes": {"TpmSecurity": "Disabled"}}
    Then the TPM is Enabled
    When the client resets the system with ResetType ForceRestart
    And 10 minutes pass
    Then the TPM is Disabled

Feature: CertificateService
  The certificate that HTTPS presents, and the certificates of others that the BMC
  trusts (DSP2046, CertificateService).

  Background:
    Given a rack of 2 servers

  @B7
  Scenario: ReplaceCertificate changes the certificate of new connections, and drops none
    Given a connection to the BMC is open
    When the client gets a CSR for HTTPS by GenerateCSR, and has it signed
    And the client replaces the BMC's certificate by the signed one
    Then new connections to the BMC get the signed certificate
    And the open connection is still answered
    And the second BMC has the certificate that it had
    When the lab is restarted
    Then new connections to the BMC get the signed certificate
    And the second BMC has the certificate that it had

  @B7
  Scenario: A certificate of another key does not replace that of HTTPS
    When the client gets a CSR for HTTPS by GenerateCSR, and has it signed
    And the client sends to the second BMC: POST CertificateService/Actions/CertificateService.ReplaceCertificate {"CertificateString": "SIGNED-CERTIFICATE", "CertificateType": "PEM", "CertificateUri": {"@odata.id": "/redfish/v1/Managers/1/NetworkProtocol/HTTPS/Certificates/1"}}
    Then the response is 400 with "ActionParameterValueError"
    And the second BMC has the certificate that it had

  @B7
  Scenario: CertificateLocations links to the certificate of the service
    Then CertificateLocations links to a certificate without its private key

  @B7
  Scenario Outline: Certificates are added to <collection>, replaced and deleted
    When the client sends POST <collection> {"CertificateString": "AUTHORITY-CERTIFICATE", "CertificateType": "PEM"}
    Then the response is 201
    And CertificateLocations links to CERTIFICATE-URI
    When the client sends POST CertificateService/Actions/CertificateService.ReplaceCertificate {"CertificateString": "AUTHORITY-CERTIFICATE", "CertificateType": "PEM", "CertificateUri": {"@odata.id": "CERTIFICATE-URI"}}
    Then the response is 204
    And GET CERTIFICATE-URI is answered with 404
    And GET <collection> has "Members@odata.count": 1
    When the client sends DELETE LOCATION
    Then GET LOCATION is answered with 404
    And GET <collection> has "Members@odata.count": 0

    Examples:
      | collection                             |
      | AccountService/Accounts/1/Certificates |
      | Systems/1/VirtualMedia/Cd/Certificates |
      | Systems/1/Boot/Certificates            |

  @B7 @D5
  Scenario: InsertMedia trusts the certificates of its slot
    When the client sends PATCH Systems/1/VirtualMedia/Cd {"VerifyCertificate": true}
    And the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "SECURE-IMAGE"}
    Then the response is 400 with a message
    And GET Systems/1/VirtualMedia/Cd has "Inserted": false
    When the client sends POST Systems/1/VirtualMedia/Cd/Certificates {"CertificateString": "IMAGE-SERVER-CERTIFICATE", "CertificateType": "PEM"}
    And the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "SECURE-IMAGE"}
    Then the server's virtual CD has the bytes of the image

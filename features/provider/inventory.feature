Feature: Servers and accounts of the provider
  A BareMetalHostInventory describes a server, and a BareMetalHostCredential the account of
  its BMC. The provider makes the BareMetalHost from both, and shows its status in the
  inventory.

  Background:
    Given a lab with host OS configuration

  Scenario: A server of the inventory becomes available
    When the operator adds the server to the inventory
    Then the host becomes "available"
    And the inventory shows the host in "provisioningState, poweredOn, operationalStatus, hardwareDetails"
    And the password of the credential is in a Secret alone

  @H40
  Scenario: The inventory overwrites an edit of the BareMetalHost
    Given the operator has added the server to the inventory
    When the operator edits the host:
      """
      spec:
        online: false
        bootMode: legacy
        image: {url: "http://192.0.2.1/image.raw", checksum: "00000000000000000000000000000000", checksumType: md5}
      """
    Then the host follows its inventory
    And the host becomes "available"
    And it was never "provisioned"

  Scenario: A changed password reaches the BMC
    Given the operator has added the server to the inventory
    When the BMC's password becomes "second-password"
    And the operator changes the password of the credential to "second-password"
    And ten minutes pass
    Then the host reports no error
    And the password of the credential is in a Secret alone

  Scenario: The BMC refuses the password of a credential
    When the operator adds the server to the inventory with a wrong password
    Then the host reports "registration error"
    And the inventory reports 'BareMetalHostCredential "account"'
    When the operator corrects the password of the credential
    Then the host becomes "available"
    And the inventory reports no error

  Scenario: A credential that is missing stops its servers
    When the operator adds the server to the inventory without its credential
    Then the inventory reports 'spec.bmc.bmhCredentialsName: there is no BareMetalHostCredential "account"'
    And the server has no BareMetalHost
    When the operator creates the credential
    Then the host becomes "available"
    And the inventory reports no error

  Scenario: Objects are deleted in order
    Given the operator has added the server to the inventory
    When the operator deletes the credential
    Then the credential still exists
    When the operator deletes the server from the inventory
    Then the host is deleted
    And the inventory and the credential are deleted

Feature: The specification's examples
  The complete examples of a BareMetalHost, a HostFirmwareSettings and a FirmwareSchema,
  less what only a server writes, with the name, the address and the MAC address of a
  server of the rack, and its credentials.

  @B-29 @B-64 @B-190 @B-260
  Scenario: The example ends externally provisioned, with its hardware
    Given a lab with 1 server
    When the operator registers the server with:
      """
      spec:
        consumerRef:
          apiVersion: machine.openshift.io/v1beta1
          kind: Machine
          name: bmo-controlplane-0
          namespace: bmo-project
        externallyProvisioned: true
        hardwareProfile: default
        image:
          checksum: http://172.16.1.100/images/myOSv1/myOS.qcow2.md5sum
          url: http://172.16.1.100/images/myOSv1/myOS.qcow2
        online: true
        raid:
          hardwareRAIDVolumes:
            - level: "1"
              sizeGibibytes: 200
              rotational: true
        firmware: {virtualizationEnabled: true}
        userData: {name: bmo-controlplane-user-data, namespace: bmo-project}
        networkData: {name: bmo-controlplane-network-data, namespace: bmo-project}
        metaData: {name: bmo-controlplane-meta-data, namespace: bmo-project}
      """
    Then the host becomes "externally provisioned"
    And the host shows the hardware that its BMC shows
    And the host's operational status is "OK"
    And the host reports no error
    And the server is on
    And it was never "provisioning"

  @B-58 @B-131 @B-174 @B-190
  Scenario: The example is provisioned when it is not externally provisioned
    Given a lab with 1 server of the model "dell-r650"
    And the operator runs kubectl apply -f FILE:
      """
      apiVersion: v1
      kind: Namespace
      metadata: {name: bmo-project}
      ---
      apiVersion: v1
      kind: Secret
      metadata: {name: bmo-controlplane-user-data, namespace: bmo-project}
      stringData: {userData: '#cloud-config'}
      ---
      apiVersion: v1
      kind: Secret
      metadata: {name: bmo-controlplane-network-data, namespace: bmo-project}
      stringData: {networkData: 'links: []'}
      ---
      apiVersion: v1
      kind: Secret
      metadata: {name: bmo-controlplane-meta-data, namespace: bmo-project}
      stringData: {metaData: 'name: bmo-controlplane-0'}
      """
    When the operator registers the server at the address "idrac://HOST:PORT" with:
      """
      spec:
        consumerRef:
          apiVersion: machine.openshift.io/v1beta1
          kind: Machine
          name: bmo-controlplane-0
          namespace: bmo-project
        externallyProvisioned: false
        hardwareProfile: default
        online: true
        raid:
          hardwareRAIDVolumes:
            - level: "1"
              sizeGibibytes: 200
              rotational: true
        firmware: {virtualizationEnabled: true}
        userData: {name: bmo-controlplane-user-data, namespace: bmo-project}
        networkData: {name: bmo-controlplane-network-data, namespace: bmo-project}
        metaData: {name: bmo-controlplane-meta-data, namespace: bmo-project}
      """
    Then the host becomes "available"
    And the server has the volumes "1"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from volume 1
    And the host reports no error

  @B-113 @B-114
  Scenario: The example of a Secret has the credentials of the BMC
    Given a lab with 1 server
    And the BMC's password becomes "password"
    And the operator runs kubectl apply -f FILE:
      """
      apiVersion: v1
      kind: Secret
      metadata: {name: bmo-controlplane-0-bmc-secret, namespace: NAMESPACE}
      type: Opaque
      data:
        username: YWRtaW4=
        password: cGFzc3dvcmQ=
      """
    When the operator registers the server with:
      """
      spec: {bmc: {credentialsName: bmo-controlplane-0-bmc-secret}}
      """
    Then the host becomes "available"
    And the host's status field "goodCredentials.credentials.name" is "bmo-controlplane-0-bmc-secret"
    And the host reports no error
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk

  @B-170
  Scenario: The example of empty volumes clears the hardware RAID, which stays without the field
    Given a lab with 1 server of the model "raid"
    And the operator has registered the server
    When the operator edits the host:
      """
      spec: {raid: {hardwareRAIDVolumes: [{level: "1", sizeGibibytes: 200, rotational: true}]}}
      """
    Then the host is prepared with the RAID
    And the server has the volumes "1"
    When the operator edits the host:
      """
      spec: {raid: null}
      """
    And ten minutes pass
    Then the host becomes "available"
    And the server has the volumes "1"
    When the operator edits the host:
      """
      spec: {raid: {hardwareRAIDVolumes: []}}
      """
    Then the host is prepared with the RAID
    And the server has no volumes
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server runs from its first disk
    And the host reports no error

  @B-04 @B-200 @B-201 @B-203 @B-204
  Scenario: The example of a HostFirmwareSettings is valid, and shows the settings of the BIOS
    Given a lab with 1 server of the model "KVM (8.2.0)" by "Red Hat" with the BIOS attributes:
      """
      attributes:
      - {name: BootMode, type: Enumeration, default: Uefi, values: [{name: Bios}, {name: Uefi}], resetRequired: true}
      - {name: EmbeddedSata, type: Enumeration, default: Raid, values: [{name: Ata}, {name: Ahci}, {name: Raid}, {name: "Off"}], resetRequired: true}
      - {name: L2Cache, type: String, default: 10x256 KB, minLength: 0, maxLength: 16, resetRequired: true}
      - {name: NicBoot1, type: Enumeration, default: NetworkBoot, values: [{name: NetworkBoot}, {name: Disabled}], resetRequired: true}
      - {name: NumCores, type: Integer, default: 10, lower: 10, upper: 20, readOnly: true}
      - {name: ProcTurboMode, type: Enumeration, default: Enabled, values: [{name: Enabled}, {name: Disabled}], resetRequired: true}
      - {name: QuietBoot, type: Boolean, default: true, resetRequired: true}
      - {name: SecureBootStatus, type: Enumeration, default: Enabled, values: [{name: Enabled}, {name: Disabled}], readOnly: true}
      - {name: SerialNumber, type: String, default: QPX12345, minLength: 0, maxLength: 16, unique: true}
      """
    When the operator runs kubectl apply -f FILE:
      """
      apiVersion: metal3.io/v1alpha1
      kind: HostFirmwareSettings
      metadata: {name: SERVER, namespace: NAMESPACE}
      spec: {settings: {}}
      """
    And the operator registers the server
    Then the host becomes "available"
    And the HostFirmwareSettings contains:
      """
      apiVersion: metal3.io/v1alpha1
      kind: HostFirmwareSettings
      metadata:
        generation: 1
        name: SERVER
        namespace: NAMESPACE
        ownerReferences:
        - {apiVersion: metal3.io/v1alpha1, blockOwnerDeletion: true, controller: true, kind: BareMetalHost, name: SERVER}
      spec: {settings: {}}
      status:
        conditions:
        - {message: "", observedGeneration: 1, reason: Success, status: "False", type: ChangeDetected}
        - {message: "", observedGeneration: 1, reason: Success, status: "True", type: Valid}
        schema: {namespace: NAMESPACE}
        settings:
          BootMode: Uefi
          EmbeddedSata: Raid
          L2Cache: 10x256 KB
          NicBoot1: NetworkBoot
          NumCores: "10"
          ProcTurboMode: Enabled
          QuietBoot: "true"
          SecureBootStatus: Enabled
          SerialNumber: QPX12345
      """
    When the operator sets the firmware settings "EmbeddedSata=Ahci, ProcTurboMode=Disabled, QuietBoot=false"
    Then the firmware settings are applied
    And the server's BIOS has "EmbeddedSata=Ahci, ProcTurboMode=Disabled, QuietBoot=false, NumCores=10"
    When the operator sets the firmware settings "NumCores=12"
    Then the firmware settings are invalid, because "Setting NumCores is invalid, it is ReadOnly"
    When the operator sets the firmware settings "SerialNumber=QPX1"
    Then the firmware settings are invalid, because "Setting SerialNumber is invalid, it is Unique"

  @B-04 @B-202
  Scenario: The example of a FirmwareSchema is what the BMC's attribute registry gives
    Given a lab with 2 servers of the model "KVM (8.2.0)" by "Red Hat" with the BIOS attributes:
      """
      attributes:
      - {name: BootMode, type: Enumeration, default: Uefi, values: [{name: Bios}, {name: Uefi}], resetRequired: true}
      - {name: EmbeddedSata, type: Enumeration, default: Raid, values: [{name: Ata}, {name: Ahci}, {name: Raid}, {name: "Off"}], resetRequired: true}
      - {name: L2Cache, type: String, default: 10x256 KB, minLength: 0, maxLength: 16, resetRequired: true}
      - {name: NicBoot1, type: Enumeration, default: NetworkBoot, values: [{name: NetworkBoot}, {name: Disabled}], resetRequired: true}
      - {name: NumCores, type: Integer, default: 10, lower: 10, upper: 20, readOnly: true}
      - {name: ProcTurboMode, type: Enumeration, default: Enabled, values: [{name: Enabled}, {name: Disabled}], resetRequired: true}
      - {name: QuietBoot, type: Boolean, default: true, resetRequired: true}
      - {name: SecureBootStatus, type: Enumeration, default: Enabled, values: [{name: Enabled}, {name: Disabled}], readOnly: true}
      - {name: SerialNumber, type: String, default: QPX12345, minLength: 0, maxLength: 16, unique: true}
      """
    When the operator has registered all servers
    Then servers 1 and 2 share a FirmwareSchema
    And its FirmwareSchema contains:
      """
      apiVersion: metal3.io/v1alpha1
      kind: FirmwareSchema
      metadata:
        generation: 1
        namespace: NAMESPACE
        ownerReferences:
        - {apiVersion: metal3.io/v1alpha1, kind: HostFirmwareSettings}
        - {apiVersion: metal3.io/v1alpha1, kind: HostFirmwareSettings}
      spec:
        hardwareModel: KVM (8.2.0)
        hardwareVendor: Red Hat
        schema:
          BootMode: {allowable_values: [Bios, Uefi], attribute_type: Enumeration, read_only: false}
          EmbeddedSata: {allowable_values: [Ata, Ahci, Raid, "Off"], attribute_type: Enumeration, read_only: false}
          L2Cache: {attribute_type: String, max_length: 16, min_length: 0, read_only: false, unique: false}
          NicBoot1: {allowable_values: [NetworkBoot, Disabled], attribute_type: Enumeration, read_only: false}
          NumCores: {attribute_type: Integer, lower_bound: 10, read_only: true, unique: false, upper_bound: 20}
          ProcTurboMode: {allowable_values: [Enabled, Disabled], attribute_type: Enumeration, read_only: false}
          QuietBoot: {attribute_type: Boolean, read_only: false, unique: false}
          SecureBootStatus: {allowable_values: [Enabled, Disabled], attribute_type: Enumeration, read_only: true}
          SerialNumber: {attribute_type: String, max_length: 16, min_length: 0, read_only: false, unique: true}
      """
    When the operator deletes the host of server 1
    And the operator deletes the host of server 2
    Then the FirmwareSchema of server 2 is deleted
    When the operator runs kubectl apply -f FILE:
      """
      apiVersion: metal3.io/v1alpha1
      kind: FirmwareSchema
      metadata: {name: schema-dc98d7c8, namespace: NAMESPACE}
      spec:
        hardwareModel: KVM (8.2.0)
        hardwareVendor: Red Hat
        schema:
          BootMode: {allowable_values: [Bios, Uefi], attribute_type: Enumeration, read_only: false}
          EmbeddedSata: {allowable_values: [Ata, Ahci, Raid, "Off"], attribute_type: Enumeration, read_only: false}
          L2Cache: {attribute_type: String, max_length: 16, min_length: 0, read_only: false, unique: false}
          NicBoot1: {allowable_values: [NetworkBoot, Disabled], attribute_type: Enumeration, read_only: false}
          NumCores: {attribute_type: Integer, lower_bound: 10, read_only: true, unique: false, upper_bound: 20}
          ProcTurboMode: {allowable_values: [Enabled, Disabled], attribute_type: Enumeration, read_only: false}
          QuietBoot: {attribute_type: Boolean, read_only: false, unique: false}
          SecureBootStatus: {allowable_values: [Enabled, Disabled], attribute_type: Enumeration, read_only: true}
          SerialNumber: {attribute_type: String, max_length: 16, min_length: 0, read_only: false, unique: true}
      """
    And the operator runs kubectl get firmwareschema schema-dc98d7c8 -n NAMESPACE -o jsonpath={.spec.schema.NumCores}
    Then kubectl prints {"attribute_type":"Integer","lower_bound":10,"read_only":true,"unique":false,"upper_bound":20}

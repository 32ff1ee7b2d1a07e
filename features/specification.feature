Feature: The specification's example
  The complete example of a BareMetalHost, less what only a server writes, with the
  address and the MAC address of a server of the rack, and its credentials.

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

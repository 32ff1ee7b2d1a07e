Feature: Secure boot
  spec.bootMode UEFISecureBoot is for the deployed image. The agent, which nobody has
  signed, boots without it.

  @B-75 @B-140
  Scenario Outline: Secure boot is enabled for the image and disabled afterwards: <address>
    Given a server of the model "<model>" in a lab of all models
    And the server's agent will not report
    When the operator registers the server at the address "<address>" with:
      """
      spec: {bootMode: UEFISecureBoot}
      """
    Then the server's agent runs without secure boot
    When the server's agent will report again
    Then the host becomes "available"
    And the host's status field "provisioning.bootMode" is "UEFISecureBoot"
    When the operator sets the image
    Then the host becomes "provisioned"
    And the server runs its disk with secure boot
    When the operator annotates the host with "reboot.metal3.io"
    Then the annotation "reboot.metal3.io" is removed
    And the server runs its disk with secure boot
    When the server's agent will not report
    And the operator removes the image
    Then the host becomes "deprovisioning"
    And the server's agent runs without secure boot
    When the server's agent will report again
    Then the host becomes "available"
    And the server's next boot is without secure boot
    And the host reports no error

    Examples:
      | model             | address                                 |
      | generic           | redfish-virtualmedia://HOST:PORT/SYSTEM |
      | dell-r650         | idrac-virtualmedia://HOST:PORT/SYSTEM   |
      | hpe-dl360-gen10   | ilo5://HOST:PORT                        |
      | fujitsu-rx2540-m5 | irmc://HOST:PORT                        |
      | supermicro-621c   | redfish://HOST:PORT/SYSTEM              |

  @B-131 @B-140 @B-270
  Scenario Outline: Drivers without secure boot refuse it: <address>
    Given a lab with 1 server
    When the operator tries to create a BareMetalHost with 'spec: {bmc: {address: "<address>"}, bootMode: UEFISecureBoot}'
    Then it is refused with: BMC driver <driver> does not support secure boot

    Examples:
      | address           | driver  |
      | ipmi://192.0.2.1  | ipmi    |
      | ibmc://192.0.2.1  | ibmc    |
      | idrac://192.0.2.1 | idrac   |
      | libvirt://a       | libvirt |

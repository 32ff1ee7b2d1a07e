Feature: Hardware of externally provisioned hosts
  A host that others provision is never booted into the agent. Its BMC shows the
  hardware, which the controllers read every ten minutes and after each start.

  @B-250 @B-260
  Scenario Outline: The hardware is read from the BMC and kept up to date: <address>
    Given a server of the model "<model>" in a lab of all models
    When the operator registers the server at the address "<address>" with:
      """
      spec: {externallyProvisioned: true}
      """
    And the host becomes "externally provisioned"
    Then the host shows the hardware that its BMC shows
    And the events include "InspectionComplete"
    When the first disk is pulled
    And ten minutes pass
    Then the host shows the hardware that its BMC shows
    And the events include "UpdateHardwareDetails"
    When the other disks are pulled
    And ten minutes pass
    Then the host shows the hardware that its BMC shows
    When every disk is reinserted
    And ten minutes pass
    Then the host shows the hardware that its BMC shows
    And the host stays "externally provisioned"
    And it passed through "registering, externally provisioned"
    And the host reports no error

    Examples:
      | model             | address                         |
      | generic           | redfish://HOST:PORT/SYSTEM      |
      | dell-r650         | idrac://HOST:PORT               |
      | hpe-dl360-gen9    | ilo4://HOST:PORT                |
      | hpe-dl360-gen11   | ilo5-redfish://HOST:PORT/SYSTEM |
      | fujitsu-rx2530-m6 | irmc://HOST:PORT                |
      | huawei-1288h-v5   | ibmc://HOST:PORT/SYSTEM         |

  @B-250 @B-260
  Scenario: IPMI identifies the server
    Given a lab with 1 server
    When the operator registers the server at the address "ipmi://IPMI" with:
      """
      spec: {externallyProvisioned: true}
      """
    And the host becomes "externally provisioned"
    Then the host shows what IPMI tells of its hardware
    And the host reports no error

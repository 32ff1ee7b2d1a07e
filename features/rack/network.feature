Feature: ManagerNetworkProtocol, EthernetInterfaces and time

  Background:
    Given a rack of 2 servers

  @E2
  Scenario: PATCH of HTTPS/Port moves the service to another port
    When the client changes HTTPS/Port of the NetworkProtocol to a free port
    Then the BMC answers at the new address
    And connections to the old address are refused
    When the lab is restarted
    Then the BMC answers at the new address
    And GET Systems/1 of the second BMC is answered with 200

  @E2
  Scenario: HTTP redirects to HTTPS
    When the client enables HTTP at a free port
    Then GET of the service root by HTTP is answered with 301 to HTTPS
    When the client sends PATCH Managers/1/NetworkProtocol {"HTTP": {"ProtocolEnabled": false}}
    Then connections by HTTP are refused

  @E2
  Scenario: InsertMedia is refused while VirtualMedia/ProtocolEnabled is false
    When the client sends PATCH Managers/1/NetworkProtocol {"VirtualMedia": {"ProtocolEnabled": false}}
    And the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the response is 503 with "ServiceDisabled"
    And GET Systems/1/VirtualMedia/Cd has "Image": null
    When the client sends PATCH Managers/1/NetworkProtocol {"VirtualMedia": {"ProtocolEnabled": true}}
    And the client sends POST Systems/1/VirtualMedia/Cd/Actions/VirtualMedia.InsertMedia {"Image": "IMAGE"}
    Then the server's virtual CD has the bytes of the image

  @E3
  Scenario: PATCH of IPv4StaticAddresses moves the BMC to another address
    When the client changes the BMC's IPv4StaticAddresses to 127.99.7.5
    Then the BMC answers at the new address
    And connections to the old address are refused
    When the lab is restarted
    Then the BMC answers at the new address
    And GET Systems/1 of the second BMC is answered with 200

  @E3
  Scenario: An address that is in use is refused
    When the client sends PATCH Managers/1/EthernetInterfaces/1 {"IPv4StaticAddresses": [{"Address": "SECOND-BMC", "SubnetMask": "255.0.0.0"}]}
    Then the response is 400
    And GET Systems/1 is answered with 200
    And GET Systems/1 of the second BMC is answered with 200

  @E3
  Scenario: HostName, StaticNameServers and VLAN survive Manager.Reset
    When the client sends PATCH Managers/1/EthernetInterfaces/1 {"HostName": "bmc-7", "StaticNameServers": ["192.0.2.53", "2001:db8::53"], "VLAN": {"VLANEnable": true, "VLANId": 42}}
    And the client resets the BMC
    And 5 minutes pass
    Then GET Managers/1/EthernetInterfaces/1 has "HostName": "bmc-7"
    And GET Managers/1/EthernetInterfaces/1 has "StaticNameServers": ["192.0.2.53", "2001:db8::53"]
    And GET Managers/1/EthernetInterfaces/1 has "VLAN/VLANEnable": true
    And GET Managers/1/EthernetInterfaces/1 has "VLAN/VLANId": 42
    And GET Managers/1/NetworkProtocol has "HostName": "bmc-7"

  @E4
  Scenario: DateTime that is set runs on, in the zone of DateTimeLocalOffset
    When the client sends PATCH Managers/1 {"DateTime": "2040-01-02T03:04:05+02:00"}
    Then GET Managers/1 has "DateTime": "2040-01-02T01:04:05Z"
    When the client sends PATCH Managers/1 {"DateTimeLocalOffset": "-03:30"}
    And 2 hours pass
    Then GET Managers/1 has "DateTime": "2040-01-01T23:34:05-03:30"
    When the client sends PATCH Managers/1 {"DateTime": "yesterday"}
    Then the response is 400
    And GET Managers/1 has "DateTime": "2040-01-01T23:34:05-03:30"

  @E4
  Scenario: Log entries have the BMC's time
    When the client sends PATCH Managers/1 {"DateTime": "2040-01-02T03:00:00Z"}
    And 1 minute passes
    And the client creates the account "carol" with the role Operator
    Then the manager's log has an entry AccountCreated of "2040-01-02T03:01:00Z"

  @E4
  Scenario: NTP corrects DateTime, which then cannot be set
    Given the client sends PATCH Managers/1 {"DateTime": "2040-01-02T03:00:00Z"}
    When the client sends PATCH Managers/1/NetworkProtocol {"NTP": {"ProtocolEnabled": true, "NTPServers": ["192.0.2.1"]}}
    Then DateTime of the BMC is the lab's time
    When the client sends PATCH Managers/1 {"DateTime": "2040-01-02T03:00:00Z"}
    Then the response is 409
    And DateTime of the BMC is the lab's time

package bmc

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Errors of the network.
var (
	// ErrAddress and ErrPort mean that an address or a port is not available.
	ErrAddress = errors.New("bmc: the address cannot be had")
	ErrPort    = errors.New("bmc: the port cannot be had")
	// ErrFollows means that the clock is set by NTP.
	ErrFollows = errors.New("bmc: the clock follows time servers")
)

// Network holds a BMC's network settings and services.
type Network struct {
	HTTPS Service `json:"https"` // Redfish
	HTTP  Service `json:"http"`  // redirects to HTTPS
	SSH   Service `json:"ssh"`   // serial console by SSH
	IPMI  Service `json:"ipmi"`  // IPMI over LAN
	KVM   Service `json:"kvm"`   // remote console
	Media Service `json:"media"` // virtual media of the remote console
	SNMP  Service `json:"snmp"`  // SNMP agent
	SSDP  Service `json:"ssdp"`  // discovery (DSP0266, "Discovery")
	NTP   Service `json:"ntp"`   // time from TimeServers

	TimeServers []string `json:"timeServers,omitempty"` // NTP servers
	NameServers []string `json:"nameServers,omitempty"` // DNS servers
	HostName    string   `json:"hostName,omitempty"`    // without domain
	Domain      string   `json:"domain,omitempty"`      // DNS domain

	DHCP   bool    `json:"dhcp"`             // the IPv4 address comes from DHCP
	Static *IPv4   `json:"static,omitempty"` // static IPv4 address; nil: none
	V6     IPv6    `json:"v6"`
	VLAN   VLAN    `json:"vlan"`
	Use    DHCPUse `json:"use"`
}

// Service is a network service of a BMC.
type Service struct {
	On   bool   `json:"on"`   // the service is enabled
	Port uint16 `json:"port"` // TCP or UDP port; 0: the default port of the BMC's network
}

// IPv4 is a static address.
type IPv4 struct {
	Addr    netip.Addr `json:"addr"`              // address
	Mask    string     `json:"mask,omitempty"`    // subnet mask: "255.255.255.0"
	Gateway string     `json:"gateway,omitempty"` // address of the default gateway
	Reach   Reach      `json:"reach,omitempty"`
}

// Reach says where a BMC with a static address is reachable. Values are stored.
type Reach string

// The values of Reach.
const (
	AtStaticAddress  Reach = ""        // at the static address
	AtBothAddresses  Reach = "beside"  // at its default address too
	AtDefaultAddress Reach = "in name" // only at its default address: the rack cannot bind the static one
)

// IPv6 holds the IPv6 settings.
type IPv6 struct {
	On       bool         `json:"on"`                 // IPv6 is enabled
	Static   []IPv6Static `json:"static,omitempty"`   // static addresses
	Gateways []string     `json:"gateways,omitempty"` // static default gateways
	DHCP     string       `json:"dhcp,omitempty"`     // Redfish's DHCPv6OperatingMode; "" is Disabled
	Auto     bool         `json:"auto,omitempty"`     // stateless address autoconfiguration
	Use      DHCPv6Use    `json:"use"`
}

// IPv6Static is a static IPv6 address.
type IPv6Static struct {
	Addr   netip.Addr `json:"addr"`           // address
	Prefix int        `json:"prefix"`         // prefix length
	Slot   int        `json:"slot,omitempty"` // preferred slot
}

// VLAN is the VLAN tag of a BMC's frames.
type VLAN struct {
	On       bool `json:"on"`                 // frames have the tag
	ID       int  `json:"id"`                 // 1 to 4094
	Priority int  `json:"priority,omitempty"` // 0 to 7
}

// DHCPUse lists the settings that a BMC takes from DHCP besides its address.
type DHCPUse struct {
	DNS     bool `json:"dns"`     // DNS servers
	NTP     bool `json:"ntp"`     // NTP servers
	Domain  bool `json:"domain"`  // DNS domain
	Gateway bool `json:"gateway"` // default gateway
}

// DHCPv6Use lists the settings that a BMC takes from DHCPv6 besides its address, and
// how it asks for one (DSP2046, EthernetInterface.DHCPv6).
type DHCPv6Use struct {
	DNS         bool `json:"dns"`         // DNS servers
	NTP         bool `json:"ntp"`         // NTP servers
	Domain      bool `json:"domain"`      // DNS domain
	RapidCommit bool `json:"rapidCommit"` // rapid commit (RFC 8415, §18.2.1)
}

// NetworkDefaults are a BMC's address by DHCP and its default ports.
type NetworkDefaults struct {
	Addr              netip.Addr
	HTTPS, HTTP, IPMI uint16
	SSDP              bool // SSDP is on by default
}

// SetNetworkDefaults sets a BMC's network defaults.
func (b *BMC) SetNetworkDefaults(p NetworkDefaults) { b.networkDefaults = &p }

// Network returns the BMC's network settings, with effective ports.
func (v *View) Network() Network { return network(v.Spec, v.Net, v.NetworkDefaults) }

func network(s *Spec, set *Network, p *NetworkDefaults) Network {
	n := s.Network
	if set != nil {
		n = *set
	} else if p != nil {
		n.SSDP.On = n.SSDP.On || p.SSDP
	}
	if p != nil && n.HTTPS.Port == 0 {
		n.HTTPS.Port = p.HTTPS
	}
	if p != nil && n.HTTP.Port == 0 {
		n.HTTP.Port = p.HTTP
	}
	if p != nil && n.IPMI.Port == 0 {
		n.IPMI.Port = p.IPMI
	}
	return n
}

// Addresses returns the IPv4 addresses at which the BMC is reachable, its own
// first.
func (v *View) Addresses() []netip.Addr {
	n := v.Network()
	var all []netip.Addr
	atPlace := n.DHCP
	if s := n.Static; s != nil {
		if s.Reach != AtDefaultAddress {
			all = append(all, s.Addr)
		}
		atPlace = atPlace || s.Reach != AtStaticAddress
	}
	if atPlace && v.NetworkDefaults != nil && !slices.Contains(all, v.NetworkDefaults.Addr) {
		all = append(all, v.NetworkDefaults.Addr)
	}
	return all
}

// SetNetwork replaces the network settings. They take effect at once; a request
// over an address that is removed is still answered.
type SetNetwork struct{ Network Network }

func (c SetNetwork) apply(b *BMC, _ time.Time) ([]Event, error) {
	n := c.Network
	if !n.DHCP && n.Static == nil {
		return nil, fmt.Errorf("%w: there would be none left", ErrAddress)
	}
	if n.HTTPS.On && n.HTTP.On && n.HTTPS.Port == n.HTTP.Port {
		return nil, fmt.Errorf("%w: %d is that of HTTPS and of HTTP", ErrPort, n.HTTP.Port)
	}
	switches := n.IPMI.On != b.net().IPMI.On
	b.setNet(n)
	if switches {
		b.switched()
	}
	return nil, nil
}

// setNet stores the network settings.
func (b *BMC) setNet(n Network) {
	if p := b.networkDefaults; p != nil { // default ports are stored as 0
		if n.HTTPS.Port == p.HTTPS {
			n.HTTPS.Port = 0
		}
		if n.HTTP.Port == p.HTTP {
			n.HTTP.Port = 0
		}
		if n.IPMI.Port == p.IPMI {
			n.IPMI.Port = 0
		}
	}
	b.st.Net = &n
	if n.follows() && b.st.Clock.Skew() != 0 {
		clock := b.forkClock()
		clock.Offset = 0
		b.st.Clock = clock
	}
}

// follows reports whether NTP sets the clock. Time servers have lab time.
func (n *Network) follows() bool { return n.NTP.On && len(n.TimeServers) > 0 }

// net returns the effective network settings.
func (b *BMC) net() Network { return network(b.spec, b.st.Net, b.networkDefaults) }

// Equal compares two NetworkDefaults, for tests.
func (p NetworkDefaults) Equal(q NetworkDefaults) bool { return p == q }

// Equal compares two addresses, for tests.
func (a IPv4) Equal(b IPv4) bool { return a == b }

// Equal compares two addresses, for tests.
func (a IPv6Static) Equal(b IPv6Static) bool { return a == b }

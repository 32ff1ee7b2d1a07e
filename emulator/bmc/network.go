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
	// ErrAddress means that an address cannot be had, and ErrPort that a port
	// cannot.
	ErrAddress = errors.New("bmc: the address cannot be had")
	ErrPort    = errors.New("bmc: the port cannot be had")
	// ErrFollows means that the clock follows time servers.
	ErrFollows = errors.New("bmc: the clock follows time servers")
)

// Network is how a BMC is on its network and what it offers there.
type Network struct {
	HTTPS Service `json:"https"`
	HTTP  Service `json:"http"` // which leads to HTTPS
	SSH   Service `json:"ssh"`
	IPMI  Service `json:"ipmi"`
	KVM   Service `json:"kvm"`
	Media Service `json:"media"`
	SNMP  Service `json:"snmp"`
	SSDP  Service `json:"ssdp"`
	NTP   Service `json:"ntp"`

	TimeServers []string `json:"timeServers,omitempty"`
	NameServers []string `json:"nameServers,omitempty"`
	HostName    string   `json:"hostName,omitempty"`
	Domain      string   `json:"domain,omitempty"`

	DHCP   bool    `json:"dhcp"`
	Static *IPv4   `json:"static,omitempty"`
	V6     IPv6    `json:"v6"`
	VLAN   VLAN    `json:"vlan"`
	Use    DHCPUse `json:"use"`
}

// Service is one that a BMC offers.
type Service struct {
	On   bool   `json:"on"`
	Port uint16 `json:"port"` // 0: as is usual where the BMC is
}

// IPv4 is an address that was set by hand.
type IPv4 struct {
	Addr    netip.Addr `json:"addr"`
	Mask    string     `json:"mask,omitempty"`
	Gateway string     `json:"gateway,omitempty"`
	Reach   Reach      `json:"reach,omitempty"`
}

// Reach says where a BMC can be reached whose address was set by hand. Values
// are stored.
type Reach string

// The values of Reach.
const (
	AtStaticAddress  Reach = ""        // at that address
	AtBothAddresses  Reach = "beside"  // at its place, too
	AtDefaultAddress Reach = "in name" // at its place alone: the lab has no such address
)

// IPv6 is what was set of IPv6.
type IPv6 struct {
	On       bool         `json:"on"`
	Static   []IPv6Static `json:"static,omitempty"`
	Gateways []string     `json:"gateways,omitempty"`
	DHCP     string       `json:"dhcp,omitempty"` // Redfish's DHCPv6OperatingMode; "" is Disabled
	Auto     bool         `json:"auto,omitempty"`
}

// IPv6Static is an IPv6 address that was set by hand.
type IPv6Static struct {
	Addr   netip.Addr `json:"addr"`
	Prefix int        `json:"prefix"`
	Slot   int        `json:"slot,omitempty"` // that it was set in, if that is free
}

// VLAN is the tag of a BMC's frames.
type VLAN struct {
	On       bool `json:"on"`
	ID       int  `json:"id"`
	Priority int  `json:"priority,omitempty"`
}

// DHCPUse is what a BMC takes from DHCP beside its address.
type DHCPUse struct {
	DNS     bool `json:"dns"`
	NTP     bool `json:"ntp"`
	Domain  bool `json:"domain"`
	Gateway bool `json:"gateway"`
}

// NetworkDefaults is where a BMC is if nobody moves it: what DHCP gives it, and the ports
// that are usual there.
type NetworkDefaults struct {
	Addr              netip.Addr
	HTTPS, HTTP, IPMI uint16
	SSDP              bool // whether clients can search there for BMCs that nobody told otherwise
}

// SetNetworkDefaults tells a BMC its place.
func (b *BMC) SetNetworkDefaults(p NetworkDefaults) { b.place = &p }

// Network is how the BMC is on its network, with the ports as they are.
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

// Addresses are those at which the BMC can be reached by IPv4; the first is its
// own.
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

// SetNetwork sets how the BMC is on its network, whole. It holds at once: who
// has asked for it from an address that is none any longer has its answer all
// the same.
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

// setNet sets how the BMC is on its network.
func (b *BMC) setNet(n Network) {
	if p := b.place; p != nil { // ports that are as usual follow their place
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

// follows says whether the clock follows time servers. Those are taken to know
// the lab's time.
func (n *Network) follows() bool { return n.NTP.On && len(n.TimeServers) > 0 }

// net is how the BMC is on its network now.
func (b *BMC) net() Network { return network(b.spec, b.st.Net, b.place) }

// Equal lets tests compare what holds addresses.
func (p NetworkDefaults) Equal(q NetworkDefaults) bool { return p == q }

// Equal lets tests compare what holds addresses.
func (a IPv4) Equal(b IPv4) bool { return a == b }

// Equal lets tests compare what holds addresses.
func (a IPv6Static) Equal(b IPv6Static) bool { return a == b }

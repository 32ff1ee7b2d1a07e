package netboot

import (
	"fmt"
	"net"
	"strings"

	"github.com/metalab-dev/metalab/controller/inband"
)

// Client identifies a server on the provisioning network.
type Client struct {
	Host string // UID of the host's object
	Name string // name of the host, for messages
	MAC  string // MAC address of the NIC that boots; "" means the NIC whose DHCP messages have UUID
	UUID string // UUID of the system, as its BMC reports it
}

type client struct{ Client }

// Know registers a server, so that DHCP gives it an address. It returns an error for an
// invalid MAC address and for one of another host; the text is Metal3's (B-47, B-141).
func (s *Server) Know(c Client) error {
	if c.MAC != "" {
		mac, err := net.ParseMAC(c.MAC)
		if err != nil || len(mac) != 6 {
			return fmt.Errorf("MAC address %q of %s: want the form 02:00:00:00:00:01", c.MAC, c.Name)
		}
		c.MAC = mac.String()
	}
	c.UUID = strings.ToLower(c.UUID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.macs[c.MAC]; other != nil && other.Host != c.Host {
		return fmt.Errorf("MAC address %s conflicts with existing node %s", c.MAC, other.Name)
	}
	known := s.clients[c.Host]
	if known == nil {
		known = &client{}
		s.clients[c.Host] = known
	}
	if c.MAC == "" && known.UUID == c.UUID {
		c.MAC = known.MAC // find has learnt it from DHCP
	}
	if known.MAC != c.MAC {
		s.unlink(known)
	}
	known.Client = c
	s.link(known)
	return nil
}

// link adds a server to the index of MAC addresses.
func (s *Server) link(c *client) {
	if c.MAC != "" {
		s.macs[c.MAC] = c
	}
}

func (s *Server) unlink(c *client) {
	s.leases.drop(c.MAC)
	delete(s.macs, c.MAC)
}

// Open serves the files of boot b, and those of no other boot of its host: from the time at
// which the host is about to boot until its agent is up. To a registered client DHCP names
// a boot file.
func (s *Server) Open(b inband.Boot) { s.allow(b.Host, b) }

// Close ends the boot that Open has allowed. A registered client still gets an address.
func (s *Server) Close(host string) { s.allow(host, inband.Boot{}) }

func (s *Server) allow(host string, b inband.Boot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[host] = b
}

// access is whether the files of a boot are served now.
type access int

const (
	denied  access = iota // nobody awaits the boot
	allowed               //
	unknown               // this process has not looked at the host yet
)

// access returns whether the files of a boot are served now.
func (s *Server) access(b inband.Boot) access {
	s.mu.Lock()
	defer s.mu.Unlock()
	open, known := s.open[b.Host]
	switch {
	case open == b, s.offered(b) != nil, b.ID == s.cfg.Public && b.ID != "":
		return allowed
	case !known:
		return unknown
	}
	return denied
}

// Forget removes the boot and the NICs of a host.
func (s *Server) Forget(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, host)
	if c := s.clients[host]; c != nil {
		s.unlink(c)
		delete(s.clients, host)
	}
}

// find returns the registered server with this NIC, nil when there is none. A server
// without a MAC address is found by the UUID in its DHCP message, and gets its MAC address
// from there. The caller holds s.mu.
func (s *Server) find(mac, uuid string) *client {
	if c := s.macs[mac]; c != nil || uuid == "" {
		return c
	}
	for _, c := range s.clients {
		if c.MAC == "" && c.UUID == uuid {
			c.MAC = mac
			s.link(c)
			return c
		}
	}
	return nil
}

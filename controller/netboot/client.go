package netboot

import (
	"fmt"
	"net"
	"strings"

	"github.com/metalab-dev/metalab/controller/inband"
)

// Client is a server of the provisioning network.
type Client struct {
	Host string // UID of the host's object
	Name string // of the host, for people
	MAC  string // of the NIC that boots; "": the one that says UUID
	UUID string // of the system, as its BMC tells
}

type client struct {
	Client
	boot inband.Boot // that it may be given; none when its Host is ""
}

// Know makes a server known: it is given an address. The text is Metal3's
// (B-47, B-141).
func (s *Server) Know(c Client) error {
	if c.MAC != "" {
		mac, err := net.ParseMAC(c.MAC)
		if err != nil || len(mac) != 6 {
			return fmt.Errorf("netboot: MAC address %q of %s: want the form 02:00:00:00:00:01", c.MAC, c.Name)
		}
		c.MAC = mac.String()
	}
	c.UUID = strings.ToLower(c.UUID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if other := s.macs[c.MAC]; other != nil && other.Host != c.Host {
		return fmt.Errorf("MAC address %s conflicts with existing node %s", c.MAC, other.Name)
	}
	is := s.clients[c.Host]
	if is == nil {
		is = &client{}
		s.clients[c.Host] = is
	}
	if c.MAC == "" && is.UUID == c.UUID {
		c.MAC = is.MAC // learnt from DHCP
	}
	if is.MAC != c.MAC {
		s.unlink(is)
	}
	is.Client = c
	s.link(is)
	return nil
}

// link makes a server be found by its MAC address.
func (s *Server) link(c *client) {
	if c.MAC != "" {
		s.macs[c.MAC] = c
	}
}

func (s *Server) unlink(c *client) {
	s.leases.drop(c.MAC)
	delete(s.macs, c.MAC)
}

// Open lets the server that is known of a host boot b, and nothing else, from
// the network.
func (s *Server) Open(b inband.Boot) { s.allow(b.Host, b) }

// Close ends that: the server is still known, and is given nothing to boot.
func (s *Server) Close(host string) { s.allow(host, inband.Boot{}) }

func (s *Server) allow(host string, b inband.Boot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[host]; c != nil {
		c.boot = b
	}
}

// Forget drops what is kept for a host: its server is unknown from then on.
func (s *Server) Forget(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clients[host]; c != nil {
		s.unlink(c)
		delete(s.clients, host)
	}
}

// find is the server with this NIC. One whose MAC address nobody has told is
// found by the UUID that its firmware says, and its MAC address is known then.
// The caller holds s.mu.
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

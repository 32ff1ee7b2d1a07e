package steps

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// registerIdentities binds the steps about the values that identify a server.
func (s *scenario) registerIdentities(sc *stepRegistry) {
	sc.Step(`^the client saves the identities of the servers$`, func() error {
		return s.identities(func(host string, identity []string) error {
			s.save(host, identity)
			return nil
		})
	})
	sc.Step(`^the servers have the saved identities$`, func() error {
		return s.identities(func(host string, identity []string) error { return s.equalsSaved(host, identity) })
	})
	sc.NegativeStep(`^no two servers share a serial number, a UUID or a MAC address$`, func() error {
		if len(s.lab.Hosts()) < 2 {
			return errors.New("a rack of one server has nothing to compare")
		}
		seen := map[string]string{}
		return s.identities(func(host string, identity []string) error {
			for _, i := range identifying {
				if other, ok := seen[identity[i]]; ok {
					return fmt.Errorf("%s and %s share %q", host, other, identity[i])
				}
				seen[identity[i]] = host
			}
			return nil
		})
	})
	sc.Step(`^every BMC answers at a different address with a different SerialNumber$`, func() error {
		if len(s.lab.Hosts()) < 2 {
			return errors.New("a rack of one server has nothing to compare")
		}
		seen := map[string]bool{}
		for i, h := range s.lab.Hosts() {
			if err := s.sendTo(i+1, "GET", systemURI, nil); err != nil {
				return err
			}
			serial := fmt.Sprint(s.response.body["SerialNumber"])
			if s.response.status != 200 || seen[serial] || seen[h.Address().String()] {
				return fmt.Errorf("%s at %s: the response is %s", h.Name(), h.Address(), s.response)
			}
			seen[serial], seen[h.Address().String()] = true, true
		}
		return nil
	})
	sc.Step(`^it prints the MAC addresses of the server's network interfaces$`, func() error {
		for _, nic := range s.server(1).Machine().Identity.NICs {
			if err := s.outputContains(strings.ToLower(nic.MAC)); err != nil {
				return err
			}
		}
		return nil
	})
	sc.Step(`^the BMCs have (\d+) addresses, which IPMI shares$`, func(n int) error {
		seen := map[netip.Addr]bool{}
		for _, h := range s.lab.Hosts() {
			at, ok := h.IPMI()
			if !ok || at.Addr() != h.Address().Addr() {
				return fmt.Errorf("%s is at %s, its IPMI at %s", h.Name(), h.Address(), at)
			}
			seen[at.Addr()] = true
		}
		return equal("the number of addresses", len(seen), n)
	})
	sc.Step(`^every (\d+)th BMC answers Redfish and IPMI at its address with its UUID$`, func(each int) error {
		if each > len(s.lab.Hosts()) {
			return fmt.Errorf("there are %d BMCs", len(s.lab.Hosts()))
		}
		for i := each; i <= len(s.lab.Hosts()); i += each {
			if err := s.uuidsAgree(i); err != nil {
				return fmt.Errorf("server %d: %w", i, err)
			}
		}
		return nil
	})
}

// uuidsAgree compares the UUID of the n-th server in Redfish with Get System GUID,
// and both with that of the server.
func (s *scenario) uuidsAgree(n int) error {
	if err := s.sendTo(n, "GET", systemURI, nil); err != nil {
		return err
	}
	want := s.server(n).Machine().Identity.UUID
	if err := equal("UUID", s.last().body["UUID"], want); err != nil {
		return err
	}
	at, _ := s.server(n).IPMI()
	c, err := ipmi.Dial(s.t.Context(), at.String())
	if err != nil {
		return err
	}
	defer c.Close()
	c.Timeout = responseTimeout
	guid, err := c.GUID(s.t.Context(), ipmi.V15)
	if err != nil {
		return err
	}
	for _, field := range [][]byte{guid[:4], guid[4:6], guid[6:8]} { // which SMBIOS has with the least significant byte first
		slices.Reverse(field)
	}
	return equal("the GUID", fmt.Sprintf("%x", guid), strings.ReplaceAll(want, "-", ""))
}

// identifying are the indices of the unique values in a server's identity: serial number,
// UUID, MAC address.
var identifying = []int{0, 1, 6}

// identities calls f with the identity of each server: four properties of its
// system, and the same four of its first network interface.
func (s *scenario) identities(f func(host string, identity []string) error) error {
	for i, h := range s.lab.Hosts() {
		var identity []string
		for _, uri := range []string{systemURI, systemURI + "/EthernetInterfaces/1"} {
			if err := s.sendTo(i+1, "GET", uri, nil); err != nil {
				return err
			}
			for _, name := range []string{"SerialNumber", "UUID", "MACAddress", "Model"} {
				identity = append(identity, fmt.Sprint(s.response.body[name]))
			}
		}
		for _, i := range identifying {
			if identity[i] == "" || identity[i] == "<nil>" {
				return fmt.Errorf("%s does not show its identity: %q", h.Name(), identity)
			}
		}
		if err := f(h.Name(), identity); err != nil {
			return err
		}
	}
	return nil
}

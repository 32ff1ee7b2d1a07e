package steps

import (
	"fmt"

	"github.com/cucumber/godog"
)

// registerIdentities binds the steps about the values that identify a server.
func (s *scenario) registerIdentities(sc *godog.ScenarioContext) {
	sc.Step(`^the client saves the identities of the servers$`, func() error {
		return s.identities(func(host string, identity []string) error {
			s.save(host, identity)
			return nil
		})
	})
	sc.Step(`^the servers have the saved identities$`, func() error {
		return s.identities(func(host string, identity []string) error { return s.equalsSaved(host, identity) })
	})
	sc.Step(`^no two servers share a serial number, a UUID or a MAC address$`, func() error {
		seen := map[string]string{}
		return s.identities(func(host string, identity []string) error {
			for _, i := range []int{0, 1, 6} { // serial number, UUID, MAC address
				if other, ok := seen[identity[i]]; ok || identity[i] == "" {
					return fmt.Errorf("%s and %s share %q", host, other, identity[i])
				}
				seen[identity[i]] = host
			}
			return nil
		})
	})
	sc.Step(`^every BMC answers at a different address with a different SerialNumber$`, func() error {
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
}

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
		if err := f(h.Name(), identity); err != nil {
			return err
		}
	}
	return nil
}

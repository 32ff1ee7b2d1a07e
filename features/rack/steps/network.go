package steps

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/cucumber/godog"
)

const (
	protocolsURI = root + "/Managers/1/NetworkProtocol"
	portURI      = root + "/Managers/1/EthernetInterfaces/1"
)

// named is how a BMC shall be called, and by whom it is to find others.
var named = object{
	"HostName": "bmc-7", "StaticNameServers": []any{"192.0.2.53", "2001:db8::53"}, "VLAN": object{"VLANEnable": true, "VLANId": 42.0},
}

func (s *scenario) registerNetwork(sc *godog.ScenarioContext) {
	var was, plain netip.AddrPort // where the BMC was; its port without encryption
	sc.Step(`^the operator has the BMC listen at another port$`, func() error {
		was = s.server(1).Address()
		port, err := freePort(was.Addr())
		if err != nil {
			return err
		}
		s.saved["at"] = netip.AddrPortFrom(was.Addr(), port).String()
		return s.sendOK("PATCH", protocolsURI, object{"HTTPS": object{"Port": port}})
	})
	sc.Step(`^the operator gives the BMC the address (\S+)$`, func(at string) error {
		was = s.server(1).Address()
		s.saved["at"] = fmt.Sprintf("%s:%d", at, was.Port())
		return s.sendOK("PATCH", portURI, object{
			"IPv4StaticAddresses": []object{{"Address": at, "SubnetMask": "255.0.0.0"}}, "DHCPv4": object{"DHCPEnabled": false},
		})
	})
	sc.Step(`^the operator tries to give the BMC the address of its neighbour$`, func() error {
		was = s.server(1).Address()
		s.saved["at"] = was.String()
		at := s.server(2).Address().Addr().String()
		return s.send("PATCH", portURI, object{"IPv4StaticAddresses": []object{{"Address": at, "SubnetMask": "255.0.0.0"}}})
	})
	sc.Step(`^the BMC answers there$`, func() error {
		if err := s.equalsSaved("at", s.server(1).Address()); err != nil {
			return err
		}
		a, err := s.get(systemURI)
		if err != nil {
			return err
		}
		return equal("the server there", a.body["SerialNumber"], s.server(1).Machine().Identity.Serial)
	})
	sc.Step(`^nobody answers where it was$`, func() error { return refused(was) })
	sc.Step(`^the operator opens the port without encryption$`, func() error {
		at := s.server(1).Address()
		port, err := freePort(at.Addr())
		if err != nil {
			return err
		}
		plain = netip.AddrPortFrom(at.Addr(), port)
		return s.sendOK("PATCH", protocolsURI, object{"HTTP": object{"ProtocolEnabled": true, "Port": port}})
	})
	sc.Step(`^the operator closes the port without encryption$`, func() error {
		return s.sendOK("PATCH", protocolsURI, object{"HTTP": object{"ProtocolEnabled": false}})
	})
	sc.Step(`^who asks there is sent to the one with encryption$`, func() error {
		r, err := http.NewRequestWithContext(s.t.Context(), "GET", "http://"+plain.String()+root+"/", nil)
		if err != nil {
			return err
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			return err
		}
		if err := resp.Body.Close(); err != nil {
			return err
		}
		return equal("the answer", fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Location")), "301 "+s.server(1).URL()+root+"/")
	})
	sc.Step(`^nobody answers there$`, func() error { return refused(plain) })
	sc.Step(`^the operator switches virtual media (on|off)$`, func(how string) error {
		return s.sendOK("PATCH", protocolsURI, object{"VirtualMedia": object{"ProtocolEnabled": how == "on"}})
	})
	sc.Step(`^the operator names the BMC, its name servers and its VLAN$`, func() error { return s.sendOK("PATCH", portURI, named) })
	sc.Step(`^the BMC has that name, those name servers and that VLAN$`, func() error {
		a, err := s.get(portURI)
		if err != nil {
			return err
		}
		for name, want := range named {
			got := a.body[name]
			if vlan, ok := got.(map[string]any); ok {
				got = object{"VLANEnable": vlan["VLANEnable"], "VLANId": vlan["VLANId"]}
			}
			if err := equal(name, got, want); err != nil {
				return err
			}
		}
		if a, err = s.get(protocolsURI); err != nil {
			return err
		}
		return equal("the name", a.body["HostName"], named["HostName"])
	})
}

// freePort is a port of an address that nobody listens on.
func freePort(at netip.Addr) (uint16, error) {
	ln, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return 0, err
	}
	return uint16(ln.Addr().(*net.TCPAddr).Port), ln.Close()
}

// refused says whether somebody takes connections at an address.
func refused(at netip.AddrPort) error {
	c, err := net.Dial("tcp", at.String())
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		_ = c.Close() // there was nothing to lose
	}
	if err == nil || !strings.Contains(err.Error(), "reset by peer") && !strings.Contains(err.Error(), "refused") {
		return fmt.Errorf("somebody answers at %v: %w", at, err)
	}
	return nil
}

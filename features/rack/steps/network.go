package steps

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

const (
	protocolsURI = managerURI + "/NetworkProtocol"
	portURI      = managerURI + "/EthernetInterfaces/1"
)

// registerNetwork binds the steps about where a BMC listens.
func (s *scenario) registerNetwork(sc *stepRegistry) {
	var before, plain netip.AddrPort // where the BMC was; where it serves HTTP
	sc.Step(`^the client changes HTTPS/Port of the NetworkProtocol to a free port$`, func() error {
		before = s.server(1).Address()
		port, err := freePort(before.Addr())
		if err != nil {
			return err
		}
		s.save("address", netip.AddrPortFrom(before.Addr(), port))
		return s.sendOK("PATCH", protocolsURI, object{"HTTPS": object{"Port": port}})
	})
	sc.Step(`^the client changes the BMC's IPv4StaticAddresses to (\S+)$`, func(at string) error {
		before = s.server(1).Address()
		s.save("address", fmt.Sprintf("%s:%d", at, before.Port()))
		return s.sendOK("PATCH", portURI, object{
			"IPv4StaticAddresses": []object{{"Address": at, "SubnetMask": "255.0.0.0"}}, "DHCPv4": object{"DHCPEnabled": false},
		})
	})
	sc.Step(`^the BMC answers at the new address$`, func() error {
		if err := s.equalsSaved("address", s.server(1).Address()); err != nil {
			return err
		}
		r, err := s.get(systemURI)
		if err != nil {
			return err
		}
		return equal("the SerialNumber there", r.body["SerialNumber"], s.server(1).Machine().Identity.Serial)
	})
	sc.NegativeStep(`^connections to the old address are refused$`, func() error { return refusesConnections(before) })
	sc.Step(`^the client enables HTTP at a free port$`, func() error {
		at := s.server(1).Address()
		port, err := freePort(at.Addr())
		if err != nil {
			return err
		}
		plain = netip.AddrPortFrom(at.Addr(), port)
		return s.sendOK("PATCH", protocolsURI, object{"HTTP": object{"ProtocolEnabled": true, "Port": port}})
	})
	sc.Step(`^GET of the service root by HTTP is answered with (\d+) to HTTPS$`, func(status int) error { return s.redirects(plain, status) })
	sc.NegativeStep(`^connections by HTTP are refused$`, func() error { return refusesConnections(plain) })
	sc.Step(`^the BMC serves (HTTP|HTTPS) alone$`, func(protocol string) error {
		for _, scheme := range []string{"http", "https"} {
			serves, err := s.serves(scheme)
			if err != nil {
				return err
			}
			if err := equal("whether it serves "+scheme, serves, scheme == strings.ToLower(protocol)); err != nil {
				return err
			}
		}
		return equal("whether its URL is of HTTPS", strings.HasPrefix(s.server(1).URL(), "https:"), protocol == "HTTPS")
	})
}

// redirects checks that the service root is redirected from HTTP to HTTPS.
func (s *scenario) redirects(from netip.AddrPort, status int) error {
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", "http://"+from.String()+root+"/", nil)
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
	return equal("the response", fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Location")), fmt.Sprint(status, " ", s.server(1).URL()+root+"/"))
}

// freePort returns a port of an address that nobody listens on.
func freePort(at netip.Addr) (uint16, error) {
	ln, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return 0, err
	}
	return uint16(ln.Addr().(*net.TCPAddr).Port), ln.Close()
}

// refusesConnections returns an error when a connection to an address is
// accepted and not reset.
func refusesConnections(at netip.AddrPort) error {
	c, err := net.Dial("tcp", at.String())
	if err == nil {
		_, err = c.Read(make([]byte, 1))
		_ = c.Close() // nothing was written
	}
	if err == nil || !strings.Contains(err.Error(), "reset by peer") && !strings.Contains(err.Error(), "refused") {
		return fmt.Errorf("%v accepts connections: %w", at, err)
	}
	return nil
}

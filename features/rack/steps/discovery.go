package steps

import (
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/emulator/rack/ssdp"
)

// Search targets of M-SEARCH.
const (
	redfishTarget = "urn:dmtf-org:service:redfish-rest:1"
	printerTarget = "urn:schemas-upnp-org:device:Printer:1"
)

// afterLast is how long the client waits for responses that must not come, in real time.
const afterLast = 500 * time.Millisecond

func (s *scenario) registerDiscovery(sc *stepRegistry) {
	var found map[string]string // address and UUID, by URL
	sc.Step(`^a rack of (\d+) servers with SSDP$`, func(n int) error {
		release, err := racktest.HoldSSDP(s.t.Context())
		if err != nil {
			return s.skip(err)
		}
		s.release = release
		s.define("generic", n)
		s.config.SSDP = ssdp.Loopback
		s.open()
		return nil
	})
	sc.Step(`^a client multicasts M-SEARCH for printers and for Redfish services$`, func() error {
		c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return err
		}
		defer c.Close()
		for _, what := range []string{printerTarget, redfishTarget} {
			search := "M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: " + what + "\r\n\r\n"
			if _, err := c.WriteToUDPAddrPort([]byte(search), ssdp.Group); err != nil {
				return s.skip(fmt.Errorf("no multicast on the loopback device here: %w", err))
			}
		}
		found = map[string]string{}
		b := make([]byte, 2048)
		for range s.lab.Hosts() {
			if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
				return err
			}
			n, from, err := c.ReadFromUDPAddrPort(b)
			if err != nil {
				return fmt.Errorf("after %d responses: %w", len(found), err)
			}
			text := string(b[:n])
			if between(text, "\r\nST:", "\r\n") != redfishTarget {
				return fmt.Errorf("the response is %q", text)
			}
			found[between(text, "\r\nAL:", "\r\n")] = from.Addr().String() + " " + between(text, "\r\nUSN:uuid:", "::")
		}
		if err := c.SetReadDeadline(time.Now().Add(afterLast)); err != nil {
			return err
		}
		if n, from, err := c.ReadFromUDPAddrPort(b); err == nil {
			return fmt.Errorf("%v sends another response: %q", from, b[:n])
		}
		return nil
	})
	sc.Step(`^every BMC answers once with its AL and its USN$`, func() error {
		s.user = credentials{name: anonymous}
		for i, h := range s.lab.Hosts() {
			if err := s.sendTo(i+1, "GET", root+"/", nil); err != nil {
				return err
			}
			want := fmt.Sprint(h.Address().Addr(), " ", s.response.body["UUID"])
			if err := equal(h.Name(), found[h.URL()+root+"/"], want); err != nil {
				return err
			}
		}
		return equal("the number of responses", len(found), len(s.lab.Hosts()))
	})
}

// between returns the text between two others, without blanks around it.
func between(text, from, to string) string {
	_, rest, _ := strings.Cut(text, from)
	out, _, _ := strings.Cut(rest, to)
	return strings.TrimSpace(out)
}

package rack_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"net/http"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/emulator/rack/ssdp"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestSSDPSearchFindsBMCs searches like a client that knows no address.
func TestSSDPSearchFindsBMCs(t *testing.T) {
	release, err := racktest.HoldSSDP(t.Context())
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(release)
	l := racktest.Start(t, rack.Config{Rack: hosts(3), SSDP: ssdp.Loopback})
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	search := "M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMAN: \"ssdp:discover\"\r\nMX: 1\r\nST: urn:dmtf-org:service:redfish-rest:1\r\n\r\n"
	if _, err := c.WriteToUDPAddrPort([]byte(search), ssdp.Group); err != nil {
		t.Skipf("no multicast on the loopback device here: %v", err)
	}
	found := map[string]netip.Addr{} // by URL
	b := make([]byte, 2048)
	for range l.Hosts() {
		if err := c.SetReadDeadline(clock.Wall().Add(patience.Of(10 * time.Second))); err != nil {
			t.Fatal(err)
		}
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			t.Fatalf("after %d answers: %v", len(found), err)
		}
		_, rest, _ := strings.Cut(string(b[:n]), "\r\nAL:")
		url, _, _ := strings.Cut(rest, "\r\n")
		found[url+" "+usn(string(b[:n]))] = from.Addr()
	}
	for _, h := range l.Hosts() {
		_, root := call(t, l, h, "GET", "/redfish/v1/", "")
		want := h.URL() + "/redfish/v1/ " + root["UUID"].(string)
		if found[want] != h.Address().Addr() {
			t.Errorf("%s is not found; there are %v", want, found)
		}
	}
}

// usn returns the UUID in the response to a search.
func usn(answer string) string {
	_, rest, _ := strings.Cut(answer, "\r\nUSN:uuid:")
	uuid, _, _ := strings.Cut(rest, "::")
	return uuid
}

func TestHTTP2IsOffByDefault(t *testing.T) {
	for _, want := range []bool{false, true} {
		l := racktest.Start(t, rack.Config{HTTP2: want})
		transport := l.Client.Transport.(*http.Transport).Clone()
		transport.ForceAttemptHTTP2 = true
		client := &http.Client{Transport: transport}
		resp, err := client.Get(l.First().URL() + "/redfish/v1/")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		transport.CloseIdleConnections()
		if resp.StatusCode != http.StatusOK || (resp.ProtoMajor == 2) != want {
			t.Errorf("HTTP2 %t: %s over %s", want, resp.Status, resp.Proto)
		}
	}
}

func TestSchemasAreServed(t *testing.T) {
	l := racktest.Start(t, rack.Config{Schemas: fstest.MapFS{"json-schema/Chassis.v1_28_0.json": {Data: []byte(`{"title":"Chassis"}`)}}})
	if status, schema := call(t, l, l.First(), "GET", "/redfish/v1/SchemaStore/en/Chassis.v1_28_0.json", ""); status != 200 || schema["title"] != "Chassis" {
		t.Errorf("GET = %d %v", status, schema)
	}
	_, err := rack.Open(t.Context(), rack.Config{Dir: t.TempDir(), Clock: clock.NewVirtual(racktest.Origin), Listen: "lo:0", Schemas: fstest.MapFS{}})
	if err == nil || !strings.Contains(err.Error(), "json-schema") {
		t.Errorf("an archive without schemas: %v", err)
	}
}

package ssdp

import (
	"context"
	"fmt"
	"iter"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func search(target string) string {
	return "M-SEARCH * HTTP/1.1\r\nHost: 239.255.255.250:1900\r\nMan: \"ssdp:discover\"\r\nST: " + target + "\r\nMX: 1\r\n\r\n"
}

func TestParseSearch(t *testing.T) {
	for in, want := range map[string]string{
		search("ssdp:all"):                                                    "ssdp:all",
		search("upnp:rootdevice"):                                             "upnp:rootdevice",
		search("urn:dmtf-org:service:redfish-rest:1"):                         "urn:dmtf-org:service:redfish-rest:1",
		search("urn:dmtf-org:service:redfish-rest:1:20"):                      "urn:dmtf-org:service:redfish-rest:1:20",
		search("urn:dmtf-org:service:redfish-rest:2"):                         "",
		search("urn:dmtf-org:service:redfish-rest:1:"):                        "",
		search("urn:dmtf-org:service:redfish-rest:1:x"):                       "",
		search("urn:schemas-upnp-org:device:MediaServer:1"):                   "",
		"NOTIFY * HTTP/1.1\r\nMan: \"ssdp:discover\"\r\nST: ssdp:all\r\n\r\n": "",
		"M-SEARCH * HTTP/1.1\r\nST: ssdp:all\r\n\r\n":                         "",
		"M-SEARCH * HTTP/1.1\r\nMAN: \"ssdp:discover\"\r\nst: ssdp:all\r\n":   "ssdp:all", // without the final blank line, but complete
		"M-SEARCH * HTTP/1.1":                                                 "", "": "", "\x00\xff": "",
	} {
		got, ok := parse([]byte(in))
		if ok != (want != "") || ok && got != want {
			t.Errorf("parse(%q) = %q, %t; want %q", in, got, ok, want)
		}
	}
}

func FuzzSearch(f *testing.F) {
	f.Add([]byte(search("ssdp:all")))
	f.Fuzz(func(t *testing.T, b []byte) {
		target, ok := parse(b)
		if a := string(answer(Service{}, target)); ok && strings.Count(a, "\r\n") != 7 {
			t.Errorf("%q leads to %q", b, a)
		}
	})
}

// found returns the responses to a search: UUIDs with their source addresses.
func found(t *testing.T, port uint16, to netip.Addr, target string, want int) []string {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetReadBuffer(4 << 20); err != nil {
		t.Fatal(err)
	}
	if _, err := c.WriteToUDPAddrPort([]byte(search(target)), netip.AddrPortFrom(to, port)); err != nil {
		t.Skipf("no multicast on the loopback device here: %v", err)
	}
	var out []string
	b := make([]byte, 2048)
	for range want {
		if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, from, err := c.ReadFromUDPAddrPort(b)
		if err != nil {
			t.Fatalf("after %d answers: %v", len(out), err)
		}
		text := string(b[:n])
		if !strings.HasPrefix(text, "HTTP/1.1 200 OK\r\nCACHE-CONTROL:max-age=1800\r\n") || !strings.HasSuffix(text, "\r\nEXT:\r\n\r\n") {
			t.Fatalf("answer %q", text)
		}
		_, usn, _ := strings.Cut(text, "\r\nUSN:uuid:")
		uuid, _, _ := strings.Cut(usn, "::")
		out = append(out, uuid+" "+from.Addr().String())
	}
	slices.Sort(out)
	return out
}

func TestSearchFindsServices(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the socket needs Linux")
	}
	const n = 200 // more than one burst
	var services []Service
	for i := range n {
		at := netip.AddrFrom4([4]byte{127, 70, 0, byte(i + 1)})
		services = append(services, Service{UUID: fmt.Sprintf("u%03d", i), URL: "https://" + at.String() + "/redfish/v1/", At: at})
	}
	// A free port, because another program may have the standard one.
	probe, err := net.ListenUDP("udp4", &net.UDPAddr{})
	if err != nil {
		t.Fatal(err)
	}
	port := uint16(probe.LocalAddr().(*net.UDPAddr).Port)
	probe.Close()
	r, err := New(t.Context(), Config{Port: port, Services: func(at netip.Addr) iter.Seq[Service] {
		return func(yield func(Service) bool) {
			for _, s := range services {
				if (!at.IsValid() || s.At == at) && !yield(s) {
					return
				}
			}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := r.Serve(ctx); err != nil {
			t.Error(err)
		}
	})
	defer serving.Wait()
	defer cancel()

	var want []string
	for _, s := range services {
		want = append(want, s.UUID+" "+s.At.String())
	}
	for _, target := range []string{all, redfish, root} {
		if got := found(t, port, Group.Addr(), target, n); !slices.Equal(got, want) {
			t.Errorf("a search for %s finds %d services: %q …", target, len(got), got[:3])
		}
	}
	if got := found(t, port, services[7].At, redfish, 1); !slices.Equal(got, want[7:8]) {
		t.Errorf("a search at %v finds %q", services[7].At, got)
	}
}

func TestNewRefusesAMissingServiceList(t *testing.T) {
	if _, err := New(t.Context(), Config{}); err == nil {
		t.Error("New(Config{}) succeeded")
	}
	if _, err := New(t.Context(), Config{Device: "none-such", Services: func(netip.Addr) iter.Seq[Service] { return nil }}); err == nil || !strings.Contains(err.Error(), "none-such") {
		t.Errorf("New with a device that is not there: %v", err)
	}
}

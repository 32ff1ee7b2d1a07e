package redfish

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/redfish/render"
	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// street is a Rack of several hosts, by local address.
type street map[netip.AddrPort]*host

func (s street) At(local netip.AddrPort) (resource.Host, bool) { h, ok := s[local]; return h, ok }

func TestRequestIsRoutedByLocalAddress(t *testing.T) {
	here, there := newHost(t), newHost(t)
	must(t, there.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	s, err := New(Config{Rack: street{netip.MustParseAddrPort("127.64.0.1:443"): here, netip.MustParseAddrPort("127.64.0.2:443"): there}})
	must(t, err)
	for _, tt := range []struct {
		at   net.Addr
		want int
		host *host
	}{
		{&net.TCPAddr{IP: net.IPv4(127, 64, 0, 1), Port: 443}, 200, here}, // 16 bytes: IPv4 in IPv6
		{&net.TCPAddr{IP: net.IPv4(127, 64, 0, 2).To4(), Port: 443}, 200, there},
		{&net.IPAddr{IP: net.IPv4(127, 64, 0, 2)}, 404, nil},
		{&net.TCPAddr{IP: net.IPv4(127, 64, 0, 2), Port: 8443}, 404, nil},
		{nil, 404, nil},
	} {
		r := httptest.NewRequest("GET", sys, nil)
		if tt.at != nil {
			r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, tt.at))
		}
		r.SetBasicAuth("admin", accounts[0].Password)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("at %v: %s; want %d", tt.at, shape("GET", sys, "", w), tt.want)
		}
		if tt.host != nil {
			want, _ := get(t, newService(t, tt.host), sys)
			if etag := want["@odata.etag"]; w.Header().Get("ETag") != etag {
				t.Errorf("at %v: ETag %s, want %s", tt.at, w.Header().Get("ETag"), etag)
			}
		}
	}
}

func TestNewWithoutRackFails(t *testing.T) {
	if _, err := New(Config{}); err == nil {
		t.Error("New(Config{}) succeeded")
	}
}

func TestUnchangedResourceIsRenderedOnce(t *testing.T) {
	h := newHost(t)
	s := newService(t, h)
	at := func(uri string) *render.Representation {
		r := httptest.NewRequest("GET", uri, nil)
		return s.renderer.Representation(s.tree.Find(r.URL), resource.TakeSnapshot(h))
	}
	slot := sys + "/VirtualMedia/Cd"
	system, cd := at(sys), at(slot)
	if at(sys) != system || at(sys+"/") != system || at(slot) != cd {
		t.Error("the body of an unchanged resource was made again")
	}
	must(t, h.Apply(t.Context(), machine.Reset{Kind: machine.ResetOn}))
	if at(sys) == system {
		t.Error("the body of a changed system is the old one")
	}
	if at(slot) != cd {
		t.Error("the body of a slot was made again for a change of the machine")
	}
}

package rack_test

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
)

// A slot that verifies certificates trusts the rack's authority, and no unknown one.
func TestInsertMediaTrustsTheRacksAuthority(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	slot := h.BMC().Slots[0].ID
	cert, err := l.Certificate("images", netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := l.Certificate("images", netip.MustParseAddr("127.0.0.1"))
	if err != nil || string(again.Certificate[0]) != string(cert.Certificate[0]) {
		t.Errorf("Certificate() is another one the second time, %v", err)
	}
	serve := func(of *tls.Certificate) string {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "image") }))
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		if of != nil {
			s.TLS = &tls.Config{Certificates: []tls.Certificate{*of}}
		}
		s.StartTLS()
		t.Cleanup(s.Close)
		return s.URL + "/a.iso"
	}
	known, foreign := serve(cert), serve(nil)
	for _, tt := range []struct {
		name, url string
		verify    bool
		fails     bool
	}{
		{"of the rack", known, true, false},
		{"of the rack, not verified", known, false, false},
		{"unknown authority", foreign, true, true},
		{"unknown authority, not verified", foreign, false, false},
	} {
		for _, c := range []bmc.Command{bmc.EjectMedia{Slot: slot}, bmc.VerifyMedia{Slot: slot, Verify: tt.verify}} {
			if _, err := h.ApplyBMC(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		_, err := h.ApplyBMC(t.Context(), bmc.InsertMedia{Slot: slot, Image: tt.url, WriteProtected: true})
		if errors.Is(err, bmc.ErrMedia) != tt.fails || err != nil && !tt.fails {
			t.Errorf("%s: InsertMedia() error = %v, want one: %v", tt.name, err, tt.fails)
		}
	}
}

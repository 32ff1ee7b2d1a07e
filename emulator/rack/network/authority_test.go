package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// Opened again, an authority has the same certificate and issues the same ones.
func TestAuthorityIsTheSameWhenOpenedAgain(t *testing.T) {
	dir := t.TempDir()
	a, err := OpenAuthority(dir, "one")
	if err != nil {
		t.Fatal(err)
	}
	of := ServerCertificate{Host: "node-0", Addr: netip.MustParseAddr("127.64.0.1"), Kind: bmc.P256}
	first, err := a.Issue(of)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Issue(of); err != nil || again != first {
		t.Errorf("Issue(%v) again = %v, %v, want the same", of, again, err)
	}
	for i := range 3 {
		clear(a.certs)
		for n := range maxCerts { // stand-ins: making certificates is slow
			a.certs[ServerCertificate{Addr: netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)})}] = first
		}
		if _, err := a.Issue(ServerCertificate{Addr: netip.AddrFrom4([4]byte{127, 64, 0, byte(i)}), Kind: bmc.P256}); err != nil || len(a.certs) > maxCerts {
			t.Errorf("%d certificates in memory, %v, want at most %d", len(a.certs), err, maxCerts)
		}
	}
	b, err := OpenAuthority(dir, "one")
	if err != nil || !b.cert.Equal(a.cert) {
		t.Errorf("the authority differs after it was opened again: %v", err)
	}
	if same, err := b.Issue(of); err != nil || !parsed(t, same).Equal(parsed(t, first)) {
		t.Errorf("the certificate differs after the authority was opened again: %v", err)
	}
	if err := writeFile(dir+"/"+CAKeyFile, []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenAuthority(dir, "one"); err == nil || !strings.Contains(err.Error(), "remove both") {
		t.Errorf("OpenAuthority() with a broken key = %v, want an error that says what to do", err)
	}
}

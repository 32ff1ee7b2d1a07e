package network

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

func parsed(t *testing.T, c *tls.Certificate) *x509.Certificate {
	t.Helper()
	x, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestCertificatesAreValidForTheServersNames(t *testing.T) {
	ca, err := OpenAuthority(t.TempDir(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for _, of := range []ServerCertificate{
		{Host: "n", Addr: netip.MustParseAddr("192.0.2.7"), Name: "racks-0.shards.example.com"},
		{Host: strings.Repeat("rack-1.", 30) + "1", Addr: netip.MustParseAddr("2001:db8::1")},
		{Host: "r", Addr: netip.MustParseAddr("127.64.0.3"), Kind: bmc.RSA2048},
	} {
		c, err := ca.Issue(of)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range append(of.names(), of.Addr.String()) {
			if _, err := parsed(t, c).Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// BMCs with an RSA key share it; their certificates differ and stay the same.
func TestRSACertificatesShareOneKey(t *testing.T) {
	dir := t.TempDir()
	ca, err := OpenAuthority(dir, "lab")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	of := ServerCertificate{Host: "node-0", Addr: netip.MustParseAddr("127.64.0.1"), Kind: bmc.RSA2048}
	one, err := ca.Issue(of)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := one.PrivateKey.(*rsa.PrivateKey); !ok {
		t.Fatalf("the key is a %T", one.PrivateKey)
	}
	for _, name := range []string{"node-0", "127.64.0.1"} {
		if _, err := parsed(t, one).Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	next := of
	next.Host = "node-1"
	two, err := ca.Issue(next)
	if err != nil || parsed(t, two).Equal(parsed(t, one)) {
		t.Errorf("two BMCs have the same certificate, %v", err)
	}
	if ca, err = OpenAuthority(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	if again, err := ca.Issue(of); err != nil || !parsed(t, again).Equal(parsed(t, one)) {
		t.Errorf("the certificate differs after the authority was opened again: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, RSAKeyFile), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ca, err = OpenAuthority(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	if _, err := ca.Issue(of); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("Issue() with a broken key = %v, want an error that says what to do", err)
	}
}

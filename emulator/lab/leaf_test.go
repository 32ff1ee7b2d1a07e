package lab

import (
	"bytes"
	"crypto"
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

func TestCertificatesOfAMoldAreAsOthers(t *testing.T) {
	ca, err := openAuthority(t.TempDir(), "lab")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	for i, of := range []leaf{
		{host: "node-0", addr: netip.MustParseAddr("127.64.0.1")},
		{host: "node-0", addr: netip.MustParseAddr("127.64.0.1")}, // now of the mold
		{host: "n", addr: netip.MustParseAddr("127.64.0.2")},
		{host: strings.Repeat("rack-1-", 30) + "1", addr: netip.MustParseAddr("127.65.128.254")},
		{host: strings.Repeat("rack-1-", 60) + "1", addr: netip.MustParseAddr("2001:db8::1")},
		{host: "r", addr: netip.MustParseAddr("127.64.0.3"), kind: bmc.RSA2048},
		{host: "r", addr: netip.MustParseAddr("127.64.0.3"), kind: bmc.RSA2048}, // of a mold of its own
		{host: "n", addr: netip.MustParseAddr("127.64.0.2")},
	} {
		c, err := ca.make(of)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := ca.molds.Load(of.kind); !ok {
			t.Fatal("no mold was made")
		}
		x := parsed(t, c)
		if _, err := x.Verify(x509.VerifyOptions{Roots: roots, DNSName: of.addr.String()}); err != nil {
			t.Errorf("%d: %v", i, err)
		}
		want, err := ca.whole(of, x.SerialNumber, c.PrivateKey.(crypto.Signer))
		if err != nil || !bytes.Equal(c.Certificate[0], want) {
			t.Errorf("%d: %v\ngot  %x\nwant %x", i, err, c.Certificate[0], want)
		}
	}
}

func TestRSACertificates(t *testing.T) {
	dir := t.TempDir()
	ca, err := openAuthority(dir, "lab")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.cert)
	of := leaf{host: "node-0", addr: netip.MustParseAddr("127.64.0.1"), kind: bmc.RSA2048}
	one, err := ca.of(of)
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
	next.host = "node-1"
	two, err := ca.of(next)
	if err != nil || parsed(t, two).Equal(parsed(t, one)) {
		t.Errorf("two BMCs have one certificate, %v", err)
	}
	if ca, err = openAuthority(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	if again, err := ca.of(of); err != nil || !parsed(t, again).Equal(parsed(t, one)) {
		t.Errorf("the certificate is another one when the authority is opened again: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, rsaKey), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if ca, err = openAuthority(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	if _, err := ca.of(of); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("of() with a broken key = %v, want the way out", err)
	}
}

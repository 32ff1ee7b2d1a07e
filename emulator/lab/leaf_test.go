package lab

import (
	"crypto/rsa"
	"crypto/x509"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

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
		if _, err := one.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name}); err != nil {
			t.Error(err)
		}
	}
	next := of
	next.host = "node-1"
	two, err := ca.of(next)
	if err != nil || two.Leaf.Equal(one.Leaf) {
		t.Errorf("two BMCs have one certificate, %v", err)
	}
	if ca, err = openAuthority(dir, "lab"); err != nil {
		t.Fatal(err)
	}
	if again, err := ca.of(of); err != nil || !again.Leaf.Equal(one.Leaf) {
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

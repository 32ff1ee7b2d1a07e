package inband

import (
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestIdentityIsTheSameAfterARestart(t *testing.T) {
	dir, now := t.TempDir(), time.Unix(1_800_000_000, 0)
	one, err := LoadIdentity(dir, now, net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatalf("LoadIdentity: %v", err)
	}
	two, err := LoadIdentity(dir, now.Add(time.Hour), net.IPv4(127, 0, 0, 1))
	if err != nil || string(two.Key) != string(one.Key) || two.CA != one.CA {
		t.Fatalf("LoadIdentity again: %v, want the same key and certificate", err)
	}
	verify(t, one, one.CA, now, net.IPv4(127, 0, 0, 1))
	for _, name := range []string{keyFile, authorityFile} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", name, st.Mode(), err)
		}
	}
}

// verify verifies a certificate as an agent does that trusts a CA.
func verify(t *testing.T, id Identity, ca string, now time.Time, address net.IP) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(ca))
	leaf, err := x509.ParseCertificate(id.Certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: address.String(), CurrentTime: now}); err != nil {
		t.Errorf("Verify of %s: %v", address, err)
	}
}

func TestAgentsTrustTheNextProcessAtAnotherAddress(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	secrets, err := NewSecrets(now)
	if err != nil {
		t.Fatalf("NewSecrets: %v", err)
	}
	one, err := NewIdentity(secrets, now, net.IPv4(192, 0, 2, 1))
	if err != nil {
		t.Fatalf("NewIdentity: %v", err)
	}
	two, err := NewIdentity(secrets, now, net.IPv4(192, 0, 2, 2))
	if err != nil {
		t.Fatalf("NewIdentity: %v", err)
	}
	verify(t, two, one.CA, now, net.IPv4(192, 0, 2, 2))
	if err := two.Certificate.Leaf.VerifyHostname("192.0.2.1"); err == nil {
		t.Error("the certificate is valid for the address of another process")
	}
	if two.Certificate.Leaf.IsCA {
		t.Error("the server's certificate is a certificate authority")
	}
}

func TestShortKeyIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, keyFile), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadIdentity(dir, time.Unix(0, 0)); err == nil {
		t.Fatal("LoadIdentity with a short key = nil error")
	}
}

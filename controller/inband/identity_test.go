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
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(one.CA))
	leaf, err := x509.ParseCertificate(one.Certificate.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: "127.0.0.1", CurrentTime: now}); err != nil {
		t.Errorf("Verify against its own CA: %v", err)
	}
	for _, name := range []string{keyFile, certificateFile} {
		if st, err := os.Stat(filepath.Join(dir, name)); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v, want 0600", name, st.Mode(), err)
		}
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

package rack_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/racktest"
	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/prerequisites"
)

// certificate makes a self-signed certificate for a host's address, and its key.
func certificate(t *testing.T, h *rack.Host) (der []byte, key bmc.Key) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Hour.Nanoseconds()), Subject: pkix.Name{CommonName: "of a client"},
		IPAddresses: nil, DNSNames: []string{h.Name()}, NotBefore: clock.Wall().Add(-time.Hour), NotAfter: clock.Wall().Add(24 * time.Hour),
	}
	c.IPAddresses = append(c.IPAddresses, h.Address().Addr().AsSlice())
	der, err = x509.CreateCertificate(rand.Reader, c, c, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	if key, err = x509.MarshalPKCS8PrivateKey(k); err != nil {
		t.Fatal(err)
	}
	return der, key
}

// shown connects without verification, and returns the BMC's certificate and the
// connection.
func shown(t *testing.T, h *rack.Host, c *tls.Config) (*x509.Certificate, *tls.Conn) {
	t.Helper()
	if c == nil {
		c = &tls.Config{}
	}
	c.InsecureSkipVerify, c.MinVersion = true, tls.VersionTLS12
	conn, err := tls.Dial("tcp", h.Address().String(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn.ConnectionState().PeerCertificates[0], conn
}

// probe sends a request on a connection and leaves it open.
func probe(t *testing.T, conn *tls.Conn) {
	t.Helper()
	if _, err := fmt.Fprint(conn, "GET /redfish HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 4096)
	n, err := conn.Read(b)
	if err != nil || !bytes.HasPrefix(b[:n], []byte("HTTP/1.1 200")) {
		t.Fatalf("answer = %q, %v", b[:n], err)
	}
}

// TestReplaceCertificateTakesEffectAtOnce shows statement B7.
func TestReplaceCertificateTakesEffectAtOnce(t *testing.T) {
	dir := t.TempDir()
	l := racktest.Start(t, rack.Config{Dir: dir, Rack: hosts(2)})
	h, other := l.Hosts()[0], l.Hosts()[1]
	sessions := tls.NewLRUClientSessionCache(4)
	factory, before := shown(t, h, &tls.Config{ClientSessionCache: sessions})
	probe(t, before) // also receives a session ticket
	ofOther, _ := shown(t, other, nil)
	der, key := certificate(t, h)
	if _, err := h.ApplyBMC(t.Context(), bmc.InstallHTTPS{Chain: [][]byte{der}, Key: key}); err != nil {
		t.Fatal(err)
	}
	probe(t, before) // open connections stay open
	if got, conn := shown(t, h, &tls.Config{ClientSessionCache: sessions}); !bytes.Equal(got.Raw, der) || conn.ConnectionState().DidResume {
		t.Error("a client that was here before does not see the new certificate")
	}
	if got, _ := shown(t, h, nil); !bytes.Equal(got.Raw, der) {
		t.Error("a new client does not see the new certificate")
	}
	if got, _ := shown(t, other, nil); !got.Equal(ofOther) {
		t.Error("another BMC has changed its certificate")
	}
	l.Stop()
	l = racktest.Start(t, rack.Config{Dir: dir})
	h, other = l.Hosts()[0], l.Hosts()[1]
	if got, _ := shown(t, h, nil); !bytes.Equal(got.Raw, der) {
		t.Error("the certificate is gone after a restart")
	}
	if got, _ := shown(t, other, nil); !got.Equal(ofOther) {
		t.Error("another BMC has another certificate after a restart")
	}
	if _, err := h.ApplyBMC(t.Context(), bmc.RemoveHTTPS{}); err != nil {
		t.Fatal(err)
	}
	if got, _ := shown(t, h, nil); !got.Equal(factory) {
		t.Error("the certificate that the BMC came with is not back")
	}
	if installed, err := h.FactoryCertificate(); err != nil || !bytes.Equal(installed.Chain[0], factory.Raw) {
		t.Errorf("FactoryCertificate() = %v, want what clients see", err)
	}
}

func TestTLS12And13(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		_, conn := shown(t, l.First(), &tls.Config{MaxVersion: version})
		if got := conn.ConnectionState().Version; got != version {
			t.Errorf("spoke %s, want %s", tls.VersionName(got), tls.VersionName(version))
		}
		probe(t, conn)
	}
	conn, err := tls.Dial("tcp", l.First().Address().String(), &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	if err == nil {
		conn.Close()
		t.Error("TLS 1.1 is spoken")
	}
}

// With the fault old, clients of today reach no agreement with the BMC, and old ones do.
func TestOldTLSFault(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	fail(t, l, fault.Rule{TLS: fault.OldTLS})
	at := l.First().Address().String()
	if conn, err := tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true}); err == nil {
		conn.Close()
		t.Error("a client of TLS 1.2 and later connects")
	}
	conn, err := tls.Dial("tcp", at, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10})
	if err != nil {
		t.Fatalf("Dial() with TLS 1.0 and later: %v", err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().Version; got != tls.VersionTLS11 {
		t.Errorf("spoke %s, want TLS 1.1", tls.VersionName(got))
	}
}

// A certificate fault affects every client.
func TestCertificateFaults(t *testing.T) {
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	for flaw, is := range map[fault.TLS]func(c *x509.Certificate, verify error) bool{
		fault.NotYet: func(c *x509.Certificate, err error) bool {
			var invalid x509.CertificateInvalidError
			return errors.As(err, &invalid) && invalid.Reason == x509.Expired && c.NotBefore.After(clock.Wall())
		},
		fault.SHA1: func(c *x509.Certificate, err error) bool {
			return err != nil && c.SignatureAlgorithm == x509.ECDSAWithSHA1
		},
	} {
		remove := fail(t, l, fault.Rule{TLS: flaw})
		c, _ := shown(t, h, nil)
		_, err := c.Verify(x509.VerifyOptions{Roots: l.CAs()})
		if !is(c, err) {
			t.Errorf("%s: the certificate verifies as %v", flaw, err)
		}
		remove()
		c, _ = shown(t, h, nil)
		if _, err := c.Verify(x509.VerifyOptions{Roots: l.CAs(), DNSName: h.Name()}); err != nil {
			t.Errorf("after %s: %v", flaw, err)
		}
	}
}

// curl and openssl accept the certificates, before and after a replacement.
func TestCurlAndOpenSSLAcceptCertificates(t *testing.T) {
	prerequisites.Need(t, "curl")
	prerequisites.Need(t, "openssl")
	l := racktest.Start(t, rack.Config{})
	h := l.First()
	user, password := l.Credentials(h)
	run := func(name string, args ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience.Of(time.Minute))
		defer cancel()
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.Stdin = strings.NewReader("Q\n")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		return string(out)
	}
	trust := l.CAFile()
	both := func() {
		t.Helper()
		for _, version := range []string{"1.2", "1.3"} {
			out := run("curl", "-sS", "--cacert", trust, "--tls-max", version, "-u", user+":"+password, h.URL()+"/redfish/v1/Systems/1")
			if !strings.Contains(out, `"ComputerSystem`) && !strings.Contains(out, "#ComputerSystem") {
				t.Errorf("curl with TLS %s: %s", version, out)
			}
			out = run("openssl", "s_client", "-connect", h.Address().String(), "-CAfile", trust, "-verify_return_error", "-brief", "-tls"+strings.Replace(version, ".", "_", 1))
			if !strings.Contains(out, "Verification: OK") {
				t.Errorf("openssl with TLS %s: %s", version, out)
			}
		}
	}
	both()
	der, key := certificate(t, h)
	if _, err := h.ApplyBMC(t.Context(), bmc.InstallHTTPS{Chain: [][]byte{der}, Key: key}); err != nil {
		t.Fatal(err)
	}
	trust = filepath.Join(t.TempDir(), "own.pem")
	if err := os.WriteFile(trust, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	both()
}

package bmc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func newKey(t *testing.T) Key {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// signed is a certificate of a key that ends a day after origin.
func signed(t *testing.T, k Key, use ...x509.ExtKeyUsage) [][]byte {
	t.Helper()
	s, err := k.Signer()
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "bmc"}, NotBefore: origin.Add(-time.Hour), NotAfter: origin.Add(24 * time.Hour),
		ExtKeyUsage: use,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, s.Public(), s)
	if err != nil {
		t.Fatal(err)
	}
	return [][]byte{der}
}

func TestHTTPSCertificateLifecycle(t *testing.T) {
	b := newBMC()
	key := newKey(t)
	chain := signed(t, key, x509.ExtKeyUsageServerAuth)
	refused(t, b, origin, InstallHTTPS{Chain: chain}, ErrKey)
	evs := do(t, b, origin, RequestCertificate{Key: key, Request: x509.CertificateRequest{Subject: pkix.Name{CommonName: "bmc"}}})
	csr, err := x509.ParseCertificateRequest(evs[0].(CertificateRequested).Request)
	if err != nil || csr.CheckSignature() != nil || csr.Subject.CommonName != "bmc" {
		t.Fatalf("request = %+v, %v", csr, err)
	}
	// A second request does not make the first one void.
	do(t, b, origin, RequestCertificate{Key: newKey(t)})
	evs = do(t, b, origin, InstallHTTPS{Chain: chain})
	if id := evs[0].(CertificateInstalled).ID; id != "2" {
		t.Errorf("ID of the certificate = %s, want 2: 1 is the one that it came with", id)
	}
	raw, err := json.Marshal(b.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(b.State().Certificates, st.Certificates); d != "" {
		t.Errorf("stored and read again (-want +got):\n%s", d)
	}
	v := b.View().Certificates
	if len(v.HTTPS.Key)+len(v.Keys) > 0 || !cmp.Equal(v.HTTPS.Chain, chain) {
		t.Errorf("the view shows %+v", v)
	}
	// Renewed with the same key, it is another certificate.
	if evs = do(t, b, origin, RequestCertificate{}); len(evs) != 1 {
		t.Errorf("a request with the key of its own: %v", evs)
	}
	evs = do(t, b, origin, InstallHTTPS{Chain: signed(t, key)})
	if id := evs[0].(CertificateInstalled).ID; id != "3" {
		t.Errorf("ID of the renewed certificate = %s, want 3", id)
	}
	do(t, b, origin, RemoveHTTPS{})
	refused(t, b, origin, RemoveHTTPS{}, ErrNotFound)
	refused(t, b, origin, RequestCertificate{}, ErrKey)
	do(t, b, origin, InstallHTTPS{Chain: chain, Key: key})
}

func TestSigningRequestKeysAreBounded(t *testing.T) {
	b := newBMC()
	first := newKey(t)
	do(t, b, origin, RequestCertificate{Key: first})
	for range maxKeys {
		do(t, b, origin, RequestCertificate{Key: newKey(t)})
	}
	refused(t, b, origin, InstallHTTPS{Chain: signed(t, first)}, ErrKey)
}

func TestInvalidCertificatesAreRefused(t *testing.T) {
	b := newBMC()
	key := newKey(t)
	for _, tt := range []struct {
		name string
		c    Command
		want error
	}{
		{"nothing", InstallHTTPS{Key: key}, ErrCertificate},
		{"noise", InstallHTTPS{Chain: [][]byte{{1, 2}}, Key: key}, ErrCertificate},
		{"expired", InstallHTTPS{Chain: signed(t, key), Key: key, RealTime: origin.Add(25 * time.Hour)}, ErrExpired},
		{"of a client", InstallHTTPS{Chain: signed(t, key, x509.ExtKeyUsageClientAuth), Key: key}, ErrUse},
		{"of another key", InstallHTTPS{Chain: signed(t, newKey(t)), Key: key}, ErrKey},
		{"with a bad key", InstallHTTPS{Chain: signed(t, key), Key: Key("x")}, ErrKey},
		{"trusted noise", Trust{Store: BootStore, Chain: [][]byte{{}}}, ErrCertificate},
		{"trusted and expired", Trust{Store: BootStore, Chain: signed(t, key), RealTime: origin.Add(25 * time.Hour)}, ErrExpired},
	} {
		t.Run(tt.name, func(t *testing.T) { refused(t, b, origin, tt.c, tt.want) })
	}
}

func TestTrustStores(t *testing.T) {
	b := newGuarded()
	key := newKey(t)
	cd := MediaStore("Cd")
	one := do(t, b, origin, Trust{Store: cd, Chain: signed(t, key)})[0].(CertificateInstalled).ID
	two := do(t, b, origin, Trust{Store: cd, Chain: signed(t, key), Instead: one})[0].(CertificateInstalled).ID
	if got := b.View().Certificates.Store(cd); len(got) != 1 || got[0].ID != two || one == two {
		t.Errorf("after a replacement: %v", got)
	}
	if got := b.View().Certificates.Store(BootStore); len(got) != 0 {
		t.Errorf("another store holds %v", got)
	}
	refused(t, b, origin, Trust{Store: cd, Chain: signed(t, key), Instead: one}, ErrNotFound)
	refused(t, b, origin, Distrust{Store: cd, ID: one}, ErrNotFound)
	do(t, b, origin, Distrust{Store: cd, ID: two})
	for range maxStore {
		do(t, b, origin, Trust{Store: cd, Chain: signed(t, key)})
	}
	refused(t, b, origin, Trust{Store: cd, Chain: signed(t, key)}, ErrFull)

	do(t, b, origin, Trust{Store: AccountStore("2"), Chain: signed(t, key)})
	do(t, b, origin, RemoveAccount{"2"})
	if got := b.View().Certificates.Store(AccountStore("2")); len(got) != 0 {
		t.Error("an account that is gone has left certificates")
	}
}

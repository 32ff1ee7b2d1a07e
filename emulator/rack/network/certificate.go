package network

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
)

// ServerCertificate identifies the certificate that a server of the rack comes
// with: the server, its address, the kind of its key, and what is wrong with the
// certificate.
type ServerCertificate struct {
	Host string
	Addr netip.Addr
	Kind bmc.KeyKind
	// Name is a further DNS name of the server; "" for none.
	Name string
	Flaw fault.TLS // "": nothing is wrong
}

// names returns the DNS names in the certificate.
func (s ServerCertificate) names() []string {
	if s.Name == "" {
		return []string{s.Host}
	}
	return []string{s.Host, s.Name}
}

// Issue returns a server certificate with its key. It is the same one each time,
// also after the rack was opened again.
func (a *Authority) Issue(s ServerCertificate) (*tls.Certificate, error) {
	a.mu.Lock()
	c := a.certs[s]
	a.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := a.make(s) // callers that do this at the same time make the same certificate
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.certs) >= maxCerts { // rare, and making a certificate again takes 0.2 ms
		clear(a.certs)
	}
	a.certs[s] = c
	return c, nil
}

// make makes a certificate. All its parts are derived from the authority's
// secret, so that clients which have pinned the certificate find it again.
func (a *Authority) make(s ServerCertificate) (*tls.Certificate, error) {
	key, err := a.serverKey(s)
	if err != nil {
		return nil, err
	}
	raw, err := a.derive("serial", s, 0, 16)
	if err != nil {
		return nil, err
	}
	der, err := a.create(s, serialNumber(raw), key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// create makes a certificate with the flaw that s asks for.
func (a *Authority) create(s ServerCertificate, serial *big.Int, key crypto.Signer) ([]byte, error) {
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"Metalab"}, CommonName: s.Addr.String()},
		DNSNames:     s.names(),
		IPAddresses:  []net.IP{s.Addr.AsSlice()},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if s.Kind == bmc.RSA2048 {
		t.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	parent, signer := a.cert, a.key
	switch s.Flaw {
	case fault.Expired: // by real time, which is what clients check against
		t.NotAfter = clock.Wall().Add(-24 * time.Hour)
		t.NotBefore = t.NotAfter.AddDate(-1, 0, 0)
	case fault.NotYet:
		t.NotBefore = t.NotAfter.AddDate(-1, 0, 0)
	case fault.WrongName: // an address for documentation (RFC 5737)
		t.Subject.CommonName, t.DNSNames, t.IPAddresses = "192.0.2.1", nil, []net.IP{{192, 0, 2, 1}}
	case fault.SelfSigned:
		parent, signer = t, key
	case fault.SHA1: // the authority has an ECDSA key
		t.SignatureAlgorithm = x509.ECDSAWithSHA1
	}
	// Without a source of randomness the signature is deterministic (RFC 6979).
	return x509.CreateCertificate(nil, t, parent, key.Public(), signer)
}

// serverKey returns the key of a certificate.
func (a *Authority) serverKey(s ServerCertificate) (crypto.Signer, error) {
	if s.Kind == bmc.RSA2048 {
		return a.sharedRSA()
	}
	for n := byte(0); ; n++ { // 1 of 2^32 derived values is no valid key
		raw, err := a.derive("key", s, n, 32)
		if err != nil {
			return nil, err
		}
		if k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw); err == nil {
			return k, nil
		}
	}
}

// PrepareRSA makes the RSA key that BMCs share, if there is none yet. Issue
// returns the error if that fails.
func (a *Authority) PrepareRSA() { _, _ = a.sharedRSA() }

// sharedRSA returns the key of all BMCs of the rack that have an RSA key. Making
// one takes as long as a thousand ECDSA keys, and an RSA key cannot be derived.
// The certificates of the BMCs still differ.
func (a *Authority) sharedRSA() (crypto.Signer, error) {
	a.making.Lock()
	defer a.making.Unlock()
	if a.rsa != nil {
		return a.rsa, nil
	}
	b, err := os.ReadFile(a.rsaFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if a.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
			return nil, err
		}
		der, err := x509.MarshalPKCS8PrivateKey(a.rsa)
		if err != nil {
			return nil, err
		}
		return a.rsa, writeFile(a.rsaFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
	case err != nil:
		return nil, err
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("%s holds no key: remove it to have a new one made", a.rsaFile)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to have a new one made", a.rsaFile, err)
	}
	k, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s holds no RSA key: remove it to have a new one made", a.rsaFile)
	}
	a.rsa = k
	return k, nil
}

// derive returns size bytes for one purpose of one certificate, derived from the
// authority's secret (HKDF, RFC 5869).
func (a *Authority) derive(purpose string, s ServerCertificate, n byte, size int) ([]byte, error) {
	info := fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s\x00%d", purpose, s.Host, s.Addr, s.Kind, s.Flaw, n)
	return hkdf.Key(sha256.New, a.secret, nil, info, size)
}

package lab

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

// leaf names a certificate that a BMC comes with: whose it is, and what is
// wrong with it.
type leaf struct {
	host string
	addr netip.Addr
	kind bmc.KeyKind
	flaw fault.TLS // "": nothing
}

// of is a BMC's certificate with its key.
func (a *authority) of(l leaf) (*tls.Certificate, error) {
	a.mu.Lock()
	c := a.certs[l]
	a.mu.Unlock()
	if c != nil {
		return c, nil
	}
	c, err := a.make(l) // perhaps not alone: the others make the same one
	if err != nil {
		return nil, fmt.Errorf("lab: certificate: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.certs) >= maxCerts { // rare, and making one again takes 0.1 ms
		clear(a.certs)
	}
	a.certs[l] = c
	return c, nil
}

// make makes a certificate: the same one each time, so that clients which have
// pinned it find it again.
func (a *authority) make(l leaf) (*tls.Certificate, error) {
	key, err := a.leafKey(l)
	if err != nil {
		return nil, err
	}
	raw, err := a.derive("serial", l, 0, 16)
	if err != nil {
		return nil, err
	}
	serial := positive(raw)
	if l.flaw == "" {
		if m, ok := a.molds.Load(l.kind); ok {
			der, err := m.(*mold).cast(l, serial, key.Public(), a.key)
			return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
		}
	}
	der, err := a.whole(l, serial, key)
	if err != nil {
		return nil, err
	}
	if l.flaw == "" {
		first, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		m, err := newMold(first)
		if err != nil {
			return nil, err
		}
		a.molds.Store(l.kind, m)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// whole makes a certificate of any kind.
func (a *authority) whole(l leaf, serial *big.Int, key crypto.Signer) ([]byte, error) {
	t := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{Organization: []string{"Metalab"}, CommonName: l.addr.String()},
		DNSNames:     []string{l.host},
		IPAddresses:  []net.IP{l.addr.AsSlice()},
		NotBefore:    a.cert.NotBefore,
		NotAfter:     a.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if l.kind == bmc.RSA2048 {
		t.KeyUsage |= x509.KeyUsageKeyEncipherment
	}
	parent, signer := a.cert, a.key
	switch l.flaw {
	case fault.Expired: // for clients, whose clocks show real time
		t.NotAfter = clock.Wall().Add(-24 * time.Hour)
		t.NotBefore = t.NotAfter.AddDate(-1, 0, 0)
	case fault.NotYet:
		t.NotBefore = t.NotAfter.AddDate(-1, 0, 0)
	case fault.WrongName: // an address for documentation (RFC 5737)
		t.Subject.CommonName, t.DNSNames, t.IPAddresses = "192.0.2.1", nil, []net.IP{{192, 0, 2, 1}}
	case fault.SelfSigned:
		parent, signer = t, key
	case fault.SHA1: // the authority's key is an ECDSA one
		t.SignatureAlgorithm = x509.ECDSAWithSHA1
	}
	// Without chance, the signature is the same each time too (RFC 6979).
	return x509.CreateCertificate(nil, t, parent, key.Public(), signer)
}

// leafKey is the key of a certificate.
func (a *authority) leafKey(l leaf) (crypto.Signer, error) {
	if l.kind == bmc.RSA2048 {
		return a.sharedRSA()
	}
	for n := byte(0); ; n++ { // until it is one: 1 in 2^32 is not
		raw, err := a.derive("key", l, n, 32)
		if err != nil {
			return nil, err
		}
		if k, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), raw); err == nil {
			return k, nil
		}
	}
}

// prepare makes what takes long to make, if it has not been made yet. What went
// wrong is told to who needs it.
func (a *authority) prepare() { _, _ = a.sharedRSA() }

// sharedRSA is the key of all BMCs of the lab that have an RSA key. Making one
// takes as long as a thousand of the other kind, and an RSA key cannot be
// derived; the certificates still differ.
func (a *authority) sharedRSA() (crypto.Signer, error) {
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
		return nil, fmt.Errorf("%s: it holds no key: remove it to have a new one made", a.rsaFile)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: remove it to have a new one made", a.rsaFile, err)
	}
	k, ok := key.(*rsa.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%s: no RSA key: remove it to have a new one made", a.rsaFile)
	}
	a.rsa = k
	return k, nil
}

// derive makes bytes of the lab's secret, for one purpose of one certificate.
func (a *authority) derive(purpose string, l leaf, n byte, size int) ([]byte, error) {
	return hkdf.Key(sha256.New, a.secret, nil, fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00%s\x00%d", purpose, l.host, l.addr, l.kind, l.flaw, n), size)
}

// positive makes a serial number of bytes: positive, and as long for all (RFC
// 5280, §4.1.2.2).
func positive(b []byte) *big.Int {
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b)
}

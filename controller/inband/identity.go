package inband

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Identity is what agents know a controller by: the key that signs their tokens
// and the authority of the certificate that the server shows. Both outlive the
// process, because agents that were booted before it went must find the same
// after. The certificate does not: each process has one for the addresses that
// it is reached at.
type Identity struct {
	Key         Key
	Certificate tls.Certificate
	CA          string // PEM that agents trust
}

// What is kept of an identity: files of a directory, or keys of a Secret.
const (
	keyFile       = "inband.key"
	authorityFile = "inband.pem" // certificate and key
	validity      = 10 * 365 * 24 * time.Hour
)

// secrets are what is kept, by name, and how each is made.
var secrets = []struct {
	name string
	make func(now time.Time) ([]byte, error)
}{
	{keyFile, func(time.Time) ([]byte, error) {
		k := make([]byte, KeySize)
		_, err := rand.Read(k)
		return k, err
	}},
	{authorityFile, newAuthority},
}

// NewSecrets makes what is to be kept of a new identity. now is the wall time.
func NewSecrets(now time.Time) (map[string][]byte, error) {
	kept := map[string][]byte{}
	for _, s := range secrets {
		b, err := s.make(now)
		if err != nil {
			return nil, fmt.Errorf("inband: %s: %w", s.name, err)
		}
		kept[s.name] = b
	}
	return kept, nil
}

// NewIdentity makes an identity of what was kept, with a certificate for these
// addresses. now is the wall time.
func NewIdentity(kept map[string][]byte, now time.Time, addresses ...net.IP) (Identity, error) {
	key := Key(kept[keyFile])
	if len(key) < KeySize {
		return Identity{}, fmt.Errorf("inband: %s: %d bytes, need %d: remove it, and agents that run will be refused", keyFile, len(key), KeySize)
	}
	authority, err := tls.X509KeyPair(kept[authorityFile], kept[authorityFile])
	if err != nil {
		return Identity{}, fmt.Errorf("inband: %s: %w", authorityFile, err)
	}
	cert, err := newCertificate(authority, now, addresses)
	if err != nil {
		return Identity{}, fmt.Errorf("inband: certificate: %w", err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate[0]})
	return Identity{Key: key, Certificate: cert, CA: string(ca)}, nil
}

// LoadIdentity reads the identity that is kept in dir, or makes one. now is the
// wall time, addresses are those that agents reach this process at.
func LoadIdentity(dir string, now time.Time, addresses ...net.IP) (Identity, error) {
	kept := map[string][]byte{}
	for _, s := range secrets {
		b, err := load(filepath.Join(dir, s.name), func() ([]byte, error) { return s.make(now) })
		if err != nil {
			return Identity{}, err
		}
		kept[s.name] = b
	}
	return NewIdentity(kept, now, addresses...)
}

// load reads a file, or makes it whole.
func load(name string, build func() ([]byte, error)) ([]byte, error) {
	b, err := os.ReadFile(name)
	if err == nil {
		return b, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("inband: %w", err)
	}
	if b, err = build(); err != nil {
		return nil, fmt.Errorf("inband: %s: %w", filepath.Base(name), err)
	}
	// A rename is whole or not at all: a file cut short would be worse than
	// none.
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		return nil, fmt.Errorf("inband: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return nil, fmt.Errorf("inband: %w", err)
	}
	return b, nil
}

// newAuthority makes the certificate that agents trust, and its key, as PEM.
func newAuthority(now time.Time) ([]byte, error) {
	key, serial, err := newKey()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Metalab controller CA"},
		NotBefore:    now.Add(-time.Hour), // servers' clocks are rarely right
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	raw, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(out, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})...), nil
}

// newCertificate makes a server's certificate. It is valid as long as its
// authority: no more would come of an earlier end than agents that are lost.
func newCertificate(authority tls.Certificate, now time.Time, addresses []net.IP) (tls.Certificate, error) {
	key, serial, err := newKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Metalab controller"},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     authority.Leaf.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:  addresses,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, authority.Leaf, &key.PublicKey, authority.PrivateKey)
	if err != nil {
		return tls.Certificate{}, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der, authority.Certificate[0]}, PrivateKey: key, Leaf: leaf}, nil
}

func newKey() (*ecdsa.PrivateKey, *big.Int, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	return key, serial, err
}

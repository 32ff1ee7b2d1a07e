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

// Identity identifies the controllers to their agents: it has the key that signs the
// agents' tokens, and the certificate authority that the agents trust. Both outlive the
// process, because agents that one process has booted have to accept the next one. The
// certificate does not: each process makes one for the addresses at which agents reach it.
type Identity struct {
	Key         Key
	Certificate tls.Certificate
	CA          string // PEM that agents trust
}

// The stored parts of an identity: files of a directory, or keys of a Secret.
const (
	keyFile       = "inband.key"
	authorityFile = "inband.pem" // certificate and key
	validity      = 10 * 365 * 24 * time.Hour
)

// secrets are the stored parts of an identity and the functions that create them.
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

// NewSecrets returns the parts of a new identity that have to be stored, by name. now is
// the wall time.
func NewSecrets(now time.Time) (map[string][]byte, error) {
	stored := map[string][]byte{}
	for _, s := range secrets {
		b, err := s.make(now)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		stored[s.name] = b
	}
	return stored, nil
}

// NewIdentity returns an identity with the stored parts and with a new certificate for
// addresses. now is the wall time.
func NewIdentity(stored map[string][]byte, now time.Time, addresses ...net.IP) (Identity, error) {
	key := Key(stored[keyFile])
	if len(key) < KeySize {
		return Identity{}, fmt.Errorf("%s has %d bytes, need %d: remove it to make a new key, which invalidates the tokens of running agents", keyFile, len(key), KeySize)
	}
	authority, err := tls.X509KeyPair(stored[authorityFile], stored[authorityFile])
	if err != nil {
		return Identity{}, fmt.Errorf("%s: %w: remove it to make a new authority, which running agents do not trust", authorityFile, err)
	}
	cert, err := newCertificate(authority, now, addresses)
	if err != nil {
		return Identity{}, fmt.Errorf("certificate: %w", err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate[0]})
	return Identity{Key: key, Certificate: cert, CA: string(ca)}, nil
}

// LoadIdentity reads the identity in dir, and creates the files that do not exist. now is
// the wall time; the certificate is valid for addresses, at which agents reach this
// process.
func LoadIdentity(dir string, now time.Time, addresses ...net.IP) (Identity, error) {
	stored := map[string][]byte{}
	for _, s := range secrets {
		b, err := load(filepath.Join(dir, s.name), func() ([]byte, error) { return s.make(now) })
		if err != nil {
			return Identity{}, err
		}
		stored[s.name] = b
	}
	id, err := NewIdentity(stored, now, addresses...)
	if err != nil {
		return Identity{}, fmt.Errorf("%s: %w", dir, err)
	}
	return id, nil
}

// load reads a file, or creates it atomically with the bytes that build returns.
func load(name string, build func() ([]byte, error)) ([]byte, error) {
	b, err := os.ReadFile(name)
	if err == nil {
		return b, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if b, err = build(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
	}
	// The rename is atomic: after a crash there is no truncated file, which would be worse
	// than none.
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		return nil, err
	}
	if err := os.Rename(name+".new", name); err != nil {
		return nil, err
	}
	return b, nil
}

// newAuthority returns a new certificate authority: its certificate and key as PEM.
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

// newCertificate returns a server certificate that authority signs. It expires with the
// authority: to expire earlier would only cut off agents.
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

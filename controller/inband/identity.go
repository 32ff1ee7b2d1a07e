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
// and the certificate that the server shows. It outlives the process, because
// agents that were booted before it went must find the same one after.
type Identity struct {
	Key         Key
	Certificate tls.Certificate
	CA          string // PEM that agents trust: the certificate itself
}

const (
	keyFile         = "inband.key"
	certificateFile = "inband.pem"
	validity        = 10 * 365 * 24 * time.Hour
)

// LoadIdentity reads the identity that is kept in dir, or makes one for the
// addresses. now is the wall time.
func LoadIdentity(dir string, now time.Time, addresses ...net.IP) (Identity, error) {
	key, err := load(filepath.Join(dir, keyFile), func() ([]byte, error) {
		k := make([]byte, KeySize)
		_, err := rand.Read(k)
		return k, err
	})
	if err != nil {
		return Identity{}, err
	}
	if len(key) < KeySize {
		return Identity{}, fmt.Errorf("inband: %s: %d bytes, need %d: remove it, and agents that run will be refused", keyFile, len(key), KeySize)
	}
	pair, err := load(filepath.Join(dir, certificateFile), func() ([]byte, error) { return newCertificate(now, addresses) })
	if err != nil {
		return Identity{}, err
	}
	cert, err := tls.X509KeyPair(pair, pair)
	if err != nil {
		return Identity{}, fmt.Errorf("inband: %s: %w", certificateFile, err)
	}
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	return Identity{Key: key, Certificate: cert, CA: string(ca)}, nil
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

func newCertificate(now time.Time, addresses []net.IP) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "Metalab controller"},
		NotBefore:    now.Add(-time.Hour), // servers' clocks are rarely right
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IsCA:         true, BasicConstraintsValid: true, // its own issuer
		IPAddresses: addresses,
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

package agent

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// LoadKey reads an agent's key from a file, or makes the file with a new key. The file has
// to be in the memory of the system that the agent runs on: an agent that is restarted
// needs the key of its predecessor, because the token of the boot is bound to it, and the
// next boot needs another one.
func LoadKey(name string) (ed25519.PrivateKey, error) {
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = newKeyFile(name)
	}
	if err != nil {
		return nil, fmt.Errorf("agent: key: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil {
		return nil, fmt.Errorf("agent: key: %s is no PEM file: remove it, and boot the server again", name)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("agent: key: %s: %w", name, err)
	}
	local, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("agent: key: %s is of another algorithm than Ed25519: %T", name, key)
	}
	return local, nil
}

// newKeyFile writes a new key to a file that only this user can read, and returns its
// content.
func newKeyFile(name string) ([]byte, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	b := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	// The rename is atomic: a killed agent leaves no part of a key.
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		return nil, err
	}
	return b, os.Rename(name+".new", name)
}

func newKey() (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return key, err
}

// certificate returns a certificate of a key, which it signs itself. Nobody looks at more
// than the key; the times are those of a certificate that does not expire (RFC 5280,
// §4.1.2.5), because the server's clock may be wrong.
func certificate(key ed25519.PrivateKey) (tls.Certificate, error) {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotBefore:    time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("agent: certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("agent: certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}

package network

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// Files of a rack's certificate authority, in the lab's state directory.
const (
	CACertFile = "ca.crt"
	CAKeyFile  = "ca.key"
	RSAKeyFile = "bmc-rsa.key" // key of the BMCs that have an RSA key
)

const (
	// Clients check certificates against real time, and their clocks may be a
	// little off.
	validBefore = 48 * time.Hour
	validFor    = 10 * 365 * 24 * time.Hour
	maxCerts    = 4096 // certificates in memory
)

// Authority is the certificate authority of one rack. Its certificate and key are
// files in the lab's state directory. Keys and certificates of BMCs are derived from
// them when a client first connects, so they are the same when the rack is opened
// again.
type Authority struct {
	cert *x509.Certificate
	key  crypto.Signer

	secret  []byte // the keys of BMCs are derived from it
	rsaFile string

	making sync.Mutex
	rsa    *rsa.PrivateKey // key of all BMCs that have an RSA key; nil until one is asked for

	mu    sync.Mutex
	certs map[ServerCertificate]*tls.Certificate
}

// OpenAuthority loads the authority of the rack in dir, or makes it.
func OpenAuthority(dir, name string) (*Authority, error) {
	certFile, keyFile := filepath.Join(dir, CACertFile), filepath.Join(dir, CAKeyFile)
	certPEM, err := os.ReadFile(certFile)
	keyPEM, keyErr := os.ReadFile(keyFile)
	if errors.Is(err, fs.ErrNotExist) { // a key alone is from a rack that was killed while it made the authority
		if certPEM, keyPEM, err = newAuthority(name); err == nil {
			err = errors.Join(writeFile(keyFile, keyPEM, 0o600), writeFile(certFile, certPEM, 0o644))
		}
	} else {
		err = errors.Join(err, keyErr)
	}
	const fix = "restore a snapshot (labctl snapshot restore FILE), or remove both to have new ones made, which clients have to trust"
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %s and %s: %w: %s", certFile, keyFile, err, fix)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %s and %s: %w: %s", certFile, keyFile, err, fix)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	return &Authority{
		cert: pair.Leaf, key: pair.PrivateKey.(crypto.Signer), secret: secret, rsaFile: filepath.Join(dir, RSAKeyFile),
		certs: map[ServerCertificate]*tls.Certificate{},
	}, nil
}

// Certificate returns the authority's certificate.
func (a *Authority) Certificate() *x509.Certificate { return a.cert }

// writeFile writes a file so that even a power cut leaves either all of it or
// nothing.
func writeFile(path string, b []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()) // Chmod: the umask may take bits away
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func newAuthority(name string) (certPEM, keyPEM []byte, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	now := clock.Wall()
	number := make([]byte, 16)
	rand.Read(number)
	c := &x509.Certificate{
		SerialNumber:          serialNumber(number),
		Subject:               pkix.Name{Organization: []string{"Metalab"}, CommonName: "Metalab " + name + " CA"},
		NotBefore:             now.Add(-validBefore),
		NotAfter:              now.Add(validFor),
		IsCA:                  true,
		BasicConstraintsValid: true,
		MaxPathLenZero:        true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, err
	}
	certPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return certPEM, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), nil
}

// serialNumber turns random or derived bytes into a serial number that is positive
// and has the same length each time (RFC 5280, §4.1.2.2).
func serialNumber(b []byte) *big.Int {
	b[0] = b[0]&0x7f | 0x40
	return new(big.Int).SetBytes(b)
}

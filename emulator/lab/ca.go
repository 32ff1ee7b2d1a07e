package lab

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
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/lab/outbound"
)

const (
	caCert = "ca.crt"
	caKey  = "ca.key"
	rsaKey = "bmc-rsa.key"
)

const (
	// A certificate is checked against real time, by clients whose clocks may
	// be a little off.
	validBefore = 48 * time.Hour
	validFor    = 10 * 365 * 24 * time.Hour
	maxCerts    = 4096 // kept at a time
)

// authority signs for the BMCs of one lab. Its certificate and key are kept in
// the lab's directory; those of the BMCs are derived from them when a client
// first asks, so that they are the same when the lab is opened again.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer

	secret  []byte // that the keys of BMCs are derived from
	rsaFile string

	making sync.Mutex
	rsa    *rsa.PrivateKey // of all BMCs that have an RSA key; nil until one is asked for

	molds sync.Map // bmc.KeyKind → *mold, once one was made
	mu    sync.Mutex
	certs map[leaf]*tls.Certificate
}

// openAuthority loads the authority of a lab, or makes it.
func openAuthority(dir, name string) (*authority, error) {
	certFile, keyFile := filepath.Join(dir, caCert), filepath.Join(dir, caKey)
	certPEM, err := os.ReadFile(certFile)
	keyPEM, keyErr := os.ReadFile(keyFile)
	if errors.Is(err, fs.ErrNotExist) { // a key alone comes from a lab that was killed while it was made
		if certPEM, keyPEM, err = newAuthority(name); err == nil {
			err = errors.Join(writeFile(keyFile, keyPEM, 0o600), writeFile(certFile, certPEM, 0o644))
		}
	} else {
		err = errors.Join(err, keyErr)
	}
	if err != nil {
		return nil, fmt.Errorf("lab: certificate authority: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("lab: certificate authority: %s and %s: %w: remove both to have new ones made", certFile, keyFile, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("lab: certificate authority: %w", err)
	}
	return &authority{
		cert: pair.Leaf, key: pair.PrivateKey.(crypto.Signer), secret: secret, rsaFile: filepath.Join(dir, rsaKey),
		certs: map[leaf]*tls.Certificate{},
	}, nil
}

// writeFile leaves either nothing or the whole file, even after a power cut.
func writeFile(path string, b []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()) // Chmod: whatever the umask says
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
	c := &x509.Certificate{
		SerialNumber:          serialNumber(),
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

func serialNumber() *big.Int {
	b := make([]byte, 16)
	rand.Read(b)
	return positive(b)
}

// newFetcher makes who fetches images for the BMCs.
func (l *Lab) newFetcher(c outbound.Config) (*outbound.Fetcher, error) {
	if c.RootCAs == nil {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("lab: the system's certificates: %w", err)
		}
		pool.AddCert(l.ca.cert)
		c.RootCAs = pool
	}
	return outbound.New(c), nil
}

// Certificate is one of the lab's authority for a server of the lab that is no
// BMC: the same one each time that the lab is opened.
func (l *Lab) Certificate(name string, addr netip.Addr) (*tls.Certificate, error) {
	return l.ca.of(leaf{host: name, addr: addr, kind: bmc.P256})
}

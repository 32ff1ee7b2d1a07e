package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/fault"
)

// badCerts are certificates with which something is wrong, made when a client
// first asks.
type badCerts struct {
	mu    sync.Mutex
	certs map[badCert]*tls.Certificate
}

type badCert struct {
	of   netip.Addr
	kind fault.TLS
}

// handshake chooses how TLS is spoken on a connection; nil is the right way.
func (l *Lab) handshake(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	c, ok := hello.Conn.(*bmcConn)
	if !ok || c.tls != fault.Refused {
		return nil, nil
	}
	// No suite that a client can know: the handshake ends with an alert.
	return &tls.Config{MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{0xffff}, GetCertificate: l.ca.certificate}, nil
}

// certificate is that of the BMC which a client has reached, or a wrong one.
func (l *Lab) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c, ok := hello.Conn.(*bmcConn)
	if !ok || c.tls == "" {
		return l.ca.certificate(hello)
	}
	return l.bad.of(l.ca, c.LocalAddr().(*net.TCPAddr).AddrPort().Addr().Unmap(), c.tls)
}

// of makes a certificate of an address, or finds it.
func (b *badCerts) of(ca *authority, addr netip.Addr, kind fault.TLS) (*tls.Certificate, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := badCert{addr, kind}
	if c := b.certs[k]; c != nil {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("lab: certificate: %w", err)
	}
	t := &x509.Certificate{
		SerialNumber: serialNumber(),
		Subject:      pkix.Name{Organization: []string{"Metalab"}, CommonName: addr.String()},
		IPAddresses:  []net.IP{addr.AsSlice()},
		NotBefore:    ca.cert.NotBefore,
		NotAfter:     ca.cert.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	parent, signer := ca.cert, any(ca.key)
	switch kind {
	case fault.Expired: // for clients, whose clocks show real time
		t.NotAfter = clock.Wall().Add(-24 * time.Hour)
		t.NotBefore = t.NotAfter.AddDate(-1, 0, 0)
	case fault.WrongName: // an address for documentation (RFC 5737)
		t.Subject.CommonName, t.IPAddresses = "192.0.2.1", []net.IP{{192, 0, 2, 1}}
	case fault.SelfSigned:
		parent, signer = t, key
	}
	der, err := x509.CreateCertificate(rand.Reader, t, parent, key.Public(), signer)
	if err != nil {
		return nil, fmt.Errorf("lab: certificate: %w", err)
	}
	if b.certs == nil || len(b.certs) >= maxCerts {
		b.certs = map[badCert]*tls.Certificate{}
	}
	c := &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	b.certs[k] = c
	return c, nil
}

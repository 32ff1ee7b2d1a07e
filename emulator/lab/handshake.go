package lab

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
)

// own is how a BMC speaks TLS that was given a certificate.
type own struct {
	from   *bmc.Certificates // that it was made from
	config *tls.Config
}

// curves are how keys are agreed on: as BMCs do it, without those that quantum
// computers will not break, which take as long again.
var curves = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}

// tlsConfig is how the BMCs speak TLS.
func (l *Lab) tlsConfig() *tls.Config {
	return &tls.Config{
		MinVersion:       tls.VersionTLS12,
		CurvePreferences: curves,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return l.greeted(hello).factory("")
		},
		GetConfigForClient: l.handshake,
	}
}

// greeted is the host whose BMC a client has reached.
func (l *Lab) greeted(hello *tls.ClientHelloInfo) *Host {
	if c, ok := hello.Conn.(*bmcConn); ok {
		return l.hosts[c.host]
	}
	return l.hosts[0] // of who serves the lab by itself
}

// handshake chooses how TLS is spoken on a connection; nil is as with most. Who
// has another certificate has other ticket keys as well, or a client that was
// here before would be taken in without seeing it.
func (l *Lab) handshake(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	h := l.greeted(hello)
	if c, ok := hello.Conn.(*bmcConn); ok && c.tls != "" {
		return h.spoiled(c.tls)
	}
	if certs := h.BMC().Certificates; certs.HTTPS != nil {
		return h.ownTLS(certs)
	}
	return nil, nil
}

// spoiled is how a BMC speaks TLS when something is wrong with that.
func (h *Host) spoiled(flaw fault.TLS) (*tls.Config, error) {
	config := h.lab.apart()
	kind := flaw
	if flaw == fault.Refused {
		// No suite that a client can know: the handshake ends with an alert.
		config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{0xffff}
		kind = ""
	}
	c, err := h.factory(kind)
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{*c}
	return config, nil
}

// apart is a config that shares nothing with that of all BMCs; it would share
// the ticket keys if it had none of its own.
func (l *Lab) apart() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, CurvePreferences: curves, NextProtos: []string{"http/1.1"}}
	if l.http2 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	var key [32]byte
	rand.Read(key[:])
	c.SetSessionTicketKeys([][32]byte{key})
	return c
}

// factory is the certificate that the BMC came with.
func (h *Host) factory(flaw fault.TLS) (*tls.Certificate, error) {
	return h.lab.ca.of(leaf{host: h.Name(), addr: h.Address().Addr(), kind: h.Dialect().BMC.Key, flaw: flaw})
}

// FactoryCertificate is the certificate that the BMC came with, and its key.
func (h *Host) FactoryCertificate() (bmc.KeyedCertificate, error) {
	c, err := h.factory("")
	if err != nil {
		return bmc.KeyedCertificate{}, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return bmc.KeyedCertificate{}, fmt.Errorf("lab: certificate of %s: %w", h.Name(), err)
	}
	return bmc.KeyedCertificate{Certificate: bmc.Certificate{ID: "1", Chain: c.Certificate}, Key: key}, nil
}

// ownTLS is how a BMC speaks TLS that was given a certificate; certs are those
// that it has now.
func (h *Host) ownTLS(certs *bmc.Certificates) (*tls.Config, error) {
	if o := h.own.Load(); o != nil && o.from == certs {
		return o.config, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	certs = h.BMC().Certificates
	st := h.bmc.State().Certificates
	if st == nil || st.HTTPS == nil { // removed since the last look
		return nil, nil
	}
	key, err := st.HTTPS.Key.Signer()
	if err != nil {
		return nil, fmt.Errorf("lab: certificate of %s: %w", h.Name(), err)
	}
	o := &own{from: certs, config: h.lab.apart()}
	o.config.Certificates = []tls.Certificate{{Certificate: st.HTTPS.Chain, PrivateKey: key}}
	h.own.Store(o)
	return o.config, nil
}

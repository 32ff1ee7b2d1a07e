package network

import (
	"crypto/rand"
	"crypto/tls"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// curves are the key exchanges that BMCs offer. Post-quantum ones are left out:
// BMCs do not have them, and they take as long again as the rest of a handshake.
var curves = []tls.CurveID{tls.X25519, tls.CurveP256, tls.CurveP384, tls.CurveP521}

// TLSHost is a BMC as a TLS handshake sees it.
type TLSHost interface {
	// TLSCertificate returns the certificate that the BMC came with, or a
	// copy of it with a flaw.
	TLSCertificate(flaw fault.TLS) (*tls.Certificate, error)
	// InstalledTLS returns the configuration for the certificate that a user has
	// installed, made with TLS.Separate, or nil when none is installed.
	InstalledTLS() (*tls.Config, error)
}

// TLS configures how the BMCs of a rack speak TLS.
type TLS struct {
	HTTP2 bool // clients may speak HTTP/2
	// Host returns the BMC with an index. Connections that are no Conn count as
	// connections to the first one.
	Host func(index int) TLSHost
}

// Config returns the configuration of a server that answers for all BMCs.
func (t *TLS) Config() *tls.Config {
	return &tls.Config{
		MinVersion:       tls.VersionTLS12,
		CurvePreferences: curves,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			return t.host(hello).TLSCertificate("")
		},
		GetConfigForClient: t.configFor,
	}
}

func (t *TLS) host(hello *tls.ClientHelloInfo) TLSHost {
	if c, ok := hello.Conn.(*Conn); ok {
		return t.Host(c.Host)
	}
	return t.Host(0)
}

// configFor chooses the configuration of one connection; nil is that of all BMCs.
// A connection with another certificate needs other session ticket keys too: a
// client with a ticket from before would resume without seeing the certificate.
func (t *TLS) configFor(hello *tls.ClientHelloInfo) (*tls.Config, error) {
	h := t.host(hello)
	if c, ok := hello.Conn.(*Conn); ok && c.TLS != "" {
		return t.faulty(h, c.TLS)
	}
	return h.InstalledTLS()
}

// faulty returns the configuration of a handshake that fails in the given way.
func (t *TLS) faulty(h TLSHost, flaw fault.TLS) (*tls.Config, error) {
	config := t.separate()
	kind := flaw
	if flaw == fault.Refused {
		// A suite that no client knows: the handshake ends with an alert.
		config.MaxVersion, config.CipherSuites = tls.VersionTLS12, []uint16{0xffff}
		kind = ""
	}
	if flaw == fault.OldTLS {
		config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
		kind = ""
	}
	c, err := h.TLSCertificate(kind)
	if err != nil {
		return nil, err
	}
	config.Certificates = []tls.Certificate{*c}
	return config, nil
}

// Separate returns the configuration of a BMC with a certificate of its own.
func (t *TLS) Separate(c tls.Certificate) *tls.Config {
	config := t.separate()
	config.Certificates = []tls.Certificate{c}
	return config
}

// separate returns a configuration that shares nothing with that of all BMCs. It
// would share the session ticket keys if it did not set its own.
func (t *TLS) separate() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, CurvePreferences: curves, NextProtos: []string{"http/1.1"}}
	if t.HTTP2 {
		c.NextProtos = []string{"h2", "http/1.1"}
	}
	var key [32]byte
	rand.Read(key[:])
	c.SetSessionTicketKeys([][32]byte{key})
	return c
}

package rack

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/netip"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack/network"
)

// installedTLS is the TLS configuration for a certificate that a user has
// installed on a BMC.
type installedTLS struct {
	from   *bmc.Certificates // the certificates that it was made from
	config *tls.Config
}

var _ network.TLSHost = (*Host)(nil)

// TLSCertificate implements network.TLSHost.
func (h *Host) TLSCertificate(flaw fault.TLS) (*tls.Certificate, error) {
	return h.rack.authority.Issue(network.ServerCertificate{
		Host: h.Name(), Addr: h.Address().Addr(), Kind: h.Dialect().BMC.Key, Name: h.rack.advertise, Flaw: flaw,
	})
}

// FactoryCertificate returns the certificate that the BMC came with, and its key.
func (h *Host) FactoryCertificate() (bmc.KeyedCertificate, error) {
	c, err := h.TLSCertificate("")
	if err != nil {
		return bmc.KeyedCertificate{}, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		return bmc.KeyedCertificate{}, fmt.Errorf("certificate of %s: %w", h.Name(), err)
	}
	return bmc.KeyedCertificate{Certificate: bmc.Certificate{ID: "1", Chain: c.Certificate}, Key: key}, nil
}

// InstalledTLS implements network.TLSHost.
func (h *Host) InstalledTLS() (*tls.Config, error) {
	certs := h.BMC().Certificates
	if certs.HTTPS == nil {
		return nil, nil
	}
	if t := h.installedTLS.Load(); t != nil && t.from == certs {
		return t.config, nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	certs = h.BMC().Certificates
	st := h.bmc.State().Certificates
	if st == nil || st.HTTPS == nil { // removed since the check above
		return nil, nil
	}
	key, err := st.HTTPS.Key.Signer()
	if err != nil {
		return nil, fmt.Errorf("certificate of %s: %w", h.Name(), err)
	}
	t := &installedTLS{from: certs, config: h.rack.tls.Separate(tls.Certificate{Certificate: st.HTTPS.Chain, PrivateKey: key})}
	h.installedTLS.Store(t)
	return t.config, nil
}

// Certificate returns a certificate of the rack's authority for a server of the rack
// that is not a BMC. It is the same one each time that the rack is opened.
func (l *Rack) Certificate(name string, addr netip.Addr) (*tls.Certificate, error) {
	return l.NamedCertificate(name, "", addr)
}

// NamedCertificate returns a certificate as Certificate does, for a server that has a second
// name.
func (l *Rack) NamedCertificate(name, second string, addr netip.Addr) (*tls.Certificate, error) {
	return l.authority.Issue(network.ServerCertificate{Host: name, Name: second, Addr: addr, Kind: bmc.P256})
}

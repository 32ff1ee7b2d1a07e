package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/metalab-dev/metalab/controller/inband"
	"github.com/metalab-dev/metalab/controller/manager"
)

// elementalFlags are the flags of the Elemental API.
type elementalFlags struct {
	url, listen, certificate, ca string
	compatClaims, compatLabels   bool
}

// elementalName is the controller that serves the API.
const elementalName = "elemental"

func (e *elementalFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&e.url, "elemental-url", "", "HTTPS URL at which servers reach the Elemental API (default: the provisioning address, three ports after the agents')")
	f.StringVar(&e.listen, "elemental-listen", "", "IP:PORT to listen on for it, where it differs")
	f.StringVar(&e.certificate, "elemental-certificate", "", "PEM file with the certificate and key of that server (default: a certificate of the controller's own authority)")
	f.StringVar(&e.ca, "elemental-ca", "", "file of PEM certificates that registrations get for it (default: the controller's own authority, if its certificate is used)")
	f.BoolVar(&e.compatClaims, "compat-claims", false, "accept tokens for another host or registration, and without end, as the upstream Elemental API does")
	f.BoolVar(&e.compatLabels, "compat-labels", false, "set the labels installed, bootstrapped and reset also for a report that says false, as it does")
}

// config returns the API for the controllers and the identity that are selected; nil when the
// controller elemental is not.
func (e *elementalFlags) config(controllers []string, at, listen netip.AddrPort, id inband.Identity) (*manager.Elemental, error) {
	if !slices.Contains(controllers, elementalName) {
		return nil, nil
	}
	port := func(a netip.AddrPort) string { return next(next(next(a))).String() }
	out := &manager.Elemental{
		Endpoint: manager.Endpoint{URL: "https://" + port(at), Address: port(listen)},
		CA:       id.CA, CompatClaims: e.compatClaims, CompatLabels: e.compatLabels,
	}
	if e.url != "" {
		out.URL = e.url
	}
	if e.listen != "" {
		out.Address = e.listen
	}
	if e.certificate != "" {
		c, err := tls.LoadX509KeyPair(e.certificate, e.certificate)
		if err != nil {
			return nil, fmt.Errorf("--elemental-certificate %s: %w", e.certificate, err)
		}
		out.Certificate, out.CA = &c, ""
	}
	if e.ca != "" {
		b, err := os.ReadFile(e.ca)
		if err != nil {
			return nil, fmt.Errorf("--elemental-ca: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--elemental-ca %s: the file has no PEM certificate", e.ca)
		}
		out.CA = string(b)
	}
	return out, nil
}

// check validates the flags.
func (e *elementalFlags) check(controllers []string, at, listen netip.AddrPort) error {
	if !slices.Contains(controllers, elementalName) {
		if *e != (elementalFlags{}) {
			return errors.New("--elemental-url, --elemental-listen, --elemental-certificate, --elemental-ca, --compat-claims and --compat-labels need the controller elemental: add it to --controllers")
		}
		return nil
	}
	if e.url != "" {
		u, err := url.Parse(e.url)
		if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" {
			return fmt.Errorf("--elemental-url %q: use https://HOST[:PORT]", e.url)
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsUnspecified() {
			return fmt.Errorf("--elemental-url %s: servers cannot reach that: name an address of this machine", e.url)
		}
	}
	if e.listen != "" {
		if a, err := netip.ParseAddrPort(e.listen); err != nil || a.Port() == 0 {
			return fmt.Errorf("--elemental-listen %q: use IP:PORT", e.listen)
		}
	}
	const last = 65532 // the port of the API is the third after the agents'
	if e.url == "" && at.Port() > last || e.listen == "" && listen.Port() > last {
		return fmt.Errorf("--provisioning-address %s: use a port from 1 to %d: the third after it is that of the Elemental API; or give --elemental-url and --elemental-listen", at, last)
	}
	return nil
}

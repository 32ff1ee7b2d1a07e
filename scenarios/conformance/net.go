package conformance

import (
	"context"
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/metalab-dev/metalab/scenarios/conformance/ipmi"
)

// netChecks are the checks of the network and TLS.
var netChecks = []Check{
	{
		ID: "NET-001", Title: "TCP port answers; time to first byte p50 and p95", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "registration times out", Remedy: "check the address, the route and the BMC's web server; a p95 above 2 s needs longer client time-outs",
		Run: portAnswers,
	},
	{
		ID: "NET-002", Title: "TLS 1.2 or later with a cipher suite that clients have", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "Go and OpenSSL refuse the BMC", Remedy: "enable TLS 1.2 in the BMC's network settings, or update its firmware",
		Run: tlsOffered,
	},
	{
		ID: "NET-003", Title: "certificate: subject alternative name, expiry, key size, chain", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "clients need disableCertificateVerification", Remedy: "install a certificate for the BMC's address, or set disableCertificateVerification",
		After: []string{"NET-001"}, Run: certificateValid,
	},
	{
		ID: "NET-004", Title: "20 requests on one connection", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "the BMC closes reused connections abruptly", Remedy: "disable connection reuse in the client",
		After: []string{"NET-001"}, Run: connectionReused,
	},
	{
		ID: "NET-005", Title: "8 parallel GETs without 5xx or reset", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "503 under the load of controllers", Remedy: "limit the client's requests at once for this BMC",
		After: []string{"AUTH-001"}, Run: parallelReads,
	},
	{
		ID: "NET-006", Title: "HTTP redirects to HTTPS or is closed", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "credentials in clear text", Remedy: "disable HTTP in the BMC's network settings",
		After: []string{"AUTH-001"}, Run: plainHTTPClosed,
	},
	{
		ID: "NET-007", Title: "UDP 623 answers an RMCP ping", Level: ReadOnly, Protocol: IPMI, Step: Register,
		Predicts: "IPMI over LAN is disabled", Remedy: "enable IPMI over LAN in the BMC's network settings",
		Needs: []Facility{NeedsIPMI}, Run: rmcpAnswers,
	},
	{
		ID: "NET-008", Title: "an IPv6 address of the BMC works", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "IPv6 clusters do not reach the BMC", Remedy: "configure the BMC's IPv6 address",
		After: []string{"AUTH-001"}, Run: ipv6Works,
	},
	{
		ID: "NET-009", Title: "Accept-Encoding identity and gzip are both served", Level: ReadOnly, Protocol: Redfish, Step: Register,
		Predicts: "406 on message registries", Remedy: "let the client accept gzip",
		After: []string{"AUTH-001"}, Run: encodingsServed,
	},
}

// portAnswers measures the time to the first byte of the service root, which
// needs no credentials.
func portAnswers(ctx context.Context, r *Run) Outcome {
	all, err := r.sample(ctx)
	if err != nil {
		return Judge(err)
	}
	var times []time.Duration
	for _, resp := range all {
		if resp.Status >= 500 {
			return Failed("the service root is answered %s", resp.Problem())
		}
		times = append(times, resp.TTFB)
	}
	slices.Sort(times)
	p50, p95 := times[samples/2-1], times[samples*95/100-1] // by nearest rank
	o := Passed("")
	if p95 > 2*time.Second {
		o = Warned("the first byte of the service root takes up to %v", p95.Round(time.Millisecond))
	}
	return o.With("first byte, p50", "%v", p50.Round(time.Millisecond/10)).With("first byte, p95", "%v", p95.Round(time.Millisecond/10))
}

// samples is the least number of reads of which one may be slow without changing p95.
const samples = 20

// sample reads the service root on one connection. NET-001 and NET-004 share the reads.
func (r *Run) sample(ctx context.Context) ([]*Response, error) {
	if r.bmc.samples != nil {
		for _, resp := range r.bmc.samples {
			r.keep(resp.ID)
		}
		return r.bmc.samples, nil
	}
	var all []*Response
	for i := range samples {
		resp, err := r.Do(ctx, Request{URI: "/redfish/v1/", Auth: Anonymous})
		if err != nil {
			return nil, fmt.Errorf("request %d: %w", i+1, err)
		}
		all = append(all, resp)
	}
	r.bmc.samples = all
	return all, nil
}

// handshake opens a connection with a TLS configuration of its own and reads the
// service root. The certificate is not verified.
func (r *Run) handshake(ctx context.Context, conf *tls.Config) (*Response, error) {
	conf.InsecureSkipVerify = true // only versions, suites and the certificate's content matter
	r.Use(Connections{TLS: conf, Fresh: true})
	return r.Do(ctx, Request{URI: "/redfish/v1/", Auth: Anonymous})
}

// inClear reports whether the service under test speaks HTTP without TLS.
func (r *Run) inClear() bool { return r.bmc.client.base.Scheme == "http" }

// everySuite are all cipher suites that Go can speak, also those that it does not
// offer by default.
func everySuite() []uint16 {
	var all []uint16
	for _, s := range slices.Concat(tls.CipherSuites(), tls.InsecureCipherSuites()) {
		all = append(all, s.ID)
	}
	return all
}

// tlsOffered opens a connection as clients do, and others with the versions and
// cipher suites that clients refuse.
func tlsOffered(ctx context.Context, r *Run) Outcome {
	if r.inClear() {
		return Skipped("the service speaks HTTP without TLS")
	}
	resp, err := r.handshake(ctx, &tls.Config{MinVersion: tls.VersionTLS12})
	if err != nil {
		old, oldErr := r.handshake(ctx, &tls.Config{MinVersion: tls.VersionTLS10, CipherSuites: everySuite()})
		if oldErr != nil || old.TLS == nil {
			return Judge(err)
		}
		return Failed("clients refuse what the BMC offers: %s with %s", tls.VersionName(old.TLS.Version), tls.CipherSuiteName(old.TLS.CipherSuite))
	}
	if resp.TLS == nil {
		return Failed("the connection has no TLS")
	}
	o := Passed("").With("TLS", "%s, %s", tls.VersionName(resp.TLS.Version), tls.CipherSuiteName(resp.TLS.CipherSuite))
	if old, err := r.handshake(ctx, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11, CipherSuites: everySuite()}); err == nil && old.TLS != nil {
		o.Verdict, o.Reason = Warn, tls.VersionName(old.TLS.Version)+" is accepted, too"
	}
	return o
}

// weakSignatures are signature algorithms that clients reject.
var weakSignatures = []x509.SignatureAlgorithm{
	x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1,
}

// certificateValid looks at the BMC's certificate.
func certificateValid(ctx context.Context, r *Run) Outcome {
	if r.inClear() {
		return Skipped("the service speaks HTTP without TLS")
	}
	resp, err := r.handshake(ctx, &tls.Config{MinVersion: tls.VersionTLS12})
	if err != nil {
		return Judge(err)
	}
	if resp.TLS == nil || len(resp.TLS.PeerCertificates) == 0 {
		return Failed("the BMC has no certificate")
	}
	cert, now := resp.TLS.PeerCertificates[0], r.Now()
	o := Passed("").With("certificate", "%s by %s until %s, %s", cert.Subject, cert.Issuer, cert.NotAfter.UTC().Format(time.DateOnly), keySize(cert))
	var bad, minor []string
	switch {
	case now.After(cert.NotAfter):
		bad = append(bad, "it has expired on "+cert.NotAfter.UTC().Format(time.DateOnly))
	case now.Before(cert.NotBefore):
		bad = append(bad, "it is not valid before "+cert.NotBefore.UTC().Format(time.DateOnly))
	}
	if key, ok := cert.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() < 2048 {
		bad = append(bad, fmt.Sprintf("its RSA key has %d bits, clients want 2048", key.N.BitLen()))
	}
	if slices.Contains(weakSignatures, cert.SignatureAlgorithm) {
		bad = append(bad, "its signature is "+cert.SignatureAlgorithm.String())
	}
	host := r.bmc.client.base.Hostname()
	if err := cert.VerifyHostname(host); err != nil {
		minor = append(minor, "it is not for "+host)
	}
	chain := x509.NewCertPool()
	for _, c := range resp.TLS.PeerCertificates[1:] {
		chain.AddCert(c)
	}
	_, err = cert.Verify(x509.VerifyOptions{Roots: r.bmc.conf.CAs, Intermediates: chain, CurrentTime: now})
	if unknown := new(x509.UnknownAuthorityError); errors.As(err, unknown) {
		minor = append(minor, "its authority is unknown to this computer")
	}
	switch {
	case len(bad) > 0:
		o.Verdict, o.Reason = Fail, "the certificate: "+strings.Join(append(bad, minor...), "; ")
	case len(minor) > 0:
		o.Verdict, o.Reason = Warn, "the certificate: "+strings.Join(minor, "; ")
	}
	return o
}

func keySize(cert *x509.Certificate) string {
	switch key := cert.PublicKey.(type) {
	case *rsa.PublicKey:
		return fmt.Sprintf("RSA of %d bits", key.N.BitLen())
	case *ecdsa.PublicKey:
		return fmt.Sprintf("ECDSA of %d bits", key.Curve.Params().BitSize)
	}
	return cert.PublicKeyAlgorithm.String()
}

// connectionReused sends requests on one connection, as clients with a pool do.
func connectionReused(ctx context.Context, r *Run) Outcome {
	all, err := r.sample(ctx)
	if err != nil {
		return Judge(err)
	}
	fresh := 0
	for i, resp := range all {
		if resp.Status != http.StatusOK {
			return Failed("request %d on the connection: %s", i+1, resp.Problem())
		}
		if !resp.Reused {
			fresh++
		}
	}
	if fresh > 1 {
		return Warned("%d requests took %d connections: the BMC closes them", len(all), fresh).Quirky("conn-abrupt-close")
	}
	return Passed("")
}

// parallelReaders is how many GETs a check sends at once.
const parallelReaders = 8

// tooBusy reports whether a response is an error of a BMC that has too much to do.
func tooBusy(resp *Response) bool {
	return resp.Status >= 500 || resp.Status == http.StatusTooManyRequests
}

// parallelReads reads as several controllers do at once.
func parallelReads(ctx context.Context, r *Run) Outcome {
	const readers, each = parallelReaders, 3
	r.Use(Connections{Parallel: readers})
	if _, err := r.Do(ctx, Request{URI: "/redfish/v1/"}); err != nil { // logs in before the readers begin
		return Judge(err)
	}
	var wait sync.WaitGroup
	errs := make([]error, readers)
	for i := range readers {
		wait.Go(func() {
			for range each {
				resp, err := r.Do(ctx, Request{URI: "/redfish/v1/Systems"})
				if err == nil && tooBusy(resp) {
					err = Findingf("one of %d parallel GETs: %s", readers, resp.Problem())
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil && reset(err) {
			return Failed("one of %d parallel GETs: %v", readers, err)
		}
	}
	err := errors.Join(errs...)
	r.bmc.parallel = err == nil
	return Judge(err)
}

// reset reports whether the other side has broken a connection.
func reset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE)
}

// elsewhere sends a GET without credentials to another address of the BMC, and
// records it as evidence.
func (r *Run) elsewhere(ctx context.Context, to string) (status int, header http.Header, err error) {
	if r.bmc.dry != nil {
		if _, ok := r.bmc.dry.answer(Request{URI: to}); ok {
			return 0, nil, errors.New("dry run")
		}
	}
	timed, cancel := context.WithTimeout(ctx, min(r.bmc.client.patience, 5*time.Second))
	defer cancel()
	began := r.bmc.conf.Clock.Now()
	x := Exchange{Check: r.check, Began: began, Method: http.MethodGet, URL: to}
	req, err := http.NewRequestWithContext(timed, http.MethodGet, to, nil)
	if err != nil {
		return 0, nil, err
	}
	t := r.bmc.client.transport(Connections{Fresh: true, TLS: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}})
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(req)
	if err == nil {
		x.Status, x.Header = resp.StatusCode, resp.Header
		x.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxRecord))
		resp.Body.Close()
	}
	if err != nil {
		x.Error = err.Error()
	}
	x.Size, x.Took = int64(len(x.Body)), r.bmc.conf.Clock.Since(began)
	r.keep(r.bmc.client.record(x))
	return x.Status, x.Header, err
}

// plainHTTPClosed asks port 80 of the BMC.
func plainHTTPClosed(ctx context.Context, r *Run) Outcome {
	if r.inClear() {
		return Failed("the service speaks HTTP without TLS: credentials are sent in clear text").Quirky("http-only")
	}
	host := r.bmc.client.base.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port, err := r.httpPort(ctx)
	if err != nil {
		return Judge(err)
	}
	status, header, err := r.elsewhere(ctx, fmt.Sprintf("http://%s:%d/redfish/v1/", host, port))
	if err != nil {
		return Passed("").With("HTTP", "port %d is closed", port)
	}
	to, _ := url.Parse(header.Get("Location"))
	switch {
	case status/100 == 3 && to != nil && to.Scheme == "https":
		return Passed("").With("HTTP", "port %d redirects to HTTPS", port)
	case status == http.StatusForbidden, status == http.StatusUpgradeRequired, status == http.StatusNotFound, status == http.StatusBadRequest:
		return Passed("").With("HTTP", "port %d is answered %d", port, status)
	case status/100 == 3:
		return Failed("port %d redirects to %q, not to HTTPS", port, header.Get("Location"))
	}
	return Failed("port %d serves Redfish without TLS: %d", port, status)
}

// httpPort returns the port of HTTP that the manager names, or 80.
func (r *Run) httpPort(ctx context.Context) (int, error) {
	const usual = 80
	place, err := r.Place(ctx)
	if errors.As(err, new(*Finding)) {
		return usual, nil
	}
	if err != nil {
		return 0, err
	}
	uri, err := place.Manager.At("NetworkProtocol").Link()
	if err != nil {
		return usual, nil
	}
	v, err := r.Page(ctx, uri)
	if err != nil {
		return usual, nil
	}
	if on, err := v.At("HTTP", "ProtocolEnabled").Bool(); err == nil && on {
		if port, err := v.At("HTTP", "Port").Number(); err == nil && port >= 1 && port < 1<<16 {
			return int(port), nil
		}
	}
	return usual, nil
}

// rmcpAnswers sends a presence ping (IPMI v2.0 rev 1.1, §13.2.3).
func rmcpAnswers(ctx context.Context, r *Run) Outcome {
	if r.bmc.dry != nil {
		return r.dryIPMI("presence ping")
	}
	conn, err := ipmi.Dial(ctx, r.bmc.conf.IPMI)
	if err != nil {
		return Judge(err)
	}
	defer conn.Close()
	conn.Timeout, conn.Tries = r.ipmiTimeout(), 3
	pong, err := conn.Ping(ctx)
	switch {
	case errors.Is(err, ipmi.ErrNoAnswer):
		r.bmc.ipmiSilent = true
		o := Failed("UDP port of %s does not answer a presence ping", r.bmc.conf.IPMI)
		if r.ipmiDisabled(ctx) {
			o = Failed("IPMI over LAN is disabled: NetworkProtocol says so").Quirky("ipmi-disabled-by-default")
		}
		return o
	case err != nil:
		return Failed("%v", err)
	case !pong.IPMI:
		return Warned("the presence pong does not announce IPMI")
	}
	return Passed("")
}

// ipmiTimeout is how long the answer of one IPMI packet may take.
func (r *Run) ipmiTimeout() time.Duration { return min(r.bmc.client.patience, time.Second) }

// ipmiDisabled reports whether Redfish says that IPMI over LAN is disabled.
func (r *Run) ipmiDisabled(ctx context.Context) bool {
	place, err := r.Place(ctx)
	if err != nil {
		return false
	}
	v, err := r.Page(ctx, place.Manager.At("NetworkProtocol").LinkOr("/redfish/v1/"))
	if err != nil {
		return false
	}
	on, err := v.At("IPMI", "ProtocolEnabled").Bool()
	return err == nil && !on
}

// ipv6Works asks the IPv6 addresses that the manager shows.
func ipv6Works(ctx context.Context, r *Run) Outcome {
	place, err := r.Place(ctx)
	if err != nil {
		return Judge(err)
	}
	uri, err := place.Manager.At("EthernetInterfaces").Link()
	if err != nil {
		return Skipped("the manager has no EthernetInterfaces")
	}
	nics, err := r.Members(ctx, uri)
	if err != nil {
		return Judge(err)
	}
	port := r.bmc.client.base.Port()
	if port == "" {
		port = r.bmc.client.base.Scheme
		port = map[string]string{"http": "80", "https": "443"}[port]
	}
	asked, unreachable := 0, ""
	for _, uri := range nics[:min(len(nics), 8)] {
		nic, err := r.Page(ctx, uri)
		if err != nil {
			return Judge(err)
		}
		addresses, err := nic.At("IPv6Addresses").List()
		if err != nil {
			continue
		}
		for _, a := range addresses[:min(len(addresses), 8)] {
			text := a.At("Address").TextOr("")
			ip := net.ParseIP(text)
			switch {
			case text == "":
				continue
			case ip == nil:
				return Failed("%s is %q, not an address", a.At("Address").Path(), text)
			case ip.IsLinkLocalUnicast(), ip.IsUnspecified():
				continue
			}
			asked++
			status, _, err := r.elsewhere(ctx, r.bmc.client.base.Scheme+"://"+net.JoinHostPort(text, port)+"/redfish/v1/")
			switch {
			case errors.Is(err, syscall.ECONNREFUSED):
				return Failed("%s refuses connections to port %s", text, port)
			case err != nil:
				unreachable = text
			case status != http.StatusOK:
				return Failed("the service root at %s is answered %d", text, status)
			}
		}
	}
	switch {
	case asked == 0:
		return Skipped("the manager has no IPv6 address beyond link-local ones")
	case unreachable != "":
		return Skipped("%s is not reachable from this computer", unreachable)
	}
	return Passed("")
}

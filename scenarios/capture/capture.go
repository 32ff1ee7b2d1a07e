// Package capture reads the resources of an emulated or real BMC over Redfish,
// as far as a model of the server needs them, and probes how the service
// behaves. It sends GET requests only, a bounded number of them and at most four
// at once, and opens no session. It can replace the values that identify a
// server. It knows no emulator and no vendor.
package capture

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Config names the BMC and bounds the capture.
type Config struct {
	// URL is the BMC: "https://192.0.2.1", with or without a path.
	URL                string
	Username, Password string
	CAs                *x509.CertPool // trusted authorities; nil means the system's
	Insecure           bool           // accepts any certificate
	Parallel           int            // concurrent requests, 1 to 4; 0 means 2
	MaxRequests        int            // 0 means 5000
	Timeout            time.Duration  // time limit of the capture; 0 means 15 minutes
	RequestTimeout     time.Duration  // time limit of one request; 0 means 60 s
	// Progress, if set, is called with the number of resources that were read and
	// the number of those known so far.
	Progress func(done, known int)
}

// Upper limits of a capture.
const (
	maxParallel = 4
	maxRequests = 20000
	maxBody     = 16 << 20 // bytes of one body; attribute registries are long
)

// ErrLogin means that the BMC refused the credentials. Only one request that
// needs them was sent, so that no account is locked.
var ErrLogin = errors.New("the BMC refuses the username or the password: check --username and --password-file")

// Remedy says what to do about a BMC's certificate that nobody trusts: labctl's commands that reach a
// BMC by its address have these flags.
const Remedy = "give the authority that signs the certificate with --ca, or accept any certificate with --insecure"

// WithRemedy adds Remedy to an error of a connection, if the certificate is why it failed.
func WithRemedy(err error) error {
	if e := new(tls.CertificateVerificationError); errors.As(err, &e) {
		return fmt.Errorf("%w: %s", err, Remedy)
	}
	return err
}

// Capture holds the resources of a BMC and the behavior of its service.
type Capture struct {
	// Resources holds the bodies by URI. The URIs have no trailing slash.
	Resources map[string]map[string]any `json:"pages"`
	// Refused holds the status by URI of each linked resource that was not
	// answered with 200; 0 means that the request failed.
	Refused map[string]int `json:"refused,omitempty"`
	Habits  Behavior       `json:"habits"`
	// Incomplete says why some resources were not read; "" means that all
	// were.
	Incomplete string `json:"cut,omitempty"`
}

// Root is the URI of the service root.
const Root = "/redfish/v1"

// Take reads the resources of a BMC and probes its behavior. When a limit of
// the Config is reached, it returns what it has and sets Incomplete.
func Take(ctx context.Context, c Config) (*Capture, error) {
	s, err := newSource(c)
	if err != nil {
		return nil, err
	}
	defer s.client.CloseIdleConnections()
	bounded, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	out := &Capture{Resources: map[string]map[string]any{}, Refused: map[string]int{}}
	if err := s.walk(bounded, out); err != nil {
		if bounded.Err() != nil && ctx.Err() == nil {
			return nil, fmt.Errorf("nothing was read within the time limit of %v: %w", s.timeout, err)
		}
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if bounded.Err() != nil {
		out.Incomplete = fmt.Sprintf("it took longer than %v", s.timeout)
		return out, nil
	}
	if out.Incomplete != "" {
		return out, nil
	}
	out.Habits, err = s.probe(bounded, out)
	if errors.Is(err, errRequestLimit) {
		out.Incomplete, err = err.Error(), nil
	}
	return out, err
}

// source sends the requests to a BMC.
type source struct {
	base      *url.URL
	user      string
	password  string
	client    *http.Client
	parallel  int
	remaining chan struct{} // a token for each request that may still be sent
	timeout   time.Duration
	progress  func(done, known int)
}

func newSource(c Config) (*source, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, fmt.Errorf("URL %q: use a form like https://192.0.2.1", c.URL)
	}
	or := func(n *int, def, most int, name string) error {
		if *n == 0 {
			*n = def
		}
		if *n < 1 || *n > most {
			return fmt.Errorf("%s: %d: must be 1 to %d", name, *n, most)
		}
		return nil
	}
	if err := errors.Join(or(&c.Parallel, 2, maxParallel, "parallel"), or(&c.MaxRequests, 5000, maxRequests, "requests")); err != nil {
		return nil, err
	}
	if c.Timeout == 0 {
		c.Timeout = 15 * time.Minute
	}
	if c.RequestTimeout == 0 {
		c.RequestTimeout = time.Minute
	}
	base.Path, base.RawQuery, base.Fragment, base.User = "", "", "", nil
	s := &source{base: base, user: c.Username, password: c.Password, parallel: c.Parallel, timeout: c.Timeout, progress: c.Progress}
	if s.progress == nil {
		s.progress = func(int, int) {}
	}
	s.remaining = make(chan struct{}, c.MaxRequests)
	for range c.MaxRequests {
		s.remaining <- struct{}{}
	}
	s.client = &http.Client{
		Timeout: c.RequestTimeout,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: c.CAs, InsecureSkipVerify: c.Insecure, MinVersion: tls.VersionTLS12},
			MaxConnsPerHost:     c.Parallel,
			MaxIdleConnsPerHost: c.Parallel,
			DisableCompression:  true, // probe finds out whether the BMC compresses
			Proxy:               http.ProxyFromEnvironment,
		},
		// The password goes to this BMC and nowhere else.
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if r.URL.Host != base.Host || r.URL.Scheme != base.Scheme || len(via) > 3 {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
	return s, nil
}

// trimURI returns a URI without its query, its fragment and a trailing slash.
func trimURI(address string) string {
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i]
	}
	return strings.TrimRight(address, "/")
}

// Type returns the @odata.type of a body without namespace and version.
func Type(body map[string]any) string {
	kind, _ := body["@odata.type"].(string)
	kind = strings.TrimPrefix(kind, "#")
	return kind[strings.LastIndexByte(kind, '.')+1:]
}

// Package capture reads what a BMC shows over Redfish, emulated or real, and
// how it answers: all resources that matter for a model of the server, and the
// habits of its service. It only asks (GET), a bounded number of times and no
// more than four at once, opens no session, and takes out what tells one server
// from its twins. It knows no emulator and no vendor.
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

// Config says what to read, and how much of it at most.
type Config struct {
	// URL is the BMC: "https://192.0.2.1", with or without a path.
	URL                string
	Username, Password string
	CAs                *x509.CertPool // whom to trust; nil: whom the system does
	Insecure           bool           // takes any certificate
	Parallel           int            // requests at once, 1 to 4; 0 is 2
	Requests           int            // most that are sent; 0 is 5000
	Within             time.Duration  // the whole; 0 is 15 minutes
	Each               time.Duration  // one request; 0 is 60 s
	Tell               func(done, known int)
}

// The bounds of what is read.
const (
	maxParallel = 4
	maxRequests = 20000
	maxBody     = 16 << 20 // bytes; attribute registries are long
)

// ErrLogin means that the BMC did not take the credentials. Only one request
// that needs them was sent.
var ErrLogin = errors.New("capture: the BMC refuses the username or the password")

// Capture is what a BMC showed.
type Capture struct {
	// Pages are bodies by their addresses, which have no slash at their end.
	Pages map[string]map[string]any `json:"pages"`
	// Refused are the addresses that were linked and did not answer 200, with
	// what they answered.
	Refused map[string]int `json:"refused,omitempty"`
	Habits  Habits         `json:"habits"`
	// Cut says why not all was read; "": it was.
	Cut string `json:"cut,omitempty"`
}

// Root is where services begin.
const Root = "/redfish/v1"

// Take captures a BMC.
func Take(ctx context.Context, c Config) (*Capture, error) {
	s, err := newSource(c)
	if err != nil {
		return nil, err
	}
	defer s.client.CloseIdleConnections()
	whole, cancel := context.WithTimeout(ctx, s.within)
	defer cancel()
	out := &Capture{Pages: map[string]map[string]any{}, Refused: map[string]int{}}
	if err := s.walk(whole, out); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	if whole.Err() != nil {
		out.Cut = fmt.Sprintf("it took longer than %v", s.within)
		return out, nil
	}
	if out.Cut != "" {
		return out, nil
	}
	out.Habits, err = s.probe(whole, out)
	if errors.Is(err, errBound) {
		out.Cut, err = err.Error(), nil
	}
	return out, err
}

// source is where pages come from.
type source struct {
	base     *url.URL
	user     string
	password string
	client   *http.Client
	parallel int
	left     chan struct{} // a token for each request that may be sent still
	within   time.Duration
	tell     func(done, known int)
}

func newSource(c Config) (*source, error) {
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || base.Scheme != "https" && base.Scheme != "http" {
		return nil, fmt.Errorf("capture: URL %q: use a form like https://192.0.2.1", c.URL)
	}
	or := func(n *int, def, most int, name string) error {
		if *n == 0 {
			*n = def
		}
		if *n < 1 || *n > most {
			return fmt.Errorf("capture: %s: %d: must be 1 to %d", name, *n, most)
		}
		return nil
	}
	if err := errors.Join(or(&c.Parallel, 2, maxParallel, "parallel"), or(&c.Requests, 5000, maxRequests, "requests")); err != nil {
		return nil, err
	}
	if c.Within == 0 {
		c.Within = 15 * time.Minute
	}
	if c.Each == 0 {
		c.Each = time.Minute
	}
	base.Path, base.RawQuery, base.Fragment, base.User = "", "", "", nil
	s := &source{base: base, user: c.Username, password: c.Password, parallel: c.Parallel, within: c.Within, tell: c.Tell}
	if s.tell == nil {
		s.tell = func(int, int) {}
	}
	s.left = make(chan struct{}, c.Requests)
	for range c.Requests {
		s.left <- struct{}{}
	}
	s.client = &http.Client{
		Timeout: c.Each,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{RootCAs: c.CAs, InsecureSkipVerify: c.Insecure, MinVersion: tls.VersionTLS12},
			MaxConnsPerHost:     c.Parallel,
			MaxIdleConnsPerHost: c.Parallel,
			DisableCompression:  true, // whether it packs is a habit
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

// clean is an address as pages are kept by: without its fragment, its query and
// the slash at its end.
func clean(address string) string {
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i]
	}
	return strings.TrimRight(address, "/")
}

// Type is the type of a body, without its namespace and version.
func Type(body map[string]any) string {
	kind, _ := body["@odata.type"].(string)
	kind = strings.TrimPrefix(kind, "#")
	return kind[strings.LastIndexByte(kind, '.')+1:]
}

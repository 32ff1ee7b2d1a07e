package elemental

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	requestTimeout = 30 * time.Second // in wall time
	// maxBody bounds an answer: a Secret has at most 1 MiB, and bytes take more in JSON.
	maxBody  = 4 << 20
	maxError = 512 // bytes of an error's text
)

// client sends requests to the registration API. Tokens are dated in real time, whatever the
// agent's clock.
type client struct {
	uri      string // URI of the registration
	token    string // token of the registration
	version  string
	identity identity
	now      func() time.Time
	http     *http.Client
}

// statusError is an answer that is no success.
type statusError struct {
	method, url string
	code        int
	text        string
	skew        time.Duration // by which the server's clock is ahead of this one
}

// Error implements error.
func (e *statusError) Error() string {
	text := fmt.Sprintf("%s %s: %d %s", e.method, e.url, e.code, http.StatusText(e.code))
	if e.text != "" {
		text += ": " + e.text
	}
	if e.code == http.StatusForbidden && e.skew.Abs() > tokenLife/2 {
		text += fmt.Sprintf(" (the clock of the server differs from that of this host by %v: tokens are valid for %v)", e.skew.Round(time.Second), tokenLife)
	}
	return text
}

// hasStatus reports whether an error is an answer with one of the codes.
func hasStatus(err error, codes ...int) bool {
	s := new(statusError)
	if !errors.As(err, &s) {
		return false
	}
	for _, c := range codes {
		if s.code == c {
			return true
		}
	}
	return false
}

// newClient returns a client for the registration of a configuration. transport, if not nil,
// stands for TLS with the certificates of the configuration.
func newClient(f File, s System, i identity, version string, now func() time.Time, transport http.RoundTripper) (*client, error) {
	if transport == nil {
		pem, err := f.caCert(s)
		if err != nil {
			return nil, fmt.Errorf("elemental: %w", err)
		}
		roots := x509.NewCertPool()
		if f.Agent.UseSystemCertPool || len(pem) == 0 {
			if roots, err = x509.SystemCertPool(); err != nil {
				return nil, fmt.Errorf("elemental: certificates of the system: %w", err)
			}
		}
		if len(pem) > 0 && !roots.AppendCertsFromPEM(pem) {
			return nil, errors.New("elemental: registration.caCert has no certificate in PEM")
		}
		transport = &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, InsecureSkipVerify: f.Agent.InsecureSkipTLSVerify}, //nolint:gosec // the user has set insecureSkipTlsVerify
			// A poll is rare: no connection waits for the next one.
			IdleConnTimeout: 5 * time.Second, ForceAttemptHTTP2: true,
		}
	}
	return &client{
		uri: strings.TrimRight(f.Registration.URI, "/"), token: f.Registration.Token, version: version, identity: i, now: now,
		// A redirect would turn a PATCH into a GET, and carry tokens to another server.
		http: &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// close closes connections that are not in use.
func (c *client) close() { c.http.CloseIdleConnections() }

func (c *client) hostURL(name string) string { return c.uri + "/hosts/" + url.PathEscape(name) }

// headers of tokens.
const (
	hostHeader         = "Authorization"
	registrationHeader = "Registration-Authorization"
)

// do sends a request and decodes the answer. as is the host that the token is for; "" sends
// none.
func (c *client) do(ctx context.Context, method, uri, as string, registrationToken bool, body, out any, want int) error {
	var reader io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, uri, err)
		}
		reader = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, uri, reader)
	if err != nil {
		return err
	}
	r.Header.Set("User-Agent", userAgent(c.version))
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if as != "" {
		token, err := c.identity.token(c.version, as, c.uri, c.now())
		if err != nil {
			return err
		}
		r.Header.Set(hostHeader, "Bearer "+token)
	}
	if registrationToken {
		r.Header.Set(registrationHeader, "Bearer "+c.token)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	if answer.StatusCode != want {
		e := &statusError{method: method, url: uri, code: answer.StatusCode, text: strings.TrimSpace(string(b[:min(len(b), maxError)]))}
		if date, derr := http.ParseTime(answer.Header.Get("Date")); derr == nil {
			e.skew = date.Sub(c.now())
		}
		return e
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, uri, err)
	case len(b) > maxBody:
		return fmt.Errorf("%s %s: the answer has more than %d bytes", method, uri, maxBody)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("%s %s: %w", method, uri, err)
	}
	return nil
}

// registration reads the ElementalRegistration.
func (c *client) registration(ctx context.Context) (r registration, err error) {
	return r, c.do(ctx, http.MethodGet, c.uri, "", true, nil, &r, http.StatusOK)
}

// create creates the ElementalHost.
func (c *client) create(ctx context.Context, h createRequest) error {
	return c.do(ctx, http.MethodPost, c.uri+"/hosts", h.Name, true, h, nil, http.StatusCreated)
}

// patch changes the ElementalHost and returns it.
func (c *client) patch(ctx context.Context, name string, p patchRequest) (h host, err error) {
	return h, c.do(ctx, http.MethodPatch, c.hostURL(name), name, false, p, &h, http.StatusOK)
}

// remove asks for the deletion of the ElementalHost.
func (c *client) remove(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, c.hostURL(name), name, false, nil, nil, http.StatusAccepted)
}

// bootstrap reads the bootstrap configuration.
func (c *client) bootstrap(ctx context.Context, name string) (b bootstrap, err error) {
	return b, c.do(ctx, http.MethodGet, c.hostURL(name)+"/bootstrap", name, false, nil, &b, http.StatusOK)
}

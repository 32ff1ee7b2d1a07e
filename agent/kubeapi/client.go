// Package kubeapi is a client of the Kubernetes API for agents that are parts of a boot
// image, and so link no client-go: requests with a service account's token, merge patches,
// and watches that say only that something has changed. It knows no kind.
package kubeapi

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
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	requestTimeout = 30 * time.Second // limit of one request, in wall time
	watchTimeout   = 5 * time.Minute  // duration of one watch that the client asks the server for
	maxBody        = 4 << 20          // bytes of a response; etcd's limit is below it

	// newTokenWait is the longest that the server may refuse a token that it has not yet
	// accepted, in wall time: it learns of new service accounts and their Secrets by watches,
	// also after its own start. The client asks again every newTokenRetry.
	newTokenWait  = 10 * time.Second
	newTokenRetry = 250 * time.Millisecond
)

// Files are the files of the agent's system, by absolute paths.
type Files interface {
	ReadFile(name string) ([]byte, error)
}

// Client sends requests with a service account's token. When the server refuses the token or
// the certificate, the client reads the account's files again, since both are rotated. It is
// safe for concurrent use; its fields do not change after the first request.
type Client struct {
	Server    string // https URL of the Kubernetes API
	CAFile    string // certificates, in PEM, that sign the server's
	TokenFile string // token of the service account
	Files     Files
	Transport http.RoundTripper // nil: TLS with CAFile
	// Advice says what to do about a token that the server refuses. nil: nothing.
	Advice func(token string) string

	mu        sync.Mutex
	token, ca string
	transport http.RoundTripper
	judged    bool // the server has accepted the token, or has refused it for newTokenWait
}

// StatusError is a response with an unexpected status.
type StatusError struct {
	Code int
	Text string // message of the server
}

// Error implements error.
func (e *StatusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("the API answers %d %s: %s", e.Code, http.StatusText(e.Code), e.Text), ": ")
}

// HasStatus reports whether an error is a response with a status.
func HasStatus(err error, code int) bool {
	var s *StatusError
	return errors.As(err, &s) && s.Code == code
}

// Load reads the token and the certificates, and reports whether one has changed.
func (c *Client) Load() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	token, err := c.Files.ReadFile(c.TokenFile)
	if err != nil {
		return false, fmt.Errorf("tokenFile: %w", err)
	}
	if now := strings.TrimSpace(string(token)); now != c.token {
		c.token, c.judged, changed = now, false, true
	}
	if c.token == "" {
		return false, fmt.Errorf("tokenFile: %s is empty: write the service account's token to it", c.TokenFile)
	}
	if c.Transport != nil {
		c.transport = c.Transport
		return changed, nil
	}
	ca, err := c.Files.ReadFile(c.CAFile)
	if err != nil {
		return false, fmt.Errorf("caFile: %w", err)
	}
	if c.transport != nil && string(ca) == c.ca {
		return changed, nil
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return false, fmt.Errorf("caFile: %s has no certificate in PEM", c.CAFile)
	}
	c.Close()
	c.ca = string(ca)
	c.transport = &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: requestTimeout,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     2 * time.Minute,
	}
	return true, nil
}

// Close closes the connections.
func (c *Client) Close() {
	if t, ok := c.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// send sends a request with the token, which it tries for newTokenWait if it is new.
func (c *Client) send(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	for wait := newTokenWait; ; wait -= newTokenRetry {
		resp, err := c.attempt(ctx, method, path, contentType, body)
		refused := HasStatus(err, http.StatusUnauthorized)
		if refused && wait > 0 && !c.isJudged() {
			t := time.NewTimer(newTokenRetry)
			select {
			case <-t.C:
				continue
			case <-ctx.Done():
				t.Stop()
				return nil, err
			}
		}
		if refused || err == nil {
			c.mu.Lock()
			c.judged = true
			c.mu.Unlock()
		}
		return resp, err
	}
}

func (c *Client) isJudged() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.judged
}

// attempt sends a request with the token. When the server refuses the token, or its
// certificate is not of the authority, the request is sent once more if a file has changed.
func (c *Client) attempt(ctx context.Context, method, path, contentType string, body []byte) (*http.Response, error) {
	c.mu.Lock()
	loaded := c.transport != nil
	c.mu.Unlock()
	if !loaded {
		if _, err := c.Load(); err != nil {
			return nil, err
		}
	}
	for again := true; ; again = false {
		r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Server, "/")+path, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		r.Header.Set("Authorization", "Bearer "+c.token)
		transport := c.transport
		c.mu.Unlock()
		if contentType != "" {
			r.Header.Set("Content-Type", contentType)
		}
		r.Header.Set("Accept", "application/json")
		h := http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := h.Do(r)
		unknown := new(x509.UnknownAuthorityError)
		refused := err == nil && resp.StatusCode == http.StatusUnauthorized
		if !refused && !errors.As(err, unknown) {
			return resp, err
		}
		if refused {
			resp.Body.Close()
			err = &StatusError{Code: http.StatusUnauthorized}
			if c.Advice != nil {
				err = fmt.Errorf("%w: %s", err, c.Advice(c.Token()))
			}
		}
		if !again {
			return nil, err
		}
		switch changed, loadErr := c.Load(); {
		case loadErr != nil:
			return nil, loadErr
		case !changed:
			return nil, err
		}
	}
}

// Call sends a document, if there is one, and reads the response into another.
func (c *Client) Call(ctx context.Context, method, path, contentType string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	resp, err := c.send(ctx, method, path, contentType, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		var s metav1.Status
		_ = json.Unmarshal(b, &s) // a proxy's answer is no Status
		return &StatusError{resp.StatusCode, s.Message}
	}
	if len(b) > maxBody {
		return fmt.Errorf("the answer has more than %d bytes", maxBody)
	}
	return json.Unmarshal(b, out)
}

// Token returns the token that requests have.
func (c *Client) Token() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.token
}

// Watch calls changed for each change of the objects of a collection that a field selector
// selects, until the server ends the watch.
func (c *Client) Watch(ctx context.Context, collection, fieldSelector string, changed func()) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout+requestTimeout)
	defer cancel()
	q := url.Values{"watch": {"true"}, "fieldSelector": {fieldSelector}, "timeoutSeconds": {fmt.Sprint(int(watchTimeout.Seconds()))}}
	resp, err := c.send(ctx, http.MethodGet, collection+"?"+q.Encode(), "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &StatusError{Code: resp.StatusCode}
	}
	for d := json.NewDecoder(resp.Body); ; {
		var event struct {
			Type string `json:"type"`
		}
		switch err := d.Decode(&event); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case event.Type == "ERROR": // such as 410 Gone: a new watch begins at the present
			return errors.New("the API ends the watch")
		}
		changed()
	}
}

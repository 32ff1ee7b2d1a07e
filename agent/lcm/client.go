package lcm

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

	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

const (
	requestTimeout = 30 * time.Second // of one request, in wall time
	watchTimeout   = 5 * time.Minute  // of one watch, as the server is asked
	maxBody        = 4 << 20          // bytes of a response; etcd's limit is below it
)

// client is a client of the Kubernetes API for one LCMMachine and the Secrets that it names.
// When the server refuses the token or the certificate, the client reads the account's files
// again, since both are rotated.
type client struct {
	Account
	files Files
	api   http.RoundTripper // nil: TLS

	mu          sync.Mutex
	token, ca   string
	tokenSecret string // that has the next token, as the LCMMachine named it last
	transport   http.RoundTripper
}

// statusError is a response with an unexpected status.
type statusError struct {
	code int
	text string // of the server
}

// Error implements error.
func (e *statusError) Error() string {
	return strings.TrimSuffix(fmt.Sprintf("the API answers %d %s: %s", e.code, http.StatusText(e.code), e.text), ": ")
}

func hasStatus(err error, code int) bool {
	var s *statusError
	return errors.As(err, &s) && s.code == code
}

// load reads the token and the certificates, and reports whether one has changed.
func (c *client) load() (changed bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	token, err := c.files.ReadFile(c.TokenFile)
	if err != nil {
		return false, fmt.Errorf("tokenFile: %w", err)
	}
	if now := strings.TrimSpace(string(token)); now != c.token {
		c.token, changed = now, true
	}
	if c.token == "" {
		return false, fmt.Errorf("tokenFile: %s is empty: write the service account's token to it", c.TokenFile)
	}
	if c.api != nil {
		c.transport = c.api
		return changed, nil
	}
	ca, err := c.files.ReadFile(c.CAFile)
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
	c.close()
	c.ca = string(ca)
	c.transport = &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: requestTimeout,
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     2 * time.Minute,
	}
	return true, nil
}

// close closes the connections.
func (c *client) close() {
	if t, ok := c.transport.(*http.Transport); ok {
		t.CloseIdleConnections()
	}
}

// send sends a request with the token. When the server refuses the token, or its
// certificate is not of the authority, the request is sent once more if a file has changed.
func (c *client) send(ctx context.Context, method, at, contentType string, body []byte) (*http.Response, error) {
	c.mu.Lock()
	loaded := c.transport != nil
	c.mu.Unlock()
	if !loaded {
		if _, err := c.load(); err != nil {
			return nil, err
		}
	}
	for again := true; ; again = false {
		r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.Server, "/")+at, bytes.NewReader(body))
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
			err = fmt.Errorf("%w: %s", &statusError{code: http.StatusUnauthorized}, c.tokenAdvice())
		}
		if !again {
			return nil, err
		}
		switch changed, loadErr := c.load(); {
		case loadErr != nil:
			return nil, loadErr
		case !changed:
			return nil, err
		}
	}
}

// call sends a document, if there is one, and reads the response into another.
func (c *client) call(ctx context.Context, method, at, contentType string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	resp, err := c.send(ctx, method, at, contentType, body)
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
		return &statusError{resp.StatusCode, s.Message}
	}
	if len(b) > maxBody {
		return fmt.Errorf("the answer has more than %d bytes", maxBody)
	}
	return json.Unmarshal(b, out)
}

func (c *client) collection() string {
	return fmt.Sprintf("/apis/%s/namespaces/%s/lcmmachines", lcm.GroupVersion, url.PathEscape(c.Namespace))
}

// machine returns the LCMMachine.
func (c *client) machine(ctx context.Context) (*lcm.LCMMachine, error) {
	m := &lcm.LCMMachine{}
	return m, c.call(ctx, http.MethodGet, c.collection()+"/"+url.PathEscape(c.Machine), "", nil, m)
}

// create creates the LCMMachine, unassigned.
func (c *client) create(ctx context.Context) error {
	m := lcm.LCMMachine{Spec: lcm.LCMMachineSpec{Type: lcm.MachineUnassigned}}
	m.APIVersion, m.Kind = lcm.GroupVersion.String(), "LCMMachine"
	m.Namespace, m.Name = c.Namespace, c.Machine
	return c.call(ctx, http.MethodPost, c.collection(), "application/json", m, &lcm.LCMMachine{})
}

// patchStatus changes fields of the status (RFC 7386) and returns the object. A version
// that is not "" must be the object's resourceVersion.
func (c *client) patchStatus(ctx context.Context, status map[string]any, version string) (*lcm.LCMMachine, error) {
	patch := map[string]any{"status": status}
	if version != "" {
		patch["metadata"] = map[string]any{"resourceVersion": version}
	}
	m := &lcm.LCMMachine{}
	return m, c.call(ctx, http.MethodPatch, c.collection()+"/"+url.PathEscape(c.Machine)+"/status", "application/merge-patch+json", patch, m)
}

// secret is the part of a Secret that the agent reads.
type secret struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Data map[string][]byte `json:"data"`
}

// secret returns a Secret. Its error has no content of it.
func (c *client) secret(ctx context.Context, namespace, name string) (*secret, error) {
	s := &secret{}
	at := fmt.Sprintf("/api/v1/namespaces/%s/secrets/%s", url.PathEscape(namespace), url.PathEscape(name))
	if err := c.call(ctx, http.MethodGet, at, "", nil, s); err != nil {
		return nil, fmt.Errorf("Secret %s/%s: %w", namespace, name, err)
	}
	return s, nil
}

// watch calls changed for each change of the LCMMachine until the server ends the watch.
func (c *client) watch(ctx context.Context, changed func()) error {
	ctx, cancel := context.WithTimeout(ctx, watchTimeout+requestTimeout)
	defer cancel()
	q := url.Values{"watch": {"true"}, "fieldSelector": {"metadata.name=" + c.Machine}, "timeoutSeconds": {fmt.Sprint(int(watchTimeout.Seconds()))}}
	resp, err := c.send(ctx, http.MethodGet, c.collection()+"?"+q.Encode(), "", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &statusError{code: resp.StatusCode}
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

package agent

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

	"github.com/metalab-dev/metalab/agent/job"
)

// requestTimeout bounds one call, in wall time.
const requestTimeout = 30 * time.Second

// statusError is a response with an unexpected status.
type statusError struct {
	code int
	text string // the response's text, shortened
}

func (e *statusError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("the controller answers %d %s", e.code, http.StatusText(e.code))
	}
	return fmt.Sprintf("the controller answers %d: %s", e.code, e.text)
}

// hasStatus reports whether err is a response with one of the codes.
func hasStatus(err error, codes ...int) bool {
	var s *statusError
	if errors.As(err, &s) {
		for _, c := range codes {
			if s.code == c {
				return true
			}
		}
	}
	return false
}

// client implements the wire contract of package job.
type client struct {
	http  *http.Client
	base  string
	token string
}

// newClient validates media and returns a client that trusts exactly its CA and identifies
// itself by a certificate.
func newClient(m job.Media, identity tls.Certificate) (*client, error) {
	u, err := url.Parse(m.Server)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("agent: media: server %q is no https URL", m.Server)
	}
	if m.Token == "" {
		return nil, errors.New("agent: media: no token")
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(m.CA)) {
		return nil, errors.New("agent: media: ca holds no PEM certificate")
	}
	return &client{
		base:  strings.TrimSuffix(m.Server, "/"),
		token: m.Token,
		http: &http.Client{
			Transport: &http.Transport{
				TLSClientConfig:     &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{identity}, MinVersion: tls.VersionTLS12},
				TLSHandshakeTimeout: requestTimeout,
				MaxIdleConns:        2,
				IdleConnTimeout:     2 * time.Minute,
			},
			// the token must not be sent anywhere else
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// close closes the connections.
func (c *client) close() { c.http.CloseIdleConnections() }

// lease asks for work. It returns nil if there is none.
func (c *client) lease(ctx context.Context) (*job.Job, error) {
	body, err := c.post(ctx, job.LeasePath, job.Lease{Agent: version()}, http.StatusOK, http.StatusNoContent)
	if err != nil {
		return nil, fmt.Errorf("agent: lease: %w", err)
	}
	if body == nil {
		return nil, nil
	}
	var j job.Job
	if err := json.Unmarshal(body, &j); err != nil {
		return nil, fmt.Errorf("agent: lease: %w", err)
	}
	if j.ID == "" {
		return nil, errors.New("agent: lease: a job without ID")
	}
	return &j, nil
}

// report sends the report of a job.
func (c *client) report(ctx context.Context, id string, r job.Report) error {
	path := fmt.Sprintf(job.ReportPath, url.PathEscape(id))
	if _, err := c.post(ctx, path, r, http.StatusNoContent, http.StatusNoContent); err != nil {
		return fmt.Errorf("agent: report: %w", err)
	}
	return nil
}

// post sends a document and returns the body of a response with status full. A
// response with status empty has no body.
func (c *client) post(ctx context.Context, path string, doc any, full, empty int) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, job.MaxBody+1))
	switch {
	case resp.StatusCode == empty:
		return nil, nil
	case resp.StatusCode != full:
		const most = 200
		return nil, &statusError{resp.StatusCode, string(bytes.TrimSpace(body[:min(len(body), most)]))}
	case err != nil:
		return nil, err
	case len(body) > job.MaxBody:
		return nil, fmt.Errorf("the answer is larger than %d bytes", job.MaxBody)
	}
	return body, nil
}

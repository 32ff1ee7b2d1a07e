package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/scenarios/capture"
)

// Bounds of an exchange. A BMC that exceeds one has a Finding.
const (
	maxBody    = 8 << 20 // bytes; the largest attribute registries have 3 MiB
	maxRecord  = 64 << 10
	maxHeaders = 64 << 10
	// defaultPatience is how long a response may take, beyond the 60 s after which
	// clients give up only where a check says so.
	defaultPatience = 60 * time.Second
)

// Request is one HTTP request to the BMC.
type Request struct {
	Method  string      // empty: GET
	URI     string      // a path, or an absolute URL of the BMC
	Header  http.Header // more headers
	Body    any         // nil: none; []byte: as it is; else JSON
	Auth    Auth        // nil: the session or the Basic credentials of the run
	Timeout time.Duration
}

// Auth authenticates a request. Use Anonymous, Basic or Token.
type Auth func(http.Header)

// Anonymous sends no credentials.
func Anonymous(http.Header) {}

// Basic sends a name and password.
func Basic(name, password string) Auth {
	return func(h http.Header) {
		r := http.Request{Header: h}
		r.SetBasicAuth(name, password)
	}
}

// Token sends the token of a session.
func Token(token string) Auth {
	return func(h http.Header) { h.Set("X-Auth-Token", token) }
}

// Response is the BMC's answer.
type Response struct {
	ID     int // ID of the exchange
	URI    string
	Status int
	Header http.Header
	Body   []byte
	Reused bool          // the connection had served an earlier request
	TTFB   time.Duration // until the first byte of the response
	Took   time.Duration
	TLS    *tls.ConnectionState
}

// JSON decodes the body, which must be one JSON document, or returns a Finding.
func (r *Response) JSON() (Value, error) {
	d := json.NewDecoder(bytes.NewReader(r.Body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return Value{}, Findingf("%s: the body is not JSON: %v", r.URI, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Value{}, Findingf("%s: the body has more after its first JSON document", r.URI)
	}
	return NewValue(r.URI, v), nil
}

// Problem describes an error response for a message: the status, and the first
// message of the extended information if there is one.
func (r *Response) Problem() string {
	text := fmt.Sprintf("%d %s", r.Status, http.StatusText(r.Status))
	v, err := r.JSON()
	if err != nil {
		return text
	}
	info := v.At("error", "@Message.ExtendedInfo")
	if one := info.At("0"); one.Exists() {
		info = one
	}
	for _, name := range []string{"MessageId", "Message"} {
		if s := info.At(name).TextOr(""); s != "" {
			text += ", " + s
		}
	}
	return text
}

// Exchange is a request with its response, for the evidence. Secrets are replaced
// when it is recorded.
type Exchange struct {
	ID            int
	Check         string
	Began         time.Time
	Method        string
	URL           string
	RequestHeader http.Header
	RequestBody   []byte
	Status        int
	Header        http.Header
	Body          []byte // its first 64 KiB
	Size          int64
	TTFB, Took    time.Duration
	Error         string
	Unsent        bool // a dry run did not send it
}

// Connections is how a check's requests use connections.
type Connections struct {
	Fresh    bool // each request has a connection of its own
	Parallel int  // most connections at once; 0: 1
	TLS      *tls.Config
	Gzip     bool // the transport asks for gzip and decompresses
}

// client sends requests to one BMC and records them.
type client struct {
	base     *url.URL
	insecure bool
	roots    *x509.CertPool
	clock    clock.Clock
	patience time.Duration
	every    time.Duration // least time between the beginnings of requests
	secrets  *secrets

	mu        sync.Mutex
	next      time.Time // when the next request may begin
	exchanges []Exchange
}

// maxExchanges bounds the evidence of a run.
const maxExchanges = 20000

// transport returns a connection policy's transport. The caller closes its idle
// connections.
func (c *client) transport(p Connections) *http.Transport {
	conf := &tls.Config{RootCAs: c.roots, InsecureSkipVerify: c.insecure, MinVersion: tls.VersionTLS12}
	if p.TLS != nil {
		conf = p.TLS
	}
	return &http.Transport{
		DialContext:            (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		TLSClientConfig:        conf,
		TLSHandshakeTimeout:    20 * time.Second,
		MaxConnsPerHost:        max(1, p.Parallel),
		MaxIdleConnsPerHost:    max(1, p.Parallel),
		DisableKeepAlives:      p.Fresh,
		DisableCompression:     !p.Gzip,
		MaxResponseHeaderBytes: maxHeaders,
		TLSNextProto:           map[string]func(string, *tls.Conn) http.RoundTripper{}, // HTTP/1.1, as BMCs' clients speak it
	}
}

// resolve returns the URL of a request. It refuses other hosts, to which the
// credentials must not go.
func (c *client) resolve(uri string) (*url.URL, error) {
	ref, err := url.Parse(uri)
	if err != nil {
		return nil, Findingf("%q is not a URI: %v", uri, err)
	}
	u := c.base.ResolveReference(ref)
	if u.Host != c.base.Host || u.Scheme != c.base.Scheme {
		return nil, Findingf("%s leads away from %s", uri, c.base.Host)
	}
	return u, nil
}

// send sends a request as it is: no redirect is followed and nothing is sent
// twice, except that the transport repeats a GET whose reused connection the BMC
// had closed before it answered.
func (c *client) send(ctx context.Context, t http.RoundTripper, check string, r Request) (*Response, error) {
	u, err := c.resolve(r.URI)
	if err != nil {
		return nil, err
	}
	method, body, header, err := encode(r)
	if err != nil {
		return nil, err
	}
	if err := c.pace(ctx); err != nil {
		return nil, err
	}
	patience := c.patience
	if r.Timeout > 0 {
		patience = r.Timeout
	}
	timed, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	began := c.clock.Now()
	resp := &Response{URI: r.URI}
	var seen trace
	traced := httptrace.WithClientTrace(timed, seen.hooks(func() time.Duration { return c.clock.Since(began) }))
	req, err := http.NewRequestWithContext(traced, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("request %s %s: %w", method, r.URI, err)
	}
	if len(body) == 0 {
		req.Body, req.GetBody, req.ContentLength = nil, nil, 0
	}
	req.Header = header
	x := Exchange{Check: check, Began: began, Method: method, URL: u.String(), RequestHeader: header, RequestBody: body}
	answer, err := t.RoundTrip(req)
	var connected bool
	connected, resp.Reused, resp.TTFB = seen.result()
	var size int64
	if err == nil {
		resp.Status, resp.Header, resp.TLS = answer.StatusCode, answer.Header, answer.TLS
		resp.Body, err = io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
		size = int64(len(resp.Body))
		answer.Body.Close()
		switch {
		case len(resp.Body) > maxBody:
			err = Findingf("%s %s: the body has more than %d MiB", method, r.URI, maxBody>>20)
		case err != nil && ctx.Err() == nil && timed.Err() != nil:
			err = Findingf("%s %s: the body is not complete after %v, with %d bytes", method, r.URI, patience, size)
		case err != nil && ctx.Err() == nil:
			err = Findingf("%s %s: the body ends early, after %d bytes: %v", method, r.URI, size, err)
		}
	} else {
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case connected && timed.Err() != nil:
			err = Findingf("%s %s: no response within %v", method, r.URI, patience)
		case strings.Contains(err.Error(), "malformed HTTP"), strings.Contains(err.Error(), "server response headers exceeded"):
			err = Findingf("%s %s: %v", method, r.URI, err)
		case refusesTLS(err):
			err = Findingf("%s %s: the TLS handshake fails: %v", method, r.URI, err)
		default:
			err = fmt.Errorf("%s %s: %w", method, r.URI, capture.WithRemedy(err))
		}
	}
	resp.Took = c.clock.Since(began)
	x.Status, x.Header, x.Body, x.Size, x.TTFB, x.Took = resp.Status, resp.Header, resp.Body, size, resp.TTFB, resp.Took
	if err != nil {
		x.Error = err.Error()
	}
	resp.ID = c.record(x)
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// trace is the course of one request. The transport's goroutines call its hooks, also
// after a request that has run out of time has returned.
type trace struct {
	mu                sync.Mutex
	connected, reused bool
	firstByte         time.Duration // since the request began
}

// hooks returns the hooks that fill a trace; since is the time since the request began.
func (t *trace) hooks(since func() time.Duration) *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GotConn: func(i httptrace.GotConnInfo) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.connected, t.reused = true, i.Reused
		},
		GotFirstResponseByte: func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.firstByte = since()
		},
	}
}

func (t *trace) result() (connected, reused bool, firstByte time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.connected, t.reused, t.firstByte
}

// refusesTLS reports whether a handshake has failed for another reason than the
// certificate, which the caller may not have trusted.
func refusesTLS(err error) bool {
	return strings.Contains(err.Error(), "tls: ") && !strings.Contains(err.Error(), "certificate")
}

// encode returns the body of a request.
func encode(r Request) (method string, body []byte, header http.Header, err error) {
	method = r.Method
	if method == "" {
		method = http.MethodGet
	}
	header = http.Header{"Accept": {"application/json"}, "User-Agent": {"labctl-conformance"}, "Odata-Version": {"4.0"}}
	switch b := r.Body.(type) {
	case nil:
	case []byte:
		body = b
	default:
		if body, err = json.Marshal(b); err != nil {
			return "", nil, nil, fmt.Errorf("body of %s %s: %w", method, r.URI, err)
		}
	}
	if body != nil {
		header.Set("Content-Type", "application/json")
	}
	for name, values := range r.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	if r.Auth != nil {
		r.Auth(header)
	}
	return method, body, header, nil
}

// pace waits until the rate allows another request.
func (c *client) pace(ctx context.Context) error {
	c.mu.Lock()
	now := c.clock.Now()
	begin := c.next
	if begin.Before(now) {
		begin = now
	}
	c.next = begin.Add(c.every)
	c.mu.Unlock()
	if d := begin.Sub(now); d > 0 {
		select {
		case <-c.clock.After(d):
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}

// record keeps an exchange as evidence, without secrets, and returns its ID.
func (c *client) record(x Exchange) int {
	if len(x.Body) > maxRecord {
		x.Body = x.Body[:maxRecord]
	}
	c.secrets.learn(x)
	x.RequestHeader, x.Header = c.secrets.header(x.RequestHeader), c.secrets.header(x.Header)
	x.RequestBody, x.Body = c.secrets.body(x.RequestBody), c.secrets.body(x.Body)
	x.URL, x.Error = c.secrets.text(x.URL), c.secrets.text(x.Error)
	c.mu.Lock()
	defer c.mu.Unlock()
	x.ID = len(c.exchanges) + 1
	if len(c.exchanges) < maxExchanges {
		c.exchanges = append(c.exchanges, x)
	}
	return x.ID
}

package redfish

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const (
	servicePath = "/redfish/v1/" // path of the service root (DSP0266 §6.3)
	maxBody     = 8 << 20        // bytes of one response; the largest collections have 1 MB
	retries     = 2              // number of retries of one GET
	// patchTimeoutFactor multiplies the timeout of a PATCH: some services respond
	// only when the change is complete, after a minute and more (ironic's
	// redfish-read-timeout note).
	patchTimeoutFactor = 4
	firstRetryDelay    = 500 * time.Millisecond
	maxRetryDelay      = 5 * time.Second // upper bound of Retry-After; a longer wait belongs in the caller's queue
)

var errTooLarge = errors.New("the response is too large")

// transport carries every request of a client, gofish's included. It bounds their
// time and size, retries those that are safe to repeat, and records the headers of
// error responses, which gofish discards.
type transport struct {
	base        *http.Transport
	timeout     time.Duration
	clock       clock.Clock
	defaultAuth atomic.Pointer[string] // Authorization header for requests without one; nil for none
}

func newTransport(c bmc.Config) *transport {
	dialer := &net.Dialer{Timeout: c.Timeout}
	return &transport{
		base: &http.Transport{
			// no proxy: BMCs sit on a management network
			DialContext:         dialer.DialContext,
			TLSClientConfig:     tlsConfig(c),
			TLSHandshakeTimeout: c.Timeout,
			MaxIdleConns:        concurrency,
			MaxIdleConnsPerHost: concurrency,
			IdleConnTimeout:     30 * time.Second,
		},
		timeout: c.Timeout,
		clock:   c.Clock,
	}
}

// tlsConfig verifies the BMC's certificate against c's roots and then against the
// system's: crypto/x509 cannot join two pools.
func tlsConfig(c bmc.Config) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure}
	if c.Insecure || c.RootCAs == nil {
		return config
	}
	config.InsecureSkipVerify = true // replaced by VerifyConnection below
	config.VerifyConnection = func(cs tls.ConnectionState) error {
		options := x509.VerifyOptions{DNSName: c.Address.Host, Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
		for _, cert := range cs.PeerCertificates[1:] {
			options.Intermediates.AddCert(cert)
		}
		_, err := cs.PeerCertificates[0].Verify(options)
		if err == nil {
			return nil
		}
		options.Roots = nil // the system's
		if _, e := cs.PeerCertificates[0].Verify(options); e == nil {
			return nil
		}
		return &tls.CertificateVerificationError{UnverifiedCertificates: cs.PeerCertificates, Err: err}
	}
	return config
}

// client returns an HTTP client on t. It follows redirects to the same service,
// such as the one from /redfish/v1, and no others: net/http would send
// X-Auth-Token to another host, and turn a POST into a GET.
func (t *transport) client() *http.Client {
	return &http.Client{
		Transport: t,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			first := via[0]
			if len(via) > 3 || req.Method != first.Method || req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

func (t *transport) hasDefaultAuth() bool        { return t.defaultAuth.Load() != nil }
func (t *transport) setDefaultAuth(value string) { t.defaultAuth.Store(&value) }

// outcome records how a request ended.
type outcome struct {
	path      string
	status    int // 0 without a response
	header    http.Header
	body      []byte
	firstBody []byte        // body of the first 2xx response, when a request led to several
	timeout   time.Duration // limit of the request; 0 means the transport's
}

type outcomeKey struct{}

func withOutcome(ctx context.Context, r *outcome) context.Context {
	return context.WithValue(ctx, outcomeKey{}, r)
}

// RoundTrip sends a request. It repeats a GET that failed for a transient reason,
// and repeats a PATCH or DELETE once when its connection broke: some services
// close a connection that is reused (sushy's disable-conn-pooling note), and both
// methods are idempotent here. It never repeats a POST, which may have been
// carried out without a response.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	for try := 0; ; try++ {
		resp, err := t.attempt(req)
		switch {
		case req.Method == http.MethodGet && try < retries && isTransient(resp, err):
		case (req.Method == http.MethodPatch || req.Method == http.MethodDelete) && try == 0 && err != nil && isTransient(resp, err) && rewindBody(req):
			continue
		default:
			return resp, err
		}
		wait := firstRetryDelay << try
		if resp != nil {
			wait = retryAfter(resp.Header, t.clock.Now(), wait)
		}
		timer := t.clock.NewTimer(min(wait, maxRetryDelay))
		select {
		case <-timer.C():
		case <-req.Context().Done():
			timer.Stop()
			return nil, req.Context().Err()
		}
	}
}

// rewindBody resets a request's body to send it again. It reports whether that is
// possible.
func rewindBody(req *http.Request) bool {
	if req.Body == nil || req.Body == http.NoBody {
		return true
	}
	if req.GetBody == nil {
		return false
	}
	body, err := req.GetBody()
	if err != nil {
		return false
	}
	req.Body = body
	return true
}

// attempt sends a request once and reads the whole response, so that one timeout
// covers both and the connection is free again at once.
func (t *transport) attempt(req *http.Request) (*http.Response, error) {
	rec, _ := req.Context().Value(outcomeKey{}).(*outcome)
	if rec == nil {
		rec = &outcome{}
	}
	limit := t.timeout
	if req.Method == http.MethodPatch {
		limit *= patchTimeoutFactor
	}
	if rec.timeout > 0 {
		limit = rec.timeout
	}
	ctx, cancel := context.WithTimeout(req.Context(), limit)
	defer cancel()
	sent := req.Clone(ctx)
	if auth := t.defaultAuth.Load(); auth != nil && sent.Header.Get("Authorization") == "" && sent.Header.Get("X-Auth-Token") == "" {
		sent.Header.Set("Authorization", *auth)
	}
	sent.Header.Set("Accept-Encoding", acceptEncoding)
	rec.path, rec.status, rec.header, rec.body = req.URL.Path, 0, nil, nil

	_, span := bmc.StartSpan(ctx, req.Method+" "+req.URL.Path, attribute.String("http.request.method", req.Method),
		attribute.String("url.path", req.URL.Path), attribute.String("server.address", req.URL.Hostname()))
	resp, err := t.base.RoundTrip(sent)
	if err != nil {
		span.SetStatus(codes.Error, "no response")
		span.End()
		return nil, err
	}
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	if resp.StatusCode >= http.StatusBadRequest {
		span.SetStatus(codes.Error, resp.Status)
	}
	span.End()
	body, err := readBody(resp)
	_ = resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	rec.status, rec.header, rec.body = resp.StatusCode, resp.Header, body
	if rec.firstBody == nil && resp.StatusCode/100 == 2 {
		rec.firstBody = body
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// isTransient reports whether the next attempt may succeed. A timeout is not
// transient: the caller has waited long enough.
func isTransient(resp *http.Response, err error) bool {
	if err == nil {
		return resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.Contains(err.Error(), "server closed idle connection") // net/http exports no value for it
}

// retryAfter returns the wait that a response asks for, in seconds or as a date
// (RFC 9110, §10.2.3), or otherwise if it asks for none.
func retryAfter(h http.Header, now time.Time, otherwise time.Duration) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(v, 10, 16); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(at.Sub(now), 0)
	}
	return otherwise
}

// acceptEncoding prefers plain bodies, because a BMC's processor is slow and its
// network near. Some BMCs store registries compressed only (HPE's).
const acceptEncoding = "identity, gzip;q=0.5"

// readBody reads and decompresses a response's body, at most maxBody bytes.
func readBody(resp *http.Response) ([]byte, error) {
	var plain io.Reader = resp.Body
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		unpacked, err := gzip.NewReader(resp.Body)
		if errors.Is(err, io.EOF) { // the response to HEAD, or an empty one
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		plain = unpacked
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
	body, err := io.ReadAll(io.LimitReader(plain, maxBody+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxBody {
		return nil, errTooLarge
	}
	return body, nil
}

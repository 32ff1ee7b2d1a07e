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

	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/controller/bmc"
)

const (
	servicePath = "/redfish/v1/" // of the service root (DSP0266 §6.3)
	maxBody     = 8 << 20        // bytes of an answer; the largest collections have 1 MB
	usualBody   = 64 << 10       // bytes that are believed to come before they do
	retries     = 2              // of a GET
	// patience is how much longer than others a PATCH may take: some services
	// answer when all is done, after a minute and more (ironic's
	// redfish-read-timeout note).
	patience    = 4
	firstWait   = 500 * time.Millisecond
	longestWait = 5 * time.Second // whatever Retry-After says: the caller's queue is the place for more
)

var errTooLarge = errors.New("the answer is too large")

// transport carries every request of a client, gofish's included. It limits
// their time and size, repeats what may be repeated, and keeps what gofish
// throws away: the headers of an answer that it takes for an error.
type transport struct {
	base    *http.Transport
	timeout time.Duration
	clock   clock.Clock
	auth    atomic.Pointer[string] // Authorization of requests that have none; nil for none
}

func newTransport(c bmc.Config) *transport {
	dialer := &net.Dialer{Timeout: c.Timeout}
	return &transport{
		base: &http.Transport{
			// No proxy: BMCs sit on a management network of their own.
			DialContext:         dialer.DialContext,
			TLSClientConfig:     trust(c),
			TLSHandshakeTimeout: c.Timeout,
			MaxIdleConns:        concurrency,
			MaxIdleConnsPerHost: concurrency,
			IdleConnTimeout:     30 * time.Second,
		},
		timeout: c.Timeout,
		clock:   c.Clock,
	}
}

// trust verifies the BMC's certificate against the system's roots and then
// against c's own: crypto/x509 cannot join two pools.
func trust(c bmc.Config) *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: c.Insecure}
	if c.Insecure || c.RootCAs == nil {
		return config
	}
	config.InsecureSkipVerify = true // in favour of the next lines
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

// client is an HTTP client on t. It follows a redirect to the same service,
// such as the one from /redfish/v1, and no other: net/http would take
// X-Auth-Token along to wherever it leads, and make a GET of a POST.
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

func (t *transport) always() bool           { return t.auth.Load() != nil }
func (t *transport) setAlways(value string) { t.auth.Store(&value) }

// record is what became of a request.
type record struct {
	path   string
	status int // 0 without an answer
	header http.Header
	body   []byte
	first  []byte        // the body of the first good answer, when there were several
	limit  time.Duration // of the request; 0 is the transport's
}

type recordKey struct{}

func withRecord(ctx context.Context, r *record) context.Context {
	return context.WithValue(ctx, recordKey{}, r)
}

// RoundTrip repeats a GET that may succeed the second time, and once a PATCH or
// DELETE whose connection broke: some services close one that is used again
// (sushy's disable-conn-pooling note), and what these two ask for is the same
// the second time. A POST that got no answer may have been carried out.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	for try := 0; ; try++ {
		resp, err := t.once(req)
		switch {
		case req.Method == http.MethodGet && try < retries && transient(resp, err):
		case (req.Method == http.MethodPatch || req.Method == http.MethodDelete) && try == 0 && err != nil && transient(resp, err) && rewind(req):
			continue
		default:
			return resp, err
		}
		wait := firstWait << try
		if resp != nil {
			wait = retryAfter(resp.Header, t.clock.Now(), wait)
		}
		timer := t.clock.NewTimer(min(wait, longestWait))
		select {
		case <-timer.C():
		case <-req.Context().Done():
			timer.Stop()
			return nil, req.Context().Err()
		}
	}
}

// rewind makes a request ready to be sent once more.
func rewind(req *http.Request) bool {
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

// once sends a request and reads the whole answer, so that its time is
// limited as a whole and the connection is free again at once.
func (t *transport) once(req *http.Request) (*http.Response, error) {
	rec, _ := req.Context().Value(recordKey{}).(*record)
	if rec == nil {
		rec = &record{}
	}
	limit := t.timeout
	if req.Method == http.MethodPatch {
		limit *= patience
	}
	if rec.limit > 0 {
		limit = rec.limit
	}
	ctx, cancel := context.WithTimeout(req.Context(), limit)
	defer cancel()
	sent := req.Clone(ctx)
	if auth := t.auth.Load(); auth != nil && sent.Header.Get("Authorization") == "" && sent.Header.Get("X-Auth-Token") == "" {
		sent.Header.Set("Authorization", *auth)
	}
	sent.Header.Set("Accept-Encoding", encodings)
	rec.path, rec.status, rec.header, rec.body = req.URL.Path, 0, nil, nil

	resp, err := t.base.RoundTrip(sent)
	if err != nil {
		return nil, err
	}
	body, err := readBody(resp)
	_ = resp.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	rec.status, rec.header, rec.body = resp.StatusCode, resp.Header, body
	if rec.first == nil && resp.StatusCode/100 == 2 {
		rec.first = body
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// transient tells a failure that the next attempt may not meet. A time-out is
// none: the caller has waited long enough.
func transient(resp *http.Response, err error) bool {
	if err == nil {
		return resp.StatusCode == http.StatusServiceUnavailable || resp.StatusCode == http.StatusTooManyRequests
	}
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		strings.Contains(err.Error(), "server closed idle connection") // net/http exports no value for it
}

// retryAfter is how long an answer asks to wait: seconds or a date (RFC 9110,
// §10.2.3).
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

// encodings are what a BMC may send: plain rather than packed, as its processor is
// slow and its network near. Some have registries packed only (HPE's).
const encodings = "identity, gzip;q=0.5"

// readBody reads an answer's body, and unpacks it, into as much memory as its
// length needs, where it is told and not a lie.
func readBody(resp *http.Response) ([]byte, error) {
	var plain io.Reader = resp.Body
	size := resp.ContentLength
	if strings.EqualFold(resp.Header.Get("Content-Encoding"), "gzip") {
		unpacked, err := gzip.NewReader(resp.Body)
		if errors.Is(err, io.EOF) { // to HEAD, or nothing
			return nil, nil
		} else if err != nil {
			return nil, err
		}
		plain, size = unpacked, 0
		resp.Header.Del("Content-Encoding")
		resp.Header.Del("Content-Length")
		resp.ContentLength, resp.Uncompressed = -1, true
	}
	if size > maxBody {
		return nil, errTooLarge
	}
	body := bytes.NewBuffer(make([]byte, 0, min(max(size, 0), usualBody)+bytes.MinRead))
	if _, err := body.ReadFrom(io.LimitReader(plain, maxBody+1)); err != nil {
		return nil, err
	}
	if body.Len() > maxBody {
		return nil, errTooLarge
	}
	return body.Bytes(), nil
}

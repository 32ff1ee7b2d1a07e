package disk

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Limits of downloads, in wall time: a virtual clock does not speed up a network.
const (
	defaultStall = time.Minute
	// maxResumes bounds the consecutive resumptions of a download that bring less
	// than resumeGain.
	maxResumes   = 5
	resumeGain   = 16 << 20
	maxRedirects = 10
	defaultPause = 500 * time.Millisecond // before the second resumption; doubles each time
)

var errStalled = errors.New("the server stopped sending")

// permanentError is an error that a retry cannot fix.
type permanentError string

func (e permanentError) Error() string { return string(e) }

func permanentErrorf(format string, args ...any) error {
	return permanentError(fmt.Sprintf(format, args...))
}

// parseURL parses a URL with a scheme that the agent supports.
func parseURL(field, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("disk: %s is no URL", field) // the error would quote the URL with its password
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("disk: %s: scheme %q is not supported, want http or https", field, u.Scheme)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("disk: %s has no host", field)
	}
	return u, nil
}

// redactURL returns a URL for reports, without user and query, which often hold
// secrets.
func redactURL(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// download reads a file over HTTP from start to end, resuming it when the
// connection breaks.
type download struct {
	client *http.Client
	url    *url.URL
	stall  time.Duration
	pause  time.Duration

	size int64 // size of the file in bytes; -1 if unknown
	off  int64 // bytes delivered so far

	body   io.ReadCloser // response body of the current request; nil if there is none
	broken error         // error of a read that also returned the last bytes
	cancel context.CancelFunc

	watch     *stallWatch // stall watch of the current request
	validator string      // for If-Range: strong ETag, or date
	etag      string      // ETag of the first response
	mark      int64       // value of off when resumes was reset
	resumes   int

	registry    *registry // the source, if it is a registry; else nil
	authRetries int       // consecutive authentications
}

// open starts the download of u and returns when the server has responded. The
// caller closes it. strict refuses redirects from https to http, which are safe
// only for a file with a known digest.
func (w Writer) open(ctx context.Context, u *url.URL, strict bool, from *registry) (*download, error) {
	d := &download{client: w.client(strict), url: u, stall: w.Stall, pause: w.Pause, size: -1, registry: from}
	if d.stall <= 0 {
		d.stall = defaultStall
	}
	if d.pause <= 0 {
		d.pause = defaultPause
	}
	if err := d.connect(ctx, d.request(ctx)); err != nil {
		return nil, err
	}
	return d, nil
}

// client returns the caller's HTTP client restricted to http and https: a redirect
// could lead to any scheme that its transport knows.
func (w Writer) client(strict bool) *http.Client {
	var c http.Client
	if w.HTTP != nil {
		c = *w.HTTP
	}
	ask := c.CheckRedirect
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) >= maxRedirects {
			return permanentErrorf("more than %d redirects", maxRedirects)
		}
		if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
			return permanentErrorf("redirect to scheme %q is not followed", r.URL.Scheme)
		}
		if strict && r.URL.Scheme == "http" && via[0].URL.Scheme == "https" {
			return permanentError("redirect from https to http is not followed")
		}
		if ask != nil {
			return ask(r, via)
		}
		return nil
	}
	c.Timeout = 0 // an image may take any time; the stallWatch ends a stalled download
	return &c
}

// read fills p like io.Reader.
func (d *download) read(ctx context.Context, p []byte) (int, error) {
	for {
		n, err := 0, d.broken
		if err == nil {
			n, err = d.watchRead(d.body, p)
		}
		if d.off += int64(n); d.off-d.mark >= resumeGain {
			d.mark, d.resumes = d.off, 0
		}
		if errors.Is(err, io.EOF) && d.off < d.size {
			err = io.ErrUnexpectedEOF
		}
		switch {
		case err == nil, errors.Is(err, io.EOF):
			return n, err
		case n > 0:
			d.broken = err
			return n, nil
		}
		if err := d.connect(ctx, d.fail(err)); err != nil {
			return 0, err
		}
	}
}

// connect requests the file from off on until the server responds or retries are
// exhausted; err is the error of the previous request.
func (d *download) connect(ctx context.Context, err error) error {
	for err != nil {
		if ended := context.Cause(ctx); ended != nil {
			return fmt.Errorf("disk: download %s: %w", redactURL(d.url), ended)
		}
		var never permanentError
		var cert *tls.CertificateVerificationError
		if errors.As(err, &never) || errors.As(err, &cert) || d.resumes >= maxResumes {
			if d.off > 0 {
				return fmt.Errorf("disk: download %s: after %d bytes: %w", redactURL(d.url), d.off, err)
			}
			return fmt.Errorf("disk: download %s: %w", redactURL(d.url), err)
		}
		if d.resumes > 0 {
			wait, cancel := context.WithTimeout(ctx, d.pause<<(d.resumes-1))
			<-wait.Done()
			cancel()
		}
		d.resumes++
		err = d.request(ctx)
	}
	return nil
}

// request requests the file from off on, once.
func (d *download) request(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	d.cancel, d.broken = cancel, nil
	d.watch = startStallWatch(d.stall, cancel)
	if err := d.sendRequest(ctx); err != nil {
		return d.fail(err)
	}
	return nil
}

func (d *download) sendRequest(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url.String(), nil)
	if err != nil {
		return permanentError("the request cannot be made")
	}
	// Otherwise the transport would request gzip and decompress it, and neither
	// the size nor ranges would be those of the file.
	r.Header.Set("Accept-Encoding", "identity")
	if d.off > 0 {
		r.Header.Set("Range", fmt.Sprintf("bytes=%d-", d.off))
		if d.validator != "" {
			r.Header.Set("If-Range", d.validator)
		}
	}
	if d.registry != nil {
		d.registry.authorize(r)
	}
	d.watch.wait()
	resp, err := d.client.Do(r)
	d.watch.received(stallBytes) // a response counts as progress
	if err != nil {
		var u *url.Error // it quotes the URL, which redactURL shows without secrets
		if errors.As(err, &u) {
			err = u.Err
		}
		return err
	}
	d.body = resp.Body
	if resp.StatusCode == http.StatusUnauthorized && d.registry != nil && d.authRetries < maxAuthRetries {
		d.authRetries++ // the token may have expired while the disk was busy
		if err := d.registry.authenticate(ctx, resp.Header.Get("WWW-Authenticate")); err != nil {
			return permanentError(err.Error())
		}
		resp.Body.Close()
		return d.sendRequest(ctx)
	}
	d.authRetries = 0
	return d.checkResponse(resp)
}

// maxAuthRetries bounds the consecutive authentications at a registry.
const maxAuthRetries = 2

// checkResponse accepts or rejects the response, and skips what was received
// before if the server sends the whole file again.
func (d *download) checkResponse(resp *http.Response) error {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return permanentErrorf("the server sends it with Content-Encoding %s", shortened(enc))
	}
	etag, changed := resp.Header.Get("ETag"), permanentError("the file changed on the server during the download")
	switch code := resp.StatusCode; {
	case code == http.StatusOK && d.off == 0:
		d.size, d.etag = resp.ContentLength, etag
		d.validator = resp.Header.Get("Last-Modified")
		if etag != "" && !strings.HasPrefix(etag, "W/") { // weak ETags do not identify bytes (RFC 9110 §13.1.5)
			d.validator = etag
		}
		return nil
	case code == http.StatusOK:
		if etag != d.etag || (d.size >= 0 && resp.ContentLength != d.size) {
			return changed
		}
		return d.skip(resp.Body)
	case code == http.StatusPartialContent && d.off > 0:
		var first, last int64
		var total string
		have := resp.Header.Get("Content-Range")
		if _, err := fmt.Sscanf(have, "bytes %d-%d/%s", &first, &last, &total); err != nil || first != d.off {
			return permanentErrorf("Content-Range is %q when asked from byte %d on", shortened(have), d.off)
		}
		if total != "*" && d.size >= 0 && total != strconv.FormatInt(d.size, 10) {
			return changed
		}
		return nil
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return fmt.Errorf("the server answers %s", shortened(resp.Status))
	}
	return permanentErrorf("the server answers %s", shortened(resp.Status))
}

func (d *download) skip(body io.Reader) error {
	buf := make([]byte, 64<<10)
	for left := d.off; left > 0; {
		n, err := d.watchRead(body, buf[:min(left, int64(len(buf)))])
		left -= int64(n)
		if err != nil && left > 0 {
			return err
		}
	}
	return nil
}

// watchRead reads under the stallWatch.
func (d *download) watchRead(r io.Reader, p []byte) (int, error) {
	d.watch.wait()
	n, err := r.Read(p)
	d.watch.received(int64(n))
	return n, err
}

// fail ends the current request after err, and returns the error of a stall if
// there was one.
func (d *download) fail(err error) error {
	if d.close() {
		return errStalled
	}
	return err
}

// close ends the current request. It reports whether that had stalled.
func (d *download) close() (stalled bool) {
	stalled = d.watch.stop()
	d.cancel()
	if d.body != nil {
		d.body.Close()
		d.body = nil
	}
	return stalled
}

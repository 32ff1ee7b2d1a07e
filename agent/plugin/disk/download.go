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

// Limits of downloads. They are wall time: bytes do not hurry with a virtual
// clock.
const (
	defaultStall = time.Minute
	// maxResumes is how often in a row a download is taken up again without
	// having brought resumeGain in between.
	maxResumes   = 5
	resumeGain   = 16 << 20
	maxRedirects = 10
	defaultPause = 500 * time.Millisecond // before the second resumption; doubles
)

var errStalled = errors.New("the server stopped sending")

// permanentError is an error that asking again cannot mend.
type permanentError string

func (e permanentError) Error() string { return string(e) }

func permanentErrorf(format string, args ...any) error {
	return permanentError(fmt.Sprintf(format, args...))
}

// parseURL accepts what the agent can fetch.
func parseURL(field, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("disk: %s is no URL", field) // the error would quote it, password and all
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("disk: %s: scheme %q is not supported, want http or https", field, u.Scheme)
	}
	if u.Host == "" {
		return nil, fmt.Errorf("disk: %s has no host", field)
	}
	return u, nil
}

// redactURL is a URL as reports may show it: user and query often hold secrets.
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

	size int64 // of the file in bytes; -1 when the server does not tell
	off  int64 // bytes delivered

	body   io.ReadCloser // of the current request; nil when there is none
	broken error         // what ended it, when that came with the last bytes
	cancel context.CancelFunc

	watch     *stallWatch // of the current request
	validator string      // for If-Range: strong ETag, or date
	etag      string      // what the server said first
	mark      int64       // off at which resumes was last reset
	resumes   int

	registry    *registry // that the file comes from; nil when it comes from none
	authRetries int       // how often in a row it was told who we are
}

// open starts the download of u and returns when the server has answered.
// The caller closes it. strict refuses to be led from https to http, which only
// a file that is checked against a digest may be.
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

// client is the caller's HTTP client, kept to http and https: a redirect could
// lead to whatever other scheme its transport knows.
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
	c.Timeout = 0 // an image takes as long as it takes; the watch looks after it
	return &c
}

// read fills p as io.Reader does.
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

// connect asks for the file from off on until the server answers or there is no
// more hope; err is how the last request ended.
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

// request asks for the file from off on, once.
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
	// Otherwise the transport would ask for gzip and unpack it, and neither the
	// size nor ranges would be those of the file.
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
	d.watch.received(stallBytes) // an answer is as good
	if err != nil {
		var u *url.Error // quotes the URL, which place shows as it should
		if errors.As(err, &u) {
			err = u.Err
		}
		return err
	}
	d.body = resp.Body
	if resp.StatusCode == http.StatusUnauthorized && d.registry != nil && d.authRetries < maxAuthRetries {
		d.authRetries++ // the token may have become too old while the disk was busy
		if err := d.registry.authenticate(ctx, resp.Header.Get("WWW-Authenticate")); err != nil {
			return permanentError(err.Error())
		}
		resp.Body.Close()
		return d.sendRequest(ctx)
	}
	d.authRetries = 0
	return d.checkResponse(resp)
}

// maxAuthRetries is how often in a row a registry may ask who we are.
const maxAuthRetries = 2

// checkResponse takes or refuses the answer, and skips what is already here when the
// server sends the whole file again.
func (d *download) checkResponse(resp *http.Response) error {
	if enc := resp.Header.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return permanentErrorf("the server sends it with Content-Encoding %s", shortened(enc))
	}
	etag, changed := resp.Header.Get("ETag"), permanentError("the file changed on the server during the download")
	switch code := resp.StatusCode; {
	case code == http.StatusOK && d.off == 0:
		d.size, d.etag = resp.ContentLength, etag
		d.validator = resp.Header.Get("Last-Modified")
		if etag != "" && !strings.HasPrefix(etag, "W/") { // weak ones are no good here (RFC 9110 §13.1.5)
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

// watchRead reads under the watch.
func (d *download) watchRead(r io.Reader, p []byte) (int, error) {
	d.watch.wait()
	n, err := r.Read(p)
	d.watch.received(int64(n))
	return n, err
}

// fail ends the current request after err, and tells a stall from what it led to.
func (d *download) fail(err error) error {
	if d.close() {
		return errStalled
	}
	return err
}

// close ends the current request and tells whether it had stalled.
func (d *download) close() (stalled bool) {
	stalled = d.watch.stop()
	d.cancel()
	if d.body != nil {
		d.body.Close()
		d.body = nil
	}
	return stalled
}

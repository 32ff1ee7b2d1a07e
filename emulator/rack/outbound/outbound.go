// Package outbound is what BMCs send to other servers: it fetches images of virtual
// media and firmware over HTTP and HTTPS, posts events to subscribers, and sends
// SNMP traps. Its timeouts are real time, because those servers do not know the
// lab's time. It does not look into what it fetches or sends.
package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// Config bounds what a Fetcher does. Zero values mean the defaults given here.
type Config struct {
	RootCAs   *x509.CertPool // nil: the system's
	MaxSize   int64          // bytes; 16 GiB
	Stall     time.Duration  // real time without progress; 30 s
	Redirects int            // followed redirects; 10
}

// Fetcher fetches images. It is safe for concurrent use and keeps no connections
// between fetches.
type Fetcher struct {
	c          Config
	http       *http.Client
	unverified *http.Client
}

// Image is an image to fetch.
type Image struct {
	URL            string // http or https
	User, Password string // for basic authentication when User is not empty
	Unverified     bool   // any server certificate is accepted
	// Trusted are certificates (DER) of servers or authorities that are trusted in
	// addition to those of Config.
	Trusted [][]byte
	MaxSize int64 // bytes, when less than Config.MaxSize; 0: that
}

var (
	errStalled = errors.New("no progress")
	errScheme  = errors.New("only http and https are fetched")
)

// New returns a Fetcher.
func New(c Config) *Fetcher {
	if c.MaxSize == 0 {
		c.MaxSize = 16 << 30
	}
	if c.Stall == 0 {
		c.Stall = 30 * time.Second
	}
	if c.Redirects == 0 {
		c.Redirects = 10
	}
	return &Fetcher{c: c, http: c.client(c.RootCAs, false), unverified: c.client(c.RootCAs, true)}
}

// client returns the HTTP client for an image.
func (f *Fetcher) client(img Image) (*http.Client, error) {
	switch {
	case img.Unverified:
		return f.unverified, nil
	case len(img.Trusted) == 0:
		return f.http, nil
	}
	roots := f.c.RootCAs
	if roots == nil {
		var err error
		if roots, err = x509.SystemCertPool(); err != nil {
			return nil, err
		}
	}
	roots = roots.Clone()
	for _, der := range img.Trusted {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		roots.AddCert(c)
	}
	return f.c.client(roots, false), nil
}

func (c Config) client(roots *x509.CertPool, unverified bool) *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			// No proxy: a BMC does not know the environment of this process.
			DialContext: (&net.Dialer{Timeout: c.Stall}).DialContext,
			// A user may tell a BMC to trust any server.
			TLSClientConfig:    &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12, InsecureSkipVerify: unverified},
			DisableCompression: true, // the bytes of the image must not change
			DisableKeepAlives:  true,
		},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > c.Redirects {
				return fmt.Errorf("more than %d redirects", c.Redirects)
			}
			if r.URL.Scheme != "http" && r.URL.Scheme != "https" {
				return fmt.Errorf("redirected to %s: %w", public(r.URL), errScheme)
			}
			return nil
		},
	}
}

// public returns a URL without the parts that may be secret: the user information and the
// query.
func public(u *url.URL) string {
	of := *u
	of.User, of.RawQuery, of.Fragment = nil, "", ""
	return of.String()
}

// Fetch writes an image to w and returns its size in bytes. Its error wraps
// bmc.ErrMedia and names the URL without its secrets.
func (f *Fetcher) Fetch(ctx context.Context, img Image, w io.Writer) (int64, error) {
	u, err := url.Parse(img.URL)
	if err != nil {
		return 0, fmt.Errorf("%w: the image's URL is invalid", bmc.ErrMedia) // err would contain the password
	}
	n, err := f.fetch(ctx, u, img, w)
	if err != nil {
		if ue := (*url.Error)(nil); errors.As(err, &ue) {
			err = ue.Err // without the URL, which the message has already
		}
		if f := mediaFault(err); f != "" {
			return 0, fmt.Errorf("%s: %w", public(u), &bmc.MediaError{Fault: f, Err: err})
		}
		return 0, fmt.Errorf("%s: %w: %w", public(u), bmc.ErrMedia, err)
	}
	return n, nil
}

// statusError is a response without an image.
type statusError struct{ code int }

// Error implements error.
func (e *statusError) Error() string {
	return fmt.Sprintf("the server answered %d %s", e.code, http.StatusText(e.code))
}

// mediaFault returns the fault that an error means, or "" when it is not known.
func mediaFault(err error) bmc.MediaFault {
	var answer *statusError
	var dial *net.OpError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &answer):
		switch answer.code {
		case http.StatusUnauthorized, http.StatusForbidden:
			return bmc.Denied
		case http.StatusNotFound, http.StatusGone:
			return bmc.Absent
		}
	case errors.Is(err, errScheme), errors.Is(err, http.ErrSchemeMismatch), errors.As(err, &record):
		return bmc.Protocol
	case errors.As(err, &dial) && dial.Op == "dial":
		return bmc.Unreachable
	}
	return ""
}

func (f *Fetcher) fetch(ctx context.Context, u *url.URL, img Image, w io.Writer) (int64, error) {
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return 0, errScheme
	}
	client, err := f.client(img)
	if err != nil {
		return 0, err
	}
	dog := startWatchdog(ctx, f.c.Stall)
	defer dog.stop()
	most := f.c.MaxSize
	if img.MaxSize > 0 {
		most = min(most, img.MaxSize)
	}
	t := transfer{watchdog: dog, client: client, url: u.String(), img: img, to: w, maxSize: most}
	for {
		before := t.done
		again, err := t.run()
		switch {
		case err == nil:
			return t.done, nil
		case !again || dog.ctx.Err() != nil:
			return 0, dog.cause(err)
		case t.done > before:
			t.attemptsInVain = 0
		default:
			t.attemptsInVain++
		}
		if t.attemptsInVain > maxAttemptsInVain {
			return 0, err
		}
		dog.pause(time.Duration(t.attemptsInVain) * retryPause)
	}
}

// watchdog cancels a context when no byte has come for a while.
type watchdog struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	progress chan struct{}
	done     sync.WaitGroup
}

func startWatchdog(ctx context.Context, stall time.Duration) *watchdog {
	d := &watchdog{progress: make(chan struct{}, 1)}
	d.ctx, d.cancel = context.WithCancelCause(ctx)
	d.done.Go(func() {
		for d.ctx.Err() == nil {
			wait, cancel := context.WithTimeout(d.ctx, stall)
			select {
			case <-d.progress:
			case <-wait.Done():
				d.cancel(fmt.Errorf("%w for %v", errStalled, stall))
			}
			cancel()
		}
	})
	return d
}

// pause waits for some real time, or until the context ends.
func (d *watchdog) pause(a time.Duration) {
	moment, cancel := context.WithTimeout(d.ctx, a)
	defer cancel()
	<-moment.Done()
}

func (d *watchdog) stop() {
	d.cancel(nil)
	d.done.Wait()
}

// cause returns why the context has ended, or err when it has not.
func (d *watchdog) cause(err error) error {
	if cause := context.Cause(d.ctx); cause != nil {
		return cause
	}
	return err
}

func (d *watchdog) reader(r io.Reader) io.Reader { return &watchedReader{r: r, d: d} }

type watchedReader struct {
	r io.Reader
	d *watchdog
}

// Read implements io.Reader.
func (w *watchedReader) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if n > 0 {
		select {
		case w.d.progress <- struct{}{}:
		default:
		}
	}
	return n, err
}

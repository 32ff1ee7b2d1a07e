// Package exchange captures the bodies of requests to BMCs and of their responses, bounded
// and without secrets. It does not know who asked for them.
package exchange

import (
	"context"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// MaxBody is how many bytes of a body are captured.
const MaxBody = 64 << 10

// Exchange is a request to a BMC with its response.
type Exchange struct {
	At       time.Time `json:"time"` // the lab's, as the journal has it
	Host     string    `json:"host"`
	Method   string    `json:"method"`
	Path     string    `json:"path"`
	Status   int       `json:"status"` // 0: no response
	Request  string    `json:"requestBody,omitempty"`
	Response string    `json:"responseBody,omitempty"`
}

// Watchers are the functions that get all exchanges. The zero value has none, and then
// nothing is captured.
type Watchers struct {
	mu  sync.Mutex
	all atomic.Pointer[[]*func(Exchange)]
}

// Watch calls f with each exchange when it has ended, until stop is called. f must not wait.
func (w *Watchers) Watch(f func(Exchange)) (stop func()) {
	w.change(func(all []*func(Exchange)) []*func(Exchange) { return append(all, &f) })
	return func() {
		w.change(func(all []*func(Exchange)) []*func(Exchange) {
			return slices.DeleteFunc(all, func(o *func(Exchange)) bool { return o == &f })
		})
	}
}

func (w *Watchers) change(with func([]*func(Exchange)) []*func(Exchange)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []*func(Exchange)
	if old := w.all.Load(); old != nil {
		all = slices.Clone(*old)
	}
	if all = with(all); len(all) == 0 {
		w.all.Store(nil)
		return
	}
	w.all.Store(&all)
}

// Any reports whether somebody watches.
func (w *Watchers) Any() bool { return w.all.Load() != nil }

// capture collects the bodies of one exchange.
type capture struct {
	http.ResponseWriter
	e         Exchange
	in, out   []byte
	cutIn     bool // more was sent than is captured
	cutOut    bool
	requested io.ReadCloser
}

type captureKey struct{}

// Serve serves a request to a host, and gives the exchange to the watchers.
func (w *Watchers) Serve(host string, now func() time.Time, next http.Handler, rw http.ResponseWriter, r *http.Request) {
	c := &capture{ResponseWriter: rw, requested: r.Body, e: Exchange{Host: host, Method: r.Method, Path: r.URL.Path}}
	r = r.WithContext(context.WithValue(r.Context(), captureKey{}, c))
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = (*requestBody)(c)
	}
	defer func() { // also when the handler has aborted the connection
		if c.e.At.IsZero() {
			c.e.At = now()
		}
		c.e.Request, c.e.Response = masked(c.in, c.cutIn), masked(c.out, c.cutOut)
		if all := w.all.Load(); all != nil {
			for _, f := range *all {
				(*f)(c.e)
			}
		}
	}()
	next.ServeHTTP(c, r)
}

// Note sets the time and the status that the journal has of the exchange of a context.
func Note(ctx context.Context, at time.Time, status int) {
	if c, ok := ctx.Value(captureKey{}).(*capture); ok {
		c.e.At, c.e.Status = at, status
	}
}

// WriteHeader implements http.ResponseWriter.
func (c *capture) WriteHeader(status int) {
	if status >= http.StatusOK && c.e.Status == 0 {
		c.e.Status = status
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *capture) Write(b []byte) (int, error) {
	if c.e.Status == 0 {
		c.e.Status = http.StatusOK
	}
	n, err := c.ResponseWriter.Write(b)
	c.out, c.cutOut = collect(c.out, b[:n], c.cutOut)
	return n, err
}

// Unwrap is for http.ResponseController.
func (c *capture) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func collect(have, more []byte, cut bool) ([]byte, bool) {
	room := MaxBody - len(have)
	return append(have, more[:min(room, len(more))]...), cut || len(more) > room
}

// requestBody is the body of a request that is captured.
type requestBody capture

// Read implements io.Reader.
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.requested.Read(p)
	b.in, b.cutIn = collect(b.in, p[:n], b.cutIn)
	return n, err
}

// Close implements io.Closer.
func (b *requestBody) Close() error { return b.requested.Close() }

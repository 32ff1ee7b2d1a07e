package lab

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// errSevered is what a client gets whose connection to the Kubernetes API was severed.
var errSevered = errors.New("the connection to the Kubernetes API is severed")

// apiConnection is the connection of one set of controllers to the Kubernetes API:
// all requests of clients whose configuration is wrapped in it. It is above the
// transport, because client-go shares TCP connections between clients of the same
// server: to close them would cut off others, too. The zero value is open.
type apiConnection struct {
	mu       sync.Mutex
	severed  bool
	requests map[*context.CancelCauseFunc]struct{} // in flight, and watches that are open
}

// wrap returns a transport that passes requests on to next until the connection is
// severed. It has the signature of rest.Config.Wrap's argument.
func (c *apiConnection) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		ctx, done, err := c.begin(r.Context())
		if err != nil {
			if r.Body != nil {
				r.Body.Close()
			}
			return nil, err
		}
		resp, err := next.RoundTrip(r.WithContext(ctx))
		if c.isSevered() { // an answer that crossed the cut does not arrive
			if err == nil {
				resp.Body.Close()
			}
			err = errSevered
		}
		if err != nil {
			done()
			return nil, err
		}
		resp.Body = &severableBody{ReadCloser: resp.Body, connection: c, done: done}
		return resp, nil
	})
}

// begin registers a request. Its context ends with ctx, with done, or when the
// connection is severed.
func (c *apiConnection) begin(ctx context.Context) (_ context.Context, done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.severed {
		return nil, nil, errSevered
	}
	ctx, cancel := context.WithCancelCause(ctx)
	if c.requests == nil {
		c.requests = map[*context.CancelCauseFunc]struct{}{}
	}
	c.requests[&cancel] = struct{}{}
	return ctx, func() {
		c.mu.Lock()
		delete(c.requests, &cancel)
		c.mu.Unlock()
		cancel(nil)
	}, nil
}

// sever ends all requests in flight and all watches with an error, and refuses every
// request from now on.
func (c *apiConnection) sever() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.severed = true
	for cancel := range c.requests {
		(*cancel)(errSevered)
	}
}

func (c *apiConnection) isSevered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.severed
}

// severableBody is the body of an answer. What a transport has buffered when the
// connection is severed is not read any more.
type severableBody struct {
	io.ReadCloser
	connection *apiConnection
	done       func()
}

func (b *severableBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.connection.isSevered() {
		return 0, errSevered
	}
	return n, err
}

func (b *severableBody) Close() error {
	defer b.done()
	return b.ReadCloser.Close()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

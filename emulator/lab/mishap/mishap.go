// Package mishap does to an HTTP exchange what a fault.Decision says: it waits,
// answers in place of the service, changes what the service answers, or ends the
// connection. It owns the wrong ways of speaking HTTP, and the errors of answers
// that are made up; it decides nothing, and knows no host.
package mishap

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// Server stands before a service that is to fail.
type Server struct {
	Next http.Handler
	// Stale answers as Next did before the last change.
	Stale http.Handler
	// Ended is closed when nobody waits any longer.
	Ended <-chan struct{}
}

// Work is what the lab's clock knows of a request: it is in flight until it
// rests.
type Work interface {
	// Pause returns after so much of the lab's time, or with the context's
	// error. Meanwhile the request is not in flight.
	Pause(ctx context.Context, d time.Duration) error
	// Rest says that what follows may take as long as it likes.
	Rest()
}

// Sent is what a client got.
type Sent struct {
	Status int // 0: no answer
	Body   int64
}

// maxDrained is how much of a request's body is read that nobody wants.
const maxDrained = 1 << 20

// Serve answers a request, wrong as decided. The messages of errors are in the
// versions that the service speaks.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, d fault.Decision, v message.Versions, work Work) Sent {
	if d.Delay > 0 {
		if err := work.Pause(r.Context(), d.Delay); err != nil {
			Abort(w)
			return Sent{}
		}
	}
	if (d.Status != 0 || cutsShort(d.Drop)) && !d.Performed {
		_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxDrained)) // then the server sees when the client goes
		return s.send(w, r, d, made(d, v, r.URL.Path), work)
	}
	next := s.Next
	if d.Stale && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		next = s.Stale
	}
	if d.Status == 0 && d.Drop == "" && d.LengthError == 0 && !d.Rewrites() {
		counted := &counter{ResponseWriter: w, rest: work.Rest}
		next.ServeHTTP(counted, r)
		return Sent{Status: counted.status, Body: counted.n}
	}
	if d.Rewrites() {
		r = r.Clone(r.Context())
		r.Header.Del("Accept-Encoding") // what is packed cannot be changed
	}
	a := &answer{header: http.Header{}, w: w, rest: work.Rest}
	next.ServeHTTP(a, r)
	if a.through {
		return Sent{Status: a.status, Body: int64(a.passed)}
	}
	if d.Status != 0 {
		a = made(d, v, r.URL.Path)
	}
	return s.send(w, r, d, a, work)
}

// Late answers a request so much later than what it asked for is done. What is
// refused is refused at once.
func (s *Server) Late(w http.ResponseWriter, r *http.Request, by time.Duration, work Work) {
	a := &answer{header: http.Header{}, w: w, rest: work.Rest}
	s.Next.ServeHTTP(a, r)
	if a.through {
		return
	}
	if a.status < http.StatusBadRequest {
		if err := work.Pause(r.Context(), by); err != nil {
			Abort(w)
			return
		}
	}
	s.send(w, r, fault.Decision{}, a, work)
}

// cutsShort says whether a drop comes instead of an answer.
func cutsShort(d fault.Drop) bool {
	return d == fault.Reset || d == fault.HalfClose || d == fault.Hang
}

// send sends an answer as decided.
func (s *Server) send(w http.ResponseWriter, r *http.Request, d fault.Decision, a *answer, work Work) Sent {
	switch d.Drop {
	case fault.Reset:
		Abort(w)
		return Sent{}
	case fault.HalfClose:
		work.Rest()
		halfClose(r.Context(), w)
		return Sent{}
	case fault.Hang:
		work.Rest()
		select {
		case <-r.Context().Done():
		case <-s.Ended:
		}
		Abort(w)
		return Sent{}
	}
	body := a.body.Bytes()
	a.status = cmp.Or(a.status, http.StatusOK)
	bare := r.Method == http.MethodHead || a.status == http.StatusNoContent || a.status == http.StatusNotModified
	if d.Rewrites() && !bare && (d.Status != 0 || a.status < 300) {
		var kind string
		kind, body = d.Rewrite(a.header.Get("Content-Type"), body)
		a.header.Set("Content-Type", kind)
		a.header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	sent := Sent{Status: a.status, Body: int64(len(body))}
	if bare {
		sent.Body = 0
	}
	switch {
	case d.Drop == fault.MidBody && !bare:
		sent.Body = int64(len(body) / 2)
		wire(w, a, len(body), body[:len(body)/2], true)
	case d.Drop == fault.MidBody:
		Abort(w)
		return Sent{}
	case d.LengthError != 0 && !bare:
		wire(w, a, max(0, len(body)+d.LengthError), body, false)
	default:
		h := w.Header()
		clear(h)
		for name, values := range a.header {
			h[name] = values
		}
		w.WriteHeader(a.status)
		if !bare {
			_, _ = w.Write(body) // a client that is gone
		}
	}
	return sent
}

// made is an answer that no service has made.
func made(d fault.Decision, v message.Versions, path string) *answer {
	a := &answer{status: d.Status, header: http.Header{"Odata-Version": {"4.0"}, "Cache-Control": {"no-cache"}}}
	seconds := strconv.Itoa(int(math.Ceil(d.RetryAfter.Seconds())))
	if d.RetryAfter > 0 {
		a.header.Set("Retry-After", seconds)
	}
	if d.Status == http.StatusUnauthorized {
		a.header.Set("Www-Authenticate", `Basic realm="Redfish"`)
	}
	if d.Status == http.StatusNoContent || d.Status == http.StatusNotModified || d.Status == 0 {
		return a
	}
	a.header.Set("Content-Type", "application/json;charset=utf-8")
	body := []byte("{}")
	if d.Status >= 300 {
		body = v.Error(said(d, path, seconds))
	}
	a.body.Write(body)
	a.header.Set("Content-Length", strconv.Itoa(len(body)))
	return a
}

// said is the message of an error.
func said(d fault.Decision, path, seconds string) message.Message {
	m := message.GeneralError.With()
	switch known, ok := messages[d.Status]; {
	case ok:
		m = known(path, seconds)
	case d.Status >= 500:
		m = message.InternalError.With()
	}
	if d.Message != "" {
		m.Text = d.Message
	}
	if d.MessageID != "" {
		parts := strings.Split(d.MessageID, ".")
		m.Registry, m.Since, m.Args = new(*m.Registry), 0, nil
		m.Key = parts[len(parts)-1]
		if len(parts) > 2 {
			m.Registry.Prefix, m.Registry.Version = parts[0], strings.Join(parts[1:len(parts)-1], ".")
		}
	}
	return m
}

// messages are what services say with a status.
var messages = map[int]func(path, seconds string) message.Message{
	http.StatusUnauthorized:          always(message.NoValidSession.With()),
	http.StatusForbidden:             always(message.InsufficientPrivilege.With()),
	http.StatusNotFound:              func(path, _ string) message.Message { return message.ResourceMissingAtURI.With(path) },
	http.StatusMethodNotAllowed:      always(message.OperationNotAllowed.With()),
	http.StatusRequestTimeout:        always(message.OperationTimeout.With()),
	http.StatusConflict:              always(message.ResourceInUse.With()),
	http.StatusPreconditionFailed:    always(message.PreconditionFailed.With()),
	http.StatusRequestEntityTooLarge: always(message.PayloadTooLarge.With()),
	http.StatusPreconditionRequired:  always(message.PreconditionRequired.With()),
	http.StatusTooManyRequests:       unavailable,
	http.StatusServiceUnavailable:    unavailable,
	http.StatusGatewayTimeout:        always(message.OperationTimeout.With()),
}

func always(m message.Message) func(string, string) message.Message {
	return func(string, string) message.Message { return m }
}

func unavailable(_, seconds string) message.Message {
	return message.ServiceTemporarilyUnavailable.With(seconds)
}

// answer is what a service answers, held back. A stream of events is not: it
// has no end to wait for.
type answer struct {
	w       http.ResponseWriter // where a stream goes
	header  http.Header
	status  int
	body    bytes.Buffer
	through bool
	passed  int
	rest    func() // when a stream begins
}

func isStream(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "text/event-stream")
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header {
	if a.through {
		return a.w.Header()
	}
	return a.header
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	a.status = status
	if !isStream(a.header) {
		return
	}
	a.through = true
	a.rest()
	for name, values := range a.header {
		a.w.Header()[name] = values
	}
	a.w.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if a.through {
		a.passed += len(b)
		return a.w.Write(b)
	}
	return a.body.Write(b)
}

// FlushError is for http.ResponseController.
func (a *answer) FlushError() error {
	if a.through {
		return http.NewResponseController(a.w).Flush()
	}
	return nil
}

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.w }

// counter counts what passes through it.
type counter struct {
	http.ResponseWriter
	status int
	n      int64
	rest   func() // when a stream begins
}

// WriteHeader implements http.ResponseWriter.
func (c *counter) WriteHeader(status int) {
	if c.status == 0 {
		c.status = status
		if isStream(c.Header()) {
			c.rest()
		}
	}
	c.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (c *counter) Write(b []byte) (int, error) {
	c.status = cmp.Or(c.status, http.StatusOK)
	n, err := c.ResponseWriter.Write(b)
	c.n += int64(n)
	return n, err
}

// Flush implements http.Flusher.
func (c *counter) Flush() { _ = http.NewResponseController(c.ResponseWriter).Flush() }

// Unwrap is for http.ResponseController.
func (c *counter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

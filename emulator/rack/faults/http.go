package faults

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/rack/faulthttp"
	"github.com/metalab-dev/metalab/emulator/rack/journal"
	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

var errStopped = errors.New("the rack has ended")

// HTTP serves HTTP requests to BMCs, wrong where a rule says so.
type HTTP struct {
	faults *Faults
	server faulthttp.Server
	record func(bmc int, e journal.Entry)
}

// Target is the BMC that a request came to.
type Target struct {
	Index      int
	Name       string
	Messages   message.Versions // versions of the registries of its error messages
	PatchDelay time.Duration    // lab time before its response to a PATCH
}

// HTTP returns a server in front of two services: next answers right, and previous
// as before the last change of each BMC. Requests that a rule has hit are given to
// record when they are over; services record all others.
func (f *Faults) HTTP(next, previous http.Handler, record func(bmc int, e journal.Entry)) *HTTP {
	return &HTTP{faults: f, server: faulthttp.Server{Next: next, Stale: previous, Ended: f.ended}, record: record}
}

// Serve answers a request to a BMC.
func (s *HTTP) Serve(w http.ResponseWriter, r *http.Request, t Target) {
	f := s.faults
	connect, request := f.Has(fault.Connect), f.Has(fault.Request)
	if !connect && !request {
		s.serveRight(w, r, t)
		return
	}
	if connect && f.Offline(t.Name) {
		faulthttp.Abort(w) // the connection was there before the rule
		return
	}
	subject := fault.Subject{Site: fault.Request, BMC: t.Name, Method: r.Method, Path: r.URL.Path}
	if f.ReadsBodies() {
		subject.Body = peekBody(r)
	}
	// The clock waits until a delay has begun, so that a test which sees the request
	// can let the delay pass. It waits again until the journal has the entry.
	inFlight := &inFlight{f: f, leave: f.c.Clock.Enter()}
	defer inFlight.Release()
	d := f.Decide(subject)
	if d.Nothing() {
		inFlight.Release()
		s.serveRight(w, r, t)
		return
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	e := &journal.Entry{Host: t.Name, Kind: journal.Request, From: from, Method: r.Method, Path: r.URL.Path, Faults: d.Rules}
	began := f.c.Clock.Now()
	defer func() { // also when the connection was hijacked
		e.At = f.c.Clock.Now()
		e.Took.Duration = e.At.Sub(began)
		s.record(t.Index, *e)
	}()
	sent := s.server.Serve(w, r.WithContext(context.WithValue(r.Context(), entryKey{}, e)), d, t.Messages, inFlight)
	e.Status, e.Out = sent.Status, sent.Body
}

// maxPeeked bounds the bytes of a body in which rules look for values.
const maxPeeked = 1 << 20

// peeked is the body of a request whose first bytes have been read: the service reads
// them again.
type peeked struct {
	io.Reader
	io.Closer
}

// broken is the rest of a body that could not be read.
type broken struct{ err error }

// Read implements io.Reader.
func (b broken) Read([]byte) (int, error) { return 0, b.err }

// peekBody returns the first bytes of a request's body, and leaves the body as it was.
func peekBody(r *http.Request) []byte {
	read, err := io.ReadAll(io.LimitReader(r.Body, maxPeeked))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = broken{err}
	}
	r.Body = peeked{io.MultiReader(bytes.NewReader(read), rest), r.Body}
	return read
}

// serveRight answers as the service does. Some BMCs delay their response to a PATCH.
func (s *HTTP) serveRight(w http.ResponseWriter, r *http.Request, t Target) {
	if r.Method != http.MethodPatch || t.PatchDelay <= 0 {
		s.server.Next.ServeHTTP(w, r)
		return
	}
	inFlight := &inFlight{f: s.faults, leave: s.faults.c.Clock.Enter()}
	defer inFlight.Release()
	s.server.ServeDelayed(w, r, t.PatchDelay, inFlight)
}

// entryKey is the context key of the journal entry of a request that a rule has hit.
type entryKey struct{}

// Entry returns the journal entry of a request that a rule has hit, for the service
// to add what it knows, and nil for other requests.
func Entry(ctx context.Context) *journal.Entry {
	e, _ := ctx.Value(entryKey{}).(*journal.Entry)
	return e
}

// inFlight implements faulthttp.InFlight.
type inFlight struct {
	f     *Faults
	leave func()
}

// Release implements faulthttp.InFlight.
func (i *inFlight) Release() { i.leave() }

// Pause implements faulthttp.InFlight. When the delay ends, the clock waits for the
// request again before time goes on.
func (i *inFlight) Pause(ctx context.Context, d time.Duration) (err error) {
	f := i.f
	up, taken := make(chan struct{}), make(chan struct{})
	t := f.c.Clock.AfterFunc(d, func() {
		close(up)
		<-taken // the select below does not keep the clock waiting
	})
	defer close(taken)
	f.delayed.Add(1)
	defer f.delayed.Add(-1)
	i.leave()
	select {
	case <-up:
		i.leave = f.c.Clock.Enter()
		return nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-f.ended:
		err = errStopped
	}
	t.Stop()
	return err
}

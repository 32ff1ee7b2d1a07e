package redfish

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/redfish/message"
)

// innerKind says of a request whether it is a step of another.
type innerKind string

const (
	within innerKind = "within" // of one that holds the host's lock
	beside innerKind = "beside"
)

// stepAnswer is the answer to a step. It takes the place of a connection.
type stepAnswer struct {
	header  http.Header
	status  int
	body    []byte
	refused []message.Message
}

// Header implements http.ResponseWriter.
func (a *stepAnswer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *stepAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *stepAnswer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	a.body = append(a.body, b...)
	return len(b), nil
}

// stepFailed is the error of a step that was refused: its answer is the answer.
type stepFailed struct{ *stepAnswer }

// Error implements error.
func (e *stepFailed) Error() string { return "redfish: step: " + e.why() }

// why is what went wrong, for people.
func (a *stepAnswer) why() string {
	if len(a.refused) == 0 {
		return fmt.Sprintf("it was answered with status %d", a.status)
	}
	return strings.TrimSuffix(a.refused[0].Text, ".")
}

// step carries out a request to the tree in the name of who sent this one, as
// the standard has it: no rule of the vendor's stands before it. Its answer has
// the vendor's form all the same.
func (x *exchange) step(ctx context.Context, kind innerKind, method, at string, body object) *stepAnswer {
	return x.stepOf(ctx, "", kind, method, at, body)
}

// stepOf carries out a request as a step of a job, which what it begins joins.
func (x *exchange) stepOf(ctx context.Context, job string, kind innerKind, method, at string, body object) *stepAnswer {
	a := &stepAnswer{header: http.Header{}}
	var sent []byte
	if body != nil {
		sent = encode(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+x.r.Host+at, bytes.NewReader(sent))
	if err != nil { // no address, with what was filled in
		r = x.r.Clone(ctx)
		r.Method, r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.Body, r.ContentLength = method, at, "", "", http.NoBody, 0
	}
	r.Header = http.Header{}
	if sent != nil {
		r.Header["Content-Type"] = jsonContent
	}
	r.RemoteAddr = x.r.RemoteAddr
	in := &exchange{s: x.s, w: a, r: r, host: x.host, who: x.who, inner: kind, joins: job, away: true}
	in.serve()
	in.leave()
	a.refused = in.refused
	return a
}

// relay answers with the answer to a step.
func (x *exchange) relay(a *stepAnswer) {
	h := x.w.Header()
	for name, values := range a.header {
		h[name] = values
	}
	x.send(a.status, a.body)
}

// wait returns after some of the lab's time, or with the context's error. Who
// carries a job counts as work in flight, for which time waits: meanwhile it
// does not.
func (s *Service) wait(ctx context.Context, d time.Duration) error {
	if s.clock == nil || d <= 0 {
		return context.Cause(ctx)
	}
	fired := make(chan struct{})
	t := s.clock.AfterFunc(d, func() {
		s.clock.Begin() // before others see that it is time
		close(fired)
	})
	s.clock.End()
	select {
	case <-fired:
		return context.Cause(ctx)
	case <-ctx.Done():
		if t.Stop() {
			s.clock.Begin()
		} else {
			<-fired
		}
		return context.Cause(ctx)
	}
}

package redfish

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Do implements request: the request is the standard's, which no rule of the
// vendor's stands before. Its answer has the vendor's form all the same.
func (x *request) Do(ctx context.Context, job string, kind resource.InnerKind, method, at string, body resource.Object) *resource.InnerResponse {
	a := &resource.InnerResponse{Headers: http.Header{}}
	var sent []byte
	if body != nil {
		sent = resource.Encode(body)
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
	in := &request{s: x.s, w: a, r: r, host: x.host, vendor: x.vendor, actor: x.actor, inner: kind, task: job, notInFlight: true}
	in.serve()
	in.leave()
	a.Messages = in.refused
	return a
}

// relay answers with the answer to a step.
func (x *request) relay(a *resource.InnerResponse) {
	h := x.w.Header()
	for name, values := range a.Headers {
		h[name] = values
	}
	x.send(a.Status, a.Body)
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

// Expect implements request.
func (x *request) Expect(status int) { x.expectStatus(status) }

// SignedIn implements request.
func (x *request) SignedIn(who resource.Actor) { x.signIn(who) }

// Task implements request.
func (x *request) Task() string { return x.task }

// Query implements request.
func (x *request) Query() url.Values { return x.r.URL.Query() }

// HoldsETag implements request.
func (x *request) HoldsETag(tag string, m *resource.Match) bool {
	return resource.MatchesETag([]string{tag}, x.s.renderer.Representation(m, resource.TakeSnapshot(x.host)).Tag(), resource.StrongComparison)
}

// Outlive implements request.
func (x *request) Outlive() { x.outlives = true }

// Wait implements request.
func (x *request) Wait(ctx context.Context, d time.Duration) error { return x.s.wait(ctx, d) }

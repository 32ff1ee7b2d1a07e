package redfish

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/metalab-dev/metalab/emulator/redfish/resource"
)

// Do sends an inner request, of the resource.Call's request. Its URI and body are the
// standard's, and the vendor's reject rules do not apply; its response has the vendor's
// form all the same.
func (x *request) Do(ctx context.Context, taskID string, kind resource.InnerKind, method, uri string, body resource.Object) *resource.InnerResponse {
	response := &resource.InnerResponse{Headers: http.Header{}}
	var content []byte
	if body != nil {
		content = resource.Encode(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+x.r.Host+uri, bytes.NewReader(content))
	if err != nil { // not a URI, after a value was filled in: let it be answered 404
		r = x.r.Clone(ctx)
		r.Method, r.URL.Path, r.URL.RawPath, r.URL.RawQuery, r.Body, r.ContentLength = method, uri, "", "", http.NoBody, 0
	}
	r.Header = http.Header{}
	if content != nil {
		r.Header["Content-Type"] = jsonContent
	}
	r.RemoteAddr = x.r.RemoteAddr
	inner := &request{s: x.s, w: response, r: r, host: x.host, vendor: x.vendor, actor: x.actor, inner: kind, taskID: taskID}
	inner.serve()
	inner.endInFlight() // an event stream leaves it in flight
	response.Messages = inner.messages
	return response
}

// sendInnerResponse sends the response to an inner request to the client.
func (x *request) sendInnerResponse(response *resource.InnerResponse) {
	h := x.w.Header()
	for name, values := range response.Headers {
		h[name] = values
	}
	x.send(response.Status, response.Body)
}

// wait returns after a duration of lab time, or with the context's error. Its caller
// counts as work in flight, for which the clock waits: during the wait it does not
// count.
func (s *Service) wait(ctx context.Context, d time.Duration) error {
	if s.clock == nil || d <= 0 {
		return context.Cause(ctx)
	}
	fired := make(chan struct{})
	t := s.clock.AfterFunc(d, func() {
		s.clock.Begin() // before the clock can advance further
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

// Expect sets the status of the response if the call succeeds.
func (x *request) Expect(status int) { x.expectStatus(status) }

// SignedIn records the user that the request has authenticated.
func (x *request) SignedIn(actor resource.Actor) { x.setActor(actor) }

// Task returns the ID of the task that runs the request; "" for none.
func (x *request) Task() string { return x.taskID }

// Query returns the query parameters of the URL.
func (x *request) Query() url.Values { return x.r.URL.Query() }

// HoldsETag reports whether an ETag matches the present one of a resource.
func (x *request) HoldsETag(etag string, m *resource.Match) bool {
	present := x.s.renderer.Representation(m, resource.TakeSnapshot(x.host)).Tag()
	return resource.MatchesETag([]string{etag}, present, resource.StrongComparison)
}

// Outlive marks the request as in use after its response.
func (x *request) Outlive() { x.outlives = true }

// Wait waits for a duration of the lab's clock, or until the context ends.
func (x *request) Wait(ctx context.Context, d time.Duration) error { return x.s.wait(ctx, d) }

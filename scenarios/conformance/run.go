package conformance

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// Run is what one check sees of the BMC. Its requests are the check's evidence.
type Run struct {
	bmc       *BMC
	check     string
	level     Level
	transport *http.Transport
	powerWas  string        // PowerState before the check's first Reset
	limit     time.Duration // time limit of the check; 0: none

	mu       sync.Mutex
	evidence []int
}

func (b *BMC) run(c Check) *Run {
	return &Run{bmc: b, check: c.ID, level: b.conf.Level, transport: b.client.transport(Connections{})}
}

func (r *Run) close() { r.transport.CloseIdleConnections() }

// Use changes how the check's later requests use connections.
func (r *Run) Use(p Connections) {
	r.transport.CloseIdleConnections()
	r.transport = r.bmc.client.transport(p)
}

// Config returns the configuration of the run.
func (r *Run) Config() Config { return r.bmc.conf }

// Host returns the host and port of the BMC's URL.
func (r *Run) Host() string { return r.bmc.client.base.Host }

// Level returns the level of the run; checks with a part of a higher level ask it.
func (r *Run) Level() Level { return r.level }

// Secret declares texts that no report may show, such as the password of a
// throw-away account.
func (r *Run) Secret(texts ...string) { r.bmc.client.secrets.add(texts...) }

// Now returns the time.
func (r *Run) Now() time.Time {
	if r.bmc.dry != nil {
		return r.bmc.dry.now()
	}
	return r.bmc.conf.Clock.Now()
}

// Wait waits for d. In a dry run no time passes.
func (r *Run) Wait(ctx context.Context, d time.Duration) error {
	if r.bmc.dry != nil {
		r.bmc.dry.skip(d)
		return ctx.Err()
	}
	select {
	case <-r.bmc.conf.Clock.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// within returns a context that ends when d of the run's time has passed.
func (r *Run) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	timed, cancel := context.WithCancel(ctx)
	over := r.bmc.conf.Clock.After(d)
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-over:
			cancel()
		case <-timed.Done():
		}
	}()
	return timed, func() { cancel(); <-done }
}

// patience returns how long a check waits for something that may never come: d, or a
// fifth of the check's time limit where that is shorter, so that --timeout leaves time
// for the rest of the check.
func (r *Run) patience(d time.Duration) time.Duration {
	if r.limit > 0 {
		return min(d, r.limit/5)
	}
	return d
}

// longest returns how long a check waits for the one thing that it is about: d, or two thirds
// of what is left of the check's time limit where that is shorter, so that --timeout ends in a
// verdict. That limit is in real time.
func longest(ctx context.Context, d time.Duration) time.Duration {
	if end, limited := ctx.Deadline(); limited {
		return min(d, (time.Until(end) * 2 / 3).Round(time.Second))
	}
	return d
}

// Poll calls done every interval until it reports true or the limit has passed;
// then it returns false.
func (r *Run) Poll(ctx context.Context, interval, limit time.Duration, done func() (bool, error)) (bool, error) {
	for end := r.Now().Add(limit); ; {
		if ok, err := done(); ok || err != nil {
			return ok, err
		}
		if !r.Now().Before(end) {
			return false, nil
		}
		if err := r.Wait(ctx, interval); err != nil {
			return false, err
		}
	}
}

// Do sends a request that changes nothing: GET, HEAD or OPTIONS. An error is a
// Finding when the BMC is responsible. Any status is a response.
func (r *Run) Do(ctx context.Context, q Request) (*Response, error) {
	switch q.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return nil, fmt.Errorf("%s %s is a write: use Change", q.Method, q.URI)
	}
	if q.Auth == nil {
		r.bmc.login(ctx, r)
	}
	return r.roundTrip(ctx, q)
}

// Login opens a session of the check's, as a read-only run may. The caller ends it
// with Logout. Statuses other than 2xx are responses, too.
func (r *Run) Login(ctx context.Context, uri, name, password string) (*Response, error) {
	r.bmc.client.secrets.account(name, password)
	return r.roundTrip(ctx, Request{Method: http.MethodPost, URI: uri, Auth: Anonymous, Body: map[string]string{"UserName": name, "Password": password}})
}

// Logout deletes a session of the check's by the Location of its login.
func (r *Run) Logout(ctx context.Context, uri, token string) (*Response, error) {
	resp, err := r.roundTrip(ctx, Request{Method: http.MethodDelete, URI: uri, Auth: Token(token)})
	if err != nil || resp.Status != http.StatusPreconditionRequired {
		return resp, err
	}
	shown, err := r.roundTrip(ctx, Request{URI: uri, Auth: Token(token)}) // some BMCs want the ETag here, too
	if err != nil {
		return nil, err
	}
	return r.roundTrip(ctx, Request{Method: http.MethodDelete, URI: uri, Auth: Token(token), Header: http.Header{"If-Match": {shown.Header.Get("ETag")}}})
}

func (r *Run) roundTrip(ctx context.Context, q Request) (*Response, error) {
	if q.Auth == nil {
		q.Auth = r.bmc.auth()
	}
	if r.bmc.dry != nil {
		if answer, ok := r.bmc.dry.answer(q); ok {
			return answer, nil
		}
	}
	resp, err := r.bmc.client.send(ctx, r.transport, r.check, q)
	if resp != nil {
		r.keep(resp.ID)
	}
	return resp, err
}

// keep adds an exchange to the check's evidence, once.
func (r *Run) keep(id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.evidence, id) {
		r.evidence = append(r.evidence, id)
	}
}

// Get reads a resource now. A status other than 200 is a Finding.
func (r *Run) Get(ctx context.Context, uri string) (Value, *Response, error) {
	resp, err := r.Do(ctx, Request{URI: uri})
	if err != nil {
		return Value{}, nil, err
	}
	if resp.Status != http.StatusOK {
		return Value{}, resp, Findingf("GET %s: %s", uri, resp.Problem())
	}
	v, err := resp.JSON()
	return v, resp, err
}

// Page returns a resource as the run has read it first: checks of content share
// one GET. A write makes the run read again.
func (r *Run) Page(ctx context.Context, uri string) (Value, error) {
	if p := r.bmc.pages[uri]; p != nil {
		if p.resp != nil {
			r.keep(p.resp.ID)
		}
		return p.value, p.err
	}
	p, err := r.fetch(ctx, uri)
	if err != nil {
		return Value{}, err
	}
	if len(r.bmc.pages) < maxPages {
		r.bmc.pages[uri] = p
	}
	return p.value, p.err
}

// fetch reads a page now. An error is one of the tool or the network.
func (r *Run) fetch(ctx context.Context, uri string) (*page, error) {
	v, resp, err := r.Get(ctx, uri)
	if err != nil && !errors.As(err, new(*Finding)) {
		return nil, err
	}
	return &page{value: v, resp: resp, err: err}, nil
}

// forgetPages makes the run read a collection again, whose members alone have changed.
func (r *Run) forgetPages(collection string) {
	maps.DeleteFunc(r.bmc.pages, func(uri string, _ *page) bool { return strings.HasPrefix(uri, collection) })
}

// PageResponse returns the response of a Page, for its headers.
func (r *Run) PageResponse(ctx context.Context, uri string) (Value, *Response, error) {
	v, err := r.Page(ctx, uri)
	if p := r.bmc.pages[uri]; p != nil {
		return v, p.resp, err
	}
	return r.Get(ctx, uri)
}

// Bounds of a collection.
const (
	maxMembers   = 5000
	maxNextLinks = 500
)

// Members returns the URIs of a collection's members, of all its pages. A
// collection that does not end is a Finding.
func (r *Run) Members(ctx context.Context, uri string) ([]string, error) {
	var all []string
	seen := map[string]bool{}
	for next := uri; next != ""; {
		if seen[next] {
			return nil, Findingf("%s: Members@odata.nextLink %s leads in a loop", uri, next)
		}
		if seen[next] = true; len(seen) > maxNextLinks || len(all) > maxMembers {
			return nil, Findingf("%s does not end: %d members on %d pages", uri, len(all), len(seen)-1)
		}
		v, err := r.Page(ctx, next)
		if err != nil {
			return nil, err
		}
		members, err := v.At("Members").List()
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			link, err := m.Link()
			if err != nil {
				return nil, err
			}
			all = append(all, link)
		}
		next = v.At("Members@odata.nextLink").TextOr("")
	}
	return all, nil
}

// Place returns where the server's resources are; the first check that asks
// discovers it.
func (r *Run) Place(ctx context.Context) (*Place, error) {
	if r.bmc.place == nil && r.bmc.placed == nil {
		p, err := r.discover(ctx)
		if err != nil && !errors.As(err, new(*Finding)) {
			return nil, err
		}
		r.bmc.place, r.bmc.placed = p, err
	}
	if r.bmc.place != nil {
		_, _ = r.Page(ctx, r.bmc.place.SystemURI) // as evidence, which is in memory
	}
	return r.bmc.place, r.bmc.placed
}

// Forget makes the run read and discover again, after a write or a restart.
func (r *Run) Forget() {
	clear(r.bmc.pages)
	r.bmc.place, r.bmc.placed = nil, nil
}

// Execute runs checks in their order and returns their results. The run's session
// is closed at the end, even when ctx has ended.
func (b *BMC) Execute(ctx context.Context, checks []Check) []Result {
	var all []Result
	verdicts := map[string]Result{}
	for i, c := range checks {
		var res Result
		if earlier, ok := b.conf.Done[c.ID]; ok {
			res = earlier
			res.Check = c
		} else if ctx.Err() != nil {
			break
		} else {
			res = b.one(ctx, c, verdicts)
		}
		verdicts[c.ID] = res
		all = append(all, res)
		if b.conf.Progress != nil {
			b.conf.Progress(i+1, len(checks), res)
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	r := b.run(Check{ID: "logout"})
	b.logout(last, r)
	r.close()
	return all
}

// one runs a check, unless something that it needs is missing.
func (b *BMC) one(ctx context.Context, c Check, earlier map[string]Result) (res Result) {
	res = Result{Check: c, Began: b.conf.Clock.Now()}
	if reason := b.obstacle(c, earlier); reason != "" {
		res.Outcome = Skipped("%s", reason)
		return res
	}
	r := b.run(c)
	limit := b.conf.Timeout
	if limit == 0 {
		if limit = 2 * time.Minute; c.Level.Allows(Disruptive) {
			limit = 30 * time.Minute
		}
	}
	r.limit = limit
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			res.Outcome = Outcome{Verdict: Broken, Reason: fmt.Sprintf("the check panicked: %v, %s", p, firstFrame(debug.Stack()))}
		}
		r.close()
		r.restore(ctx)
		res.Evidence, res.Took = r.evidence, b.conf.Clock.Since(res.Began)
		res.Reason, res.Advice = b.client.secrets.text(res.Reason), b.client.secrets.text(res.Advice)
	}()
	res.Outcome = c.Run(timed, r)
	if b.dry != nil {
		res.Outcome = Skipped("dry run")
	} else if res.Verdict == Broken && timed.Err() != nil && ctx.Err() == nil {
		res.Reason = fmt.Sprintf("not done after %v: %s", limit, res.Reason)
	}
	return res
}

// obstacle says why a check cannot run, or nothing.
func (b *BMC) obstacle(c Check, earlier map[string]Result) string {
	if !b.conf.Level.Allows(c.Level) {
		return fmt.Sprintf("needs --level %s", c.Level)
	}
	for _, f := range c.Needs {
		if !b.conf.has(f) {
			return "needs " + string(f)
		}
	}
	var missing []string
	for _, id := range c.After {
		res, ran := earlier[id]
		if ran && res.Verdict != Pass && res.Verdict != Warn && res.Reason != NotBuilt && b.dry == nil {
			missing = append(missing, fmt.Sprintf("%s (%s)", id, res.Verdict))
		}
	}
	if len(missing) > 0 {
		return "after " + strings.Join(missing, ", ")
	}
	if c.Run == nil {
		return NotBuilt
	}
	return ""
}

// firstFrame returns the line of a panic in this package.
func firstFrame(stack []byte) string {
	lines := strings.Split(string(stack), "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "panic(") && i+3 < len(lines) {
			return strings.TrimSpace(lines[i+3])
		}
	}
	return ""
}

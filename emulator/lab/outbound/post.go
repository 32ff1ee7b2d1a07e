package outbound

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
)

// EventSource is a BMC as the poster sees it. Mailboxes are comparable, and a BMC
// has the same one at each call.
type EventSource interface {
	// Subscription is a subscription as it stands, with its headers; false
	// when it is no more.
	Subscription(id string) (bmc.Subscription, bool)
	// Trusted are the certificates, in DER, that a subscriber may show, or that
	// sign for it; without any it is whom the poster trusts.
	TrustedCertificates(id string) [][]byte
	// Attempted tells how an attempt at delivery went. After one that failed
	// it says whether there is to be another, and when.
	DeliveryAttempted(id string, failed error) (after time.Duration, again bool)
}

// PostConfig says how events are posted. Zero values stand for the defaults.
type PostConfig struct {
	Clock         *clock.Clock
	RootCAs       *x509.CertPool // who may sign for subscribers; the system's when nil
	AnswerTimeout time.Duration  // real time that a subscriber has to answer; 10 s
	MaxConcurrent int            // attempts at the same time; 64
	MaxQueued     int            // events that wait for one subscriber; 64. The oldest are dropped.
}

// Poster posts events to their subscribers: those of a subscription one after
// the other, in their order, as often as its policy says. While an event is on
// its way the clock does not jump; between attempts there is a timer and nothing
// else. It is safe for concurrent use.
type Poster struct {
	c     PostConfig
	slots chan struct{} // one per attempt

	mu      sync.Mutex
	queues  map[destination]*queue // of those for whom something waits
	stopped bool
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// destination is a subscription.
type destination struct {
	source EventSource
	id     string
}

// queue is what waits for one addressee.
type queue struct {
	events []event
	state  queueState
	timer  *clock.Timer // to the next attempt, once there was one
}

// event is one event that is to be posted.
type event struct {
	at   time.Time
	body []byte
}

// queueState is what the events of a queue wait for.
type queueState string

const (
	awaitingAnswer queueState = "answer"  // of the subscriber; there is a goroutine
	awaitingRetry  queueState = "attempt" // there is a timer
	awaitingResume queueState = "resume"  // the subscription is suspended
)

// NewPoster makes a Poster.
func NewPoster(c PostConfig) *Poster {
	c.AnswerTimeout, c.MaxConcurrent, c.MaxQueued = cmp.Or(c.AnswerTimeout, 10*time.Second), cmp.Or(c.MaxConcurrent, 64), cmp.Or(c.MaxQueued, 64)
	ctx, cancel := context.WithCancel(context.Background())
	return &Poster{c: c, slots: make(chan struct{}, c.MaxConcurrent), queues: map[destination]*queue{}, ctx: ctx, cancel: cancel}
}

// Post takes an event for a subscription. It does not wait.
func (p *Poster) Post(box EventSource, id string, at time.Time, body []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return
	}
	a := destination{box, id}
	q := p.queues[a]
	idle := q == nil
	if idle {
		q = &queue{}
		p.queues[a] = q
	}
	if len(q.events) >= p.c.MaxQueued {
		drop := 0
		if q.state == awaitingAnswer {
			drop = 1 // the first is on its way
		}
		q.events = append(q.events[:drop:drop], q.events[drop+1:]...)
	}
	q.events = append(q.events, event{at, body})
	if idle {
		p.start(a, q)
	}
}

// Resume posts what was held back while a subscription was suspended, unless it
// is older than since.
func (p *Poster) Resume(box EventSource, id string, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := destination{box, id}
	q := p.queues[a]
	if q == nil || q.state != awaitingResume {
		return
	}
	for len(q.events) > 0 && q.events[0].at.Before(since) {
		q.events = q.events[1:]
	}
	if len(q.events) == 0 {
		delete(p.queues, a)
		return
	}
	p.start(a, q)
}

// Forget drops what waits for a subscription that is no more.
func (p *Poster) Forget(box EventSource, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := destination{box, id}
	if q := p.queues[a]; q != nil && q.state != awaitingAnswer { // else its goroutine finds out
		q.stop()
		delete(p.queues, a)
	}
}

// Stop ends the posting, and returns when no attempt is under way. What waits is
// dropped.
func (p *Poster) Stop() {
	p.mu.Lock()
	p.stopped = true
	for _, q := range p.queues {
		q.stop()
	}
	p.cancel()
	p.mu.Unlock()
	p.running.Wait()
}

func (q *queue) stop() {
	if q.timer != nil {
		q.timer.Stop()
	}
}

// start posts what waits, in a goroutine of its own. It holds p.mu.
func (p *Poster) start(a destination, q *queue) {
	q.state = awaitingAnswer
	leave := p.c.Clock.Enter()
	p.running.Go(func() {
		defer leave()
		p.run(a, q)
	})
}

// retry is start, called by the timer.
func (p *Poster) retry(a destination, q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped && p.queues[a] == q && q.state == awaitingRetry {
		p.start(a, q)
	}
}

// run posts one event after the other, until none waits or one must.
func (p *Poster) run(a destination, q *queue) {
	for failed := false; ; {
		s, there := a.source.Subscription(a.id)
		p.mu.Lock()
		if failed && there && !s.Suspended { // yet no other attempt: it is given up
			q.events = q.events[1:]
		}
		switch {
		case !there || p.stopped || len(q.events) == 0:
			delete(p.queues, a)
			p.mu.Unlock()
			return
		case s.Suspended:
			q.state = awaitingResume
			p.mu.Unlock()
			return
		}
		ev := q.events[0]
		p.mu.Unlock()

		err := p.post(s, a.source.TrustedCertificates(a.id), ev.body)
		if p.ctx.Err() != nil {
			continue // stopped, which the subscriber cannot help
		}
		after, again := a.source.DeliveryAttempted(a.id, err)
		failed = err != nil
		p.mu.Lock()
		switch {
		case err == nil:
			q.events = q.events[1:]
		case again:
			q.state = awaitingRetry
			if q.timer == nil { // housekeeping: a subscriber that is away does not hurry the clock
				q.timer = p.c.Clock.LazyFunc(after, func() { p.retry(a, q) })
			} else {
				q.timer.Reset(after)
			}
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// post posts an event once.
func (p *Poster) post(s bmc.Subscription, trusted [][]byte, body []byte) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.c.AnswerTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.Destination, bytes.NewReader(body))
	if err != nil {
		return errors.New("outbound: the subscriber's address cannot be read") // err would show it with its password
	}
	r.Header.Set("Content-Type", "application/json;charset=utf-8")
	r.Header.Set("OData-Version", "4.0")
	for _, h := range s.Headers {
		r.Header.Set(h.Name, h.Value)
	}
	transport := p.transport(s, trusted)
	defer transport.CloseIdleConnections()
	c := http.Client{
		Transport: transport,
		// An event goes to whom it was subscribed for.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := c.Do(r)
	if err != nil {
		return fmt.Errorf("outbound: %w", err)
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return fmt.Errorf("outbound: %w", err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("outbound: %w", &statusError{code: resp.StatusCode})
	}
	return nil
}

// transport connects to one subscriber as its subscription says. Connections
// are not kept: sockets do not grow with the number of subscriptions.
func (p *Poster) transport(s bmc.Subscription, trusted [][]byte) *http.Transport {
	roots := p.c.RootCAs
	if len(trusted) > 0 { // only who shows one of them is the subscriber (DSP2046, EventDestination.Certificates)
		roots = x509.NewCertPool()
		for _, der := range trusted {
			if c, err := x509.ParseCertificate(der); err == nil {
				roots.AddCert(c)
			}
		}
	}
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: p.c.AnswerTimeout}).DialContext, // no proxy, as with images
		TLSClientConfig: &tls.Config{
			RootCAs: roots, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: !s.Verify, // as a BMC does that was not asked to verify (DSP2046, VerifyCertificate)
		},
		DisableKeepAlives: true,
	}
}

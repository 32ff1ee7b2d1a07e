package outbound

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
)

// EventSource is a BMC as the Poster sees it. EventSources are comparable: a BMC has
// the same one in every call.
type EventSource interface {
	// Subscription returns the current state of a subscription, with its headers;
	// false when it was deleted.
	Subscription(id string) (bmc.Subscription, bool)
	// TrustedCertificates returns the certificates, in DER, that the subscriber may
	// use or that may sign for it. Without any, PostConfig.RootCAs applies.
	TrustedCertificates(id string) [][]byte
	// DeliveryAttempted notes the result of an attempt to deliver an event. After a
	// failure it returns whether to try again, and after how much client time.
	DeliveryAttempted(id string, failed error) (after time.Duration, again bool)
}

// PostConfig says how a Poster posts events. Zero values mean the defaults given
// here.
type PostConfig struct {
	Clock         *clock.Clock
	RootCAs       *x509.CertPool // authorities for subscribers; nil: the system's
	AnswerTimeout time.Duration  // real time; 10 s
	MaxConcurrent int            // concurrent attempts; 64
	MaxQueued     int            // events per subscription; 64. The oldest are dropped.
}

// Poster posts events to subscribers. Events of one subscription are posted in
// order, one at a time, with the retries of its policy. While an event is being
// posted, the clock does not jump; between attempts there is only a timer. A Poster
// is safe for concurrent use.
type Poster struct {
	c     PostConfig
	slots chan struct{} // limits concurrent attempts

	mu      sync.Mutex
	queues  map[destination]*queue // queues of subscriptions with waiting events
	stopped bool
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// destination identifies a subscription.
type destination struct {
	source EventSource
	id     string
}

// queue holds the waiting events of one subscription.
type queue struct {
	events []event
	state  queueState
	timer  *clock.Timer // for the next attempt; nil before the first retry
}

// event is one event to post.
type event struct {
	at   time.Time
	body []byte
}

// queueState says what the events of a queue wait for.
type queueState string

const (
	awaitingAnswer queueState = "answer"  // a goroutine posts an event
	awaitingRetry  queueState = "attempt" // a timer is set
	awaitingResume queueState = "resume"  // the subscription is suspended
)

// NewPoster returns a Poster.
func NewPoster(c PostConfig) *Poster {
	c.AnswerTimeout, c.MaxConcurrent, c.MaxQueued = cmp.Or(c.AnswerTimeout, 10*time.Second), cmp.Or(c.MaxConcurrent, 64), cmp.Or(c.MaxQueued, 64)
	ctx, cancel := context.WithCancel(context.Background())
	return &Poster{c: c, slots: make(chan struct{}, c.MaxConcurrent), queues: map[destination]*queue{}, ctx: ctx, cancel: cancel}
}

// Post queues an event for a subscription. It does not wait.
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
			drop = 1 // the first is being posted
		}
		q.events = append(q.events[:drop:drop], q.events[drop+1:]...)
	}
	q.events = append(q.events, event{at, body})
	if idle {
		p.start(a, q)
	}
}

// Resume posts the events that waited while a subscription was suspended, except those
// from before since.
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

// Forget drops the events of a deleted subscription.
func (p *Poster) Forget(box EventSource, id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := destination{box, id}
	if q := p.queues[a]; q != nil && q.state != awaitingAnswer { // else its goroutine sees that it was deleted
		q.stop()
		delete(p.queues, a)
	}
}

// Stop drops waiting events, and returns when no attempt is under way.
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

// start posts the events of a queue in a goroutine. The caller holds p.mu.
func (p *Poster) start(a destination, q *queue) {
	q.state = awaitingAnswer
	leave := p.c.Clock.Enter()
	p.running.Go(func() {
		defer leave()
		p.run(a, q)
	})
}

// retry is called by the timer. It starts the queue again.
func (p *Poster) retry(a destination, q *queue) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopped && p.queues[a] == q && q.state == awaitingRetry {
		p.start(a, q)
	}
}

// run posts events until none is left or one must wait.
func (p *Poster) run(a destination, q *queue) {
	for failed := false; ; {
		s, there := a.source.Subscription(a.id)
		p.mu.Lock()
		if failed && there && !s.Suspended { // the policy allows no further attempt
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
			continue // stopped: the attempt does not count
		}
		after, again := a.source.DeliveryAttempted(a.id, err)
		failed = err != nil
		p.mu.Lock()
		switch {
		case err == nil:
			q.events = q.events[1:]
		case again:
			q.state = awaitingRetry
			if q.timer == nil { // the subscriber gets the time that its BMC promises to wait
				q.timer = p.c.Clock.ClientFunc(after, func() { p.retry(a, q) })
			} else {
				q.timer.Reset(after)
			}
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
	}
}

// post makes one attempt to post an event.
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
		return errors.New("the subscriber's address is invalid") // err would contain the password
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
		// An event goes only to the address that was subscribed.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := c.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)); err != nil {
		return err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return &statusError{code: resp.StatusCode}
	}
	return nil
}

// transport returns a transport for one subscriber. Connections are not kept, so
// that sockets do not grow with the number of subscriptions.
func (p *Poster) transport(s bmc.Subscription, trusted [][]byte) *http.Transport {
	roots := p.c.RootCAs
	if len(trusted) > 0 { // the subscriber must use one of these (DSP2046, EventDestination.Certificates)
		roots = x509.NewCertPool()
		for _, der := range trusted {
			if c, err := x509.ParseCertificate(der); err == nil {
				roots.AddCert(c)
			}
		}
	}
	return &http.Transport{
		DialContext: (&net.Dialer{Timeout: p.c.AnswerTimeout}).DialContext, // no proxy, as for images
		TLSClientConfig: &tls.Config{
			RootCAs: roots, MinVersion: tls.VersionTLS12,
			InsecureSkipVerify: !s.Verify, // BMCs verify only on request (DSP2046, VerifyCertificate)
		},
		DisableKeepAlives: true,
	}
}

package outbound

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
)

var origin = time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)

// box is an EventSource with a real BMC model.
type box struct {
	t     *testing.T
	clock *clock.Clock
	mu    sync.Mutex
	bmc   *bmc.BMC

	trusted [][]byte
}

func newBox(t *testing.T) *box {
	return &box{t: t, clock: clock.NewVirtual(origin), bmc: bmc.New(&bmc.Spec{}, nil, nil)}
}

func (b *box) do(c bmc.Command) []bmc.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	evs, err := b.bmc.Apply(b.clock.Now(), c)
	if err != nil {
		b.t.Errorf("Apply(%+v) = %v", c, err)
	}
	return evs
}

func (b *box) subscribe(s bmc.Subscription) string {
	return b.do(bmc.Subscribe{Subscription: s})[0].(bmc.Subscribed).Subscription.ID
}

func (b *box) Subscription(id string) (bmc.Subscription, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bmc.Subscription(id)
}

func (b *box) TrustedCertificates(string) [][]byte { return b.trusted }

func (b *box) DeliveryAttempted(id string, failed error) (time.Duration, bool) {
	if failed == nil {
		b.do(bmc.Delivered{ID: id})
		return 0, false
	}
	for _, ev := range b.do(bmc.DeliveryFailed{ID: id}) {
		if ev, ok := ev.(bmc.RetryDelivery); ok {
			return ev.After, true
		}
	}
	return 0, false
}

// settle waits until nothing is in flight.
func (b *box) settle() {
	b.t.Helper()
	if err := b.clock.Settle(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// pass advances the clock, and waits for what follows.
func (b *box) pass(d time.Duration) {
	b.clock.Advance(d)
	b.settle()
}

func (b *box) poster(c PostConfig) *Poster {
	c.Clock = b.clock
	p := NewPoster(c)
	b.t.Cleanup(p.Stop)
	return p
}

// hook is a subscriber that records its events, and answers with a given status.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	got    []string
	header http.Header
	status int
}

func newHook(t *testing.T, tls bool) *hook {
	h := &hook{status: 204}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.status < 300 {
			h.got = append(h.got, string(body))
		}
		h.header = r.Header
		if h.status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(h.status)
	}))
	h.Config.ErrorLog = log.New(io.Discard, "", 0) // the server logs clients that do not trust it
	if tls {
		h.StartTLS()
	} else {
		h.Start()
	}
	t.Cleanup(h.Close)
	return h
}

func (h *hook) answer(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.status = status
}

func (h *hook) taken() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.got)
}

func want(t *testing.T, what string, h *hook, bodies ...string) {
	t.Helper()
	if got := h.taken(); !slices.Equal(got, bodies) {
		t.Errorf("%s: the subscriber has %q, want %q", what, got, bodies)
	}
}

func TestEventsArePostedInOrder(t *testing.T) {
	b, h := newBox(t), newHook(t, true)
	p := b.poster(PostConfig{})
	id := b.subscribe(bmc.Subscription{Destination: h.URL + "/hook", Headers: []bmc.Header{{Name: "X-Key", Value: "k"}}})
	var all []string
	for i := range 50 {
		all = append(all, fmt.Sprint(i))
		p.Post(b, id, origin, []byte(all[i]))
	}
	b.settle()
	want(t, "in the end", h, all...)
	if h.header.Get("X-Key") != "k" || h.header.Get("Content-Type") != "application/json;charset=utf-8" || h.header.Get("OData-Version") != "4.0" {
		t.Errorf("headers %v", h.header)
	}
	if len(p.queues) != 0 {
		t.Errorf("%d queues are left at rest", len(p.queues))
	}
}

func TestVerifyCertificateVerifiesTheSubscriber(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		b, h := newBox(t), newHook(t, true)
		pool := x509.NewCertPool()
		if trusted {
			pool.AddCert(h.Certificate())
		}
		p := b.poster(PostConfig{RootCAs: pool})
		id := b.subscribe(bmc.Subscription{Destination: h.URL, Verify: true})
		p.Post(b, id, origin, []byte("secret"))
		b.settle()
		if got := h.taken(); (len(got) == 1) != trusted {
			t.Errorf("trusted %t: the subscriber has %q", trusted, got)
		}
		if s, _ := b.Subscription(id); (s.Failures == 0) != trusted {
			t.Errorf("trusted %t: %d failures", trusted, s.Failures)
		}
	}
}

// A subscription with certificates trusts only those.
func TestSubscriptionCertificatesAreTheOnlyOnesTrusted(t *testing.T) {
	other := newBox(t)
	h := newHook(t, true)
	for _, listed := range []bool{true, false} {
		b := other
		pool := x509.NewCertPool()
		pool.AddCert(h.Certificate())
		b.trusted = [][]byte{h.Certificate().Raw}
		if listed {
			pool = x509.NewCertPool()
		} else {
			b.trusted = [][]byte{strange(t)}
		}
		p := b.poster(PostConfig{RootCAs: pool})
		id := b.subscribe(bmc.Subscription{Destination: h.URL, Verify: true})
		p.Post(b, id, origin, []byte("x"))
		b.settle()
		if s, _ := b.Subscription(id); (s.Failures == 0) != listed {
			t.Errorf("certificate of the subscription %t: %d failures", listed, s.Failures)
		}
	}
}

// strange returns a certificate that no server here has.
func strange(t *testing.T) []byte {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: clock.Wall().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

func TestFailedDeliveryIsRetried(t *testing.T) {
	for _, status := range []int{500, 404, 302, 307} {
		b, h := newBox(t), newHook(t, false)
		p := b.poster(PostConfig{})
		id := b.subscribe(bmc.Subscription{Destination: h.URL})
		h.answer(status)
		p.Post(b, id, origin, []byte("a"))
		p.Post(b, id, origin, []byte("b"))
		b.settle()
		b.pass(29 * time.Second)
		h.answer(200)
		b.settle()
		want(t, fmt.Sprint(status, ", before the interval is over"), h)
		b.pass(time.Second)
		want(t, fmt.Sprint(status, ", after it"), h, "a", "b")
		if s, _ := b.Subscription(id); s.Failures != 0 {
			t.Errorf("%d: %d failures are counted after a success", status, s.Failures)
		}
	}
}

func TestDeliveryRetryPolicyEndsRetries(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for policy, end := range map[bmc.Retry]string{bmc.Terminate: "gone", bmc.Suspend: "suspended", bmc.Forever: "there", bmc.BackOff: "there"} {
		b := newBox(t)
		p := b.poster(PostConfig{})
		id := b.subscribe(bmc.Subscription{Destination: gone.URL, Retry: policy})
		p.Post(b, id, origin, []byte("a"))
		b.settle()
		for range 10 {
			b.pass(time.Hour)
		}
		got := "gone"
		if s, ok := b.Subscription(id); ok && s.Suspended {
			got = "suspended"
		} else if ok {
			got = "there"
		}
		if got != end {
			t.Errorf("%s: after ten hours the subscription is %s, want %s", policy, got, end)
		}
		if (len(p.queues) == 0) != (end == "gone") {
			t.Errorf("%s: %d queues", policy, len(p.queues))
		}
	}
}

func TestResumedSubscriptionGetsMissedEvents(t *testing.T) {
	b, h := newBox(t), newHook(t, false)
	p := b.poster(PostConfig{MaxQueued: 3})
	id := b.subscribe(bmc.Subscription{Destination: h.URL})
	b.do(bmc.SuspendSubscription{ID: id})
	for i := range 5 { // the first two are dropped
		p.Post(b, id, b.clock.Now(), fmt.Append(nil, i))
		b.pass(time.Minute)
	}
	want(t, "suspended", h)
	b.do(bmc.ResumeSubscription{ID: id})
	p.Resume(b, id, b.clock.Now().Add(-2*time.Minute))
	b.settle()
	want(t, "resumed", h, "3", "4")
	b.do(bmc.SuspendSubscription{ID: id})
	p.Post(b, id, b.clock.Now(), []byte("5"))
	b.pass(time.Minute)
	b.do(bmc.ResumeSubscription{ID: id})
	p.Resume(b, id, b.clock.Now())
	p.Post(b, id, b.clock.Now(), []byte("6"))
	b.settle()
	want(t, "resumed without the past", h, "3", "4", "6")
}

func TestDeletedSubscriptionGetsNoEvents(t *testing.T) {
	b, h := newBox(t), newHook(t, false)
	p := b.poster(PostConfig{})
	id := b.subscribe(bmc.Subscription{Destination: h.URL, Retry: bmc.Forever})
	h.answer(503)
	p.Post(b, id, origin, []byte("a"))
	b.settle()
	b.do(bmc.Unsubscribe{ID: id})
	p.Forget(b, id)
	h.answer(200)
	b.pass(time.Hour)
	want(t, "unsubscribed", h)
	if len(p.queues) != 0 {
		t.Errorf("%d queues are left", len(p.queues))
	}
}

// A subscriber that does not answer delays no other, and not Stop.
func TestSilentSubscriberDelaysNoOther(t *testing.T) {
	b, h := newBox(t), newHook(t, false)
	p := b.poster(PostConfig{AnswerTimeout: time.Hour})
	asked := make(chan bool, 1)
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client leaves
		asked <- true
		<-r.Context().Done()
	}))
	defer silent.Close()
	p.Post(b, b.subscribe(bmc.Subscription{Destination: silent.URL}), origin, []byte("a"))
	<-asked
	got := make(chan bool)
	h.Config.Handler = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { close(got) })
	p.Post(b, b.subscribe(bmc.Subscription{Destination: h.URL}), origin, []byte("b"))
	<-got
	p.Stop()
	b.settle()
}

func TestSubscriberAnswerTimeout(t *testing.T) {
	b := newBox(t)
	p := b.poster(PostConfig{AnswerTimeout: 20 * time.Millisecond})
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	id := b.subscribe(bmc.Subscription{Destination: silent.URL})
	p.Post(b, id, origin, []byte("a"))
	b.settle()
	if s, _ := b.Subscription(id); s.Failures != 1 {
		t.Errorf("%d failures of a subscriber that does not answer", s.Failures)
	}
}

// A failing store must not make the Poster repeat an event for ever.
type brokenBox struct{ *box }

func (b brokenBox) DeliveryAttempted(string, error) (time.Duration, bool) { return 0, false }

func TestEventIsDroppedAfterItsRetries(t *testing.T) {
	b, h := newBox(t), newHook(t, false)
	p := b.poster(PostConfig{})
	id := b.subscribe(bmc.Subscription{Destination: h.URL})
	h.answer(500)
	p.Post(brokenBox{b}, id, origin, []byte("a"))
	b.settle()
	h.answer(200)
	p.Post(brokenBox{b}, id, origin, []byte("b"))
	b.settle()
	want(t, "afterwards", h, "b")
}

func TestDeliveryErrorsContainNoPassword(t *testing.T) {
	p := newBox(t).poster(PostConfig{})
	err := p.post(bmc.Subscription{Destination: "http://user:hidden@127.0.0.1:1/x"}, nil, nil)
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("attempt = %v; want an error without the password", err)
	}
}

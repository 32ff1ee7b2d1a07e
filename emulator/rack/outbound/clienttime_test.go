package outbound

import (
	"context"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
)

// fast returns a clock whose lab time runs a million times as fast as real time, until
// the test ends.
func fast(t *testing.T) *clock.Clock {
	c := clock.NewScaled(origin, 1e6)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	return c
}

// A subscriber that is down for a moment gets the retries that
// DeliveryRetryIntervalSeconds promises, by its own clock.
func TestDeliveryIsRetriedInClientTime(t *testing.T) {
	b, h := newBox(t), newHook(t, false)
	b.clock = fast(t)
	p := b.poster(PostConfig{})
	id := b.subscribe(bmc.Subscription{Destination: h.URL, Retry: bmc.Suspend})
	h.answer(500)
	p.Post(b, id, origin, []byte("event"))
	for failures := 0; failures == 0; {
		s, _ := b.Subscription(id)
		failures = s.Failures
		if err := b.clock.Sleep(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.clock.Sleep(t.Context(), 10*time.Hour); err != nil {
		t.Fatal(err)
	}
	if s, _ := b.Subscription(id); s.Failures != 1 || s.Suspended {
		t.Fatalf("hours of lab time after the first attempt the subscription has %d failures, suspended: %t", s.Failures, s.Suspended)
	}
	h.answer(204)
	b.clock.Advance(bmc.DefaultInterval)
	for len(h.taken()) == 0 {
		if err := b.clock.Sleep(t.Context(), time.Hour); err != nil {
			t.Fatal(err)
		}
	}
}

// A trap's destination gets the time to acknowledge it by its own clock.
func TestTrapIsSentAgainInClientTime(t *testing.T) {
	s, c := newStation(t), fast(t)
	x := NewTrapper(TrapConfig{Clock: c, Port: s.port()})
	defer x.Stop()
	end := make(outcome, 1)
	x.Send(Trap{Sender: 1, From: bmc1, To: here, Packet: []byte("hot"), Sequence: 7, Acknowledged: true, Attempts: 2, Interval: time.Minute, Done: end.done})
	s.next()
	if err := c.Sleep(t.Context(), 10*time.Hour); err != nil {
		t.Fatal(err)
	}
	s.none()
	c.Advance(time.Minute)
	s.next()
	x.Acknowledge(1, 7)
	if !<-end {
		t.Error("the trap was acknowledged and is lost")
	}
}

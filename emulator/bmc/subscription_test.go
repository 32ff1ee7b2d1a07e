package bmc

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// subscribe adds a subscription and returns its ID.
func subscribe(t *testing.T, b *BMC, now time.Time, s Subscription) string {
	t.Helper()
	for _, ev := range do(t, b, now, Subscribe{s}) {
		if ev, ok := ev.(Subscribed); ok {
			return ev.Subscription.ID
		}
	}
	t.Fatal("nobody was told of the subscription")
	return ""
}

func subscribers(b *BMC) (out []string) {
	for _, s := range b.View().Subscribers.List {
		out = append(out, s.ID)
	}
	return out
}

func TestSubscribeAndUnsubscribe(t *testing.T) {
	b := newBMC()
	if _, ok := b.NextEvent(); ok {
		t.Error("an event is told to nobody")
	}
	hook := Subscription{Destination: "https://a.test/", Context: "c", Headers: []Header{{"X-Key", "secret"}}}
	first := subscribe(t, b, origin, hook)
	stream := subscribe(t, b, origin, Subscription{Stream: true, Destination: "redfish-sse://192.0.2.1:1"})
	second := subscribe(t, b, origin, hook)
	if d := cmp.Diff([]string{first, second, stream}, subscribers(b)); d != "" {
		t.Errorf("subscriptions (-want +got):\n%s", d)
	}
	shown := b.View().Subscribers.List[0]
	if shown.Headers != nil || shown.Retry != Terminate || shown.Context != "c" {
		t.Errorf("a view shows %+v", shown)
	}
	if s, ok := b.Subscription(first); !ok || s.Headers[0].Value != "secret" {
		t.Errorf("Subscription(%s) = %+v, %t", first, s, ok)
	}
	for n := uint64(1); n < 4; n++ {
		if got, ok := b.NextEvent(); got != n || !ok {
			t.Errorf("NextEvent() = %d, %t, want %d", got, ok, n)
		}
	}
	before := b.View().Subscribers
	b.NextEvent()
	if b.View().Subscribers != before {
		t.Error("telling an event changes what a view shows of the subscriptions")
	}
	if d := cmp.Diff([]Event{Unsubscribed{At: origin, ID: stream, Stream: true}}, do(t, b, origin, Unsubscribe{stream})); d != "" {
		t.Errorf("events of Unsubscribe (-want +got):\n%s", d)
	}
	do(t, b, origin, Unsubscribe{first})
	do(t, b, origin, Unsubscribe{second})
	if len(subscribers(b)) != 0 {
		t.Errorf("subscriptions = %q, want none", subscribers(b))
	}
	if n, ok := b.NextEvent(); !ok || n != 5 {
		t.Errorf("NextEvent() without subscribers = %d, %t: one may come back", n, ok)
	}
	for _, c := range []Command{Unsubscribe{first}, SuspendSubscription{first}, ResumeSubscription{ID: first}, ChangeSubscription{ID: first}, Delivered{first}, DeliveryFailed{first}} {
		refused(t, b, origin, c, ErrNotFound)
	}
}

func TestSubscriptionsAreBounded(t *testing.T) {
	b := newBMC()
	for _, kind := range []struct {
		Subscription
		most int
	}{{Subscription{}, MaxSubscriptions}, {Subscription{Stream: true}, MaxStreams}} {
		for range kind.most {
			subscribe(t, b, origin, kind.Subscription)
		}
		refused(t, b, origin, Subscribe{kind.Subscription}, ErrTooManySubscriptions)
	}
}

// What is kept is kept; what a connection held is gone with it.
func TestSubscriptionsSurviveARestart(t *testing.T) {
	b := newBMC()
	stored := subscribe(t, b, origin, Subscription{
		Destination: "https://a.test/", Retry: Forever, Verify: true, Heartbeat: time.Hour, Headers: []Header{{"X-Key", "secret"}},
		Filter: Filter{Registries: []string{"Base"}, Origins: []string{"/redfish/v1"}, Subordinate: true},
	})
	subscribe(t, b, origin, Subscription{Stream: true})
	do(t, b, origin, SetDelivery{Attempts: new(7)})
	do(t, b, origin, SuspendSubscription{stored})
	last, _ := b.NextEvent()
	raw, err := json.Marshal(b.State())
	if err != nil {
		t.Fatal(err)
	}
	var st State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	again := New(spec, nil, &st)
	before, _ := b.Subscription(stored)
	restored, _ := again.Subscription(stored)
	if d := cmp.Diff(before, restored); d != "" || len(subscribers(again)) != 1 || !restored.Suspended {
		t.Errorf("restored %q (-before +restored):\n%s", subscribers(again), d)
	}
	if a := again.View().Subscribers; a.Attempts != 7 || a.Interval != DefaultInterval {
		t.Errorf("restored delivery: %d attempts every %s", a.Attempts, a.Interval)
	}
	if n, _ := again.NextEvent(); n != last+1 {
		t.Errorf("event %d after %d", n, last)
	}
	if id := subscribe(t, again, origin, Subscription{}); id == stored || id == "2" {
		t.Errorf("ID %s is used again", id)
	}
}

func TestRestoreClosesNewerStreams(t *testing.T) {
	b := newBMC()
	old := subscribe(t, b, origin, Subscription{Stream: true})
	before := b.State()
	subscribe(t, b, origin, Subscription{Stream: true})
	b.Restore(before)
	if d := cmp.Diff([]string{old}, subscribers(b)); d != "" {
		t.Errorf("subscriptions (-want +got):\n%s", d)
	}
}

func TestDeliveryRetryPolicies(t *testing.T) {
	for _, tt := range []struct {
		retry Retry
		want  []string // outcome of each failure in a row
		after string
	}{
		{Terminate, []string{"again in 10s", "again in 10s", "unsubscribed"}, "gone"},
		{"", []string{"again in 10s", "again in 10s", "unsubscribed"}, "gone"},
		{Suspend, []string{"again in 10s", "again in 10s", "nothing"}, "suspended"},
		{Forever, []string{"again in 10s", "again in 10s", "again in 10s", "again in 10s"}, "4 failures"},
		{BackOff, []string{"again in 10s", "again in 20s", "again in 40s", "again in 1m20s", "again in 2m40s", "again in 5m20s", "again in 10m40s", "again in 21m20s", "again in 42m40s", "again in 1h0m0s", "again in 1h0m0s"}, "11 failures"},
	} {
		b := newBMC()
		id := subscribe(t, b, origin, Subscription{Retry: tt.retry})
		do(t, b, origin, SetDelivery{Attempts: new(2), Interval: new(10 * time.Second)})
		var got []string
		for range tt.want {
			outcome := "nothing"
			for _, ev := range do(t, b, origin, DeliveryFailed{id}) {
				switch ev := ev.(type) {
				case RetryDelivery:
					outcome = fmt.Sprintf("again in %s", ev.After)
				case Unsubscribed:
					outcome = "unsubscribed"
				}
			}
			got = append(got, outcome)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%q (-want +got):\n%s", tt.retry, d)
		}
		after := "gone"
		if s, ok := b.Subscription(id); ok && s.Suspended {
			after = "suspended"
		} else if ok {
			after = fmt.Sprintf("%d failures", s.Failures)
		}
		if after != tt.after {
			t.Errorf("%q: %s at the end, want %s", tt.retry, after, tt.after)
		}
	}
}

func TestDeliveryResetsFailureCount(t *testing.T) {
	b := newBMC()
	id := subscribe(t, b, origin, Subscription{})
	do(t, b, origin, DeliveryFailed{id})
	do(t, b, origin, Delivered{id})
	if s, _ := b.Subscription(id); s.Failures != 0 {
		t.Errorf("%d failures after a success", s.Failures)
	}
	before := b.State()
	do(t, b, origin, Delivered{id})
	if b.State() != before {
		t.Error("a success after a success changes the state")
	}
}

func TestHeartbeats(t *testing.T) {
	b := newBMC()
	id := subscribe(t, b, origin, Subscription{Heartbeat: time.Minute})
	subscribe(t, b, origin, Subscription{})
	for _, step := range []struct {
		at   time.Duration // since the beginning
		want int
	}{{59 * time.Second, 0}, {time.Minute, 1}, {61 * time.Second, 0}, {2 * time.Minute, 1}, {10 * time.Minute, 1}} {
		if got := b.Advance(origin.Add(step.at)); len(got) != step.want {
			t.Errorf("after %s: %v, want %d signs of life", step.at, got, step.want)
		}
	}
	if at, ok := b.ClientDeadline(); !ok || !at.Equal(origin.Add(11*time.Minute)) {
		t.Errorf("ClientDeadline() = %v, %t", at, ok)
	}
	do(t, b, origin.Add(10*time.Minute), SuspendSubscription{id})
	if at, ok := b.ClientDeadline(); ok {
		t.Errorf("ClientDeadline() with the subscription suspended = %v", at)
	}
	do(t, b, origin.Add(time.Hour), ResumeSubscription{ID: id})
	if at, _ := b.ClientDeadline(); !at.Equal(origin.Add(61 * time.Minute)) {
		t.Errorf("ClientDeadline() after it was resumed = %v", at)
	}
}

func TestDisabledEventServiceSendsNothing(t *testing.T) {
	b := newBMC()
	subscribe(t, b, origin, Subscription{Heartbeat: time.Minute})
	stream := subscribe(t, b, origin, Subscription{Stream: true})
	evs := do(t, b, origin, SetDelivery{Off: new(true)})
	if d := cmp.Diff([]Event{Unsubscribed{At: origin, ID: stream, Stream: true}}, evs); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if _, ok := b.ClientDeadline(); ok {
		t.Error("signs of life fall due all the same")
	}
	do(t, b, origin, SetDelivery{Off: new(false)})
	if _, ok := b.NextEvent(); !ok || len(subscribers(b)) != 1 {
		t.Errorf("switched on again: events are told: %t, subscriptions %q", ok, subscribers(b))
	}
}

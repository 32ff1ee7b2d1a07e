package bmctest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// The verbs of bmc.Subscriber.
const (
	ReadSubscriptions Verb = "Subscriptions"
	Subscribe         Verb = "Subscribe"
	Unsubscribe       Verb = "Unsubscribe"
)

var subscriberVerbs = []Verb{ReadSubscriptions, Subscribe, Unsubscribe}

var (
	_ bmc.Subscriber = (*Fake)(nil)
	_ bmc.Subscriber = (*login)(nil)
)

// Subscribed returns the subscriptions with their headers.
func (f *Fake) Subscribed() []bmc.Subscription {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.subscriptions)
}

// enterEvents calls enter for a verb of bmc.Subscriber.
func (f *Fake) enterEvents(ctx context.Context, v Verb) error {
	if err := f.enter(ctx, Call{Verb: v}); err != nil {
		return err
	}
	if f.NoEvents {
		f.mu.Unlock()
		return fmt.Errorf("bmctest: %w", &bmc.UnsupportedError{Verb: string(v), Why: "it has no event service"})
	}
	return nil
}

// Subscriptions implements bmc.Subscriber.
func (f *Fake) Subscriptions(ctx context.Context) ([]bmc.Subscription, error) {
	if err := f.enterEvents(ctx, ReadSubscriptions); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	var out []bmc.Subscription
	for _, s := range f.subscriptions {
		s.Headers = nil
		out = append(out, s)
	}
	return out, nil
}

// Subscribe implements bmc.Subscriber.
func (f *Fake) Subscribe(ctx context.Context, s bmc.Subscription) (string, error) {
	if err := f.enterEvents(ctx, Subscribe); err != nil {
		return "", err
	}
	defer f.mu.Unlock()
	f.subscribed++
	s.ID = strconv.Itoa(f.subscribed)
	f.subscriptions = append(f.subscriptions, s)
	return s.ID, nil
}

// Unsubscribe implements bmc.Subscriber.
func (f *Fake) Unsubscribe(ctx context.Context, id string) error {
	if err := f.enterEvents(ctx, Unsubscribe); err != nil {
		return err
	}
	defer f.mu.Unlock()
	f.subscriptions = slices.DeleteFunc(slices.Clone(f.subscriptions), func(s bmc.Subscription) bool { return s.ID == id })
	return nil
}

func (l *login) Subscriptions(ctx context.Context) ([]bmc.Subscription, error) {
	if err := l.allowed(); err != nil {
		return nil, err
	}
	return l.fake.Subscriptions(ctx)
}

func (l *login) Subscribe(ctx context.Context, s bmc.Subscription) (string, error) {
	if err := l.allowed(); err != nil {
		return "", err
	}
	return l.fake.Subscribe(ctx, s)
}

func (l *login) Unsubscribe(ctx context.Context, id string) error {
	if err := l.allowed(); err != nil {
		return err
	}
	return l.fake.Unsubscribe(ctx, id)
}

// A subscription with the requested properties exists until it is deleted; an
// equal request creates another one.
func testSubscriptions(t *testing.T, s suite) {
	c, ok := s.open(t).(bmc.Subscriber)
	if !ok {
		t.Skip("the driver knows no event subscriptions")
	}
	list := func() map[string]bmc.Subscription {
		t.Helper()
		all, err := c.Subscriptions(t.Context())
		offered(t, ReadSubscriptions, err)
		if err != nil {
			t.Fatalf("Subscriptions() error = %v", err)
		}
		out := map[string]bmc.Subscription{}
		for _, s := range all {
			if s.ID == "" || s.Destination == "" {
				t.Errorf("Subscriptions() has %+v", s)
			}
			out[s.ID] = s
		}
		return out
	}
	before, want := list(), list()
	var ids []string
	for _, one := range []bmc.Subscription{
		{Destination: "https://events.example/one", Context: "rack 1", Headers: []bmc.Header{{Name: "X-Token", Value: "t0ken"}, {Name: "X-Site", Value: "r1"}}},
		{Destination: "https://events.example/two"},
		{Destination: "https://events.example/two"},
	} {
		id, err := c.Subscribe(t.Context(), one)
		if err != nil || id == "" {
			t.Fatalf("Subscribe(%+v) = %q, %v", one, id, err)
		}
		if _, twice := want[id]; twice {
			t.Errorf("Subscribe(%+v) = %q, which is another one's ID", one, id)
		}
		want[id] = bmc.Subscription{ID: id, Destination: one.Destination, Context: one.Context}
		ids = append(ids, id)
	}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("Subscriptions() (-want +got):\n%s", diff)
	}
	for _, id := range append(ids, ids[0]) { // one of them twice
		if err := c.Unsubscribe(t.Context(), id); err != nil {
			t.Errorf("Unsubscribe(%s) error = %v", id, err)
		}
	}
	if diff := cmp.Diff(before, list()); diff != "" {
		t.Errorf("Subscriptions() after all were ended (-want +got):\n%s", diff)
	}
}

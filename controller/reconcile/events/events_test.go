package events

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// api is an API whose writes of events are counted.
type api struct {
	client.Client
	writes int
}

func newAPI() *api {
	a := &api{}
	a.Client = interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			a.writes++
			return c.Create(ctx, o, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			a.writes++
			return c.Patch(ctx, o, p, opts...)
		},
	})
	return a
}

func about(object, reason, message string) corev1.Event {
	now := metav1.Now()
	return corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{GenerateName: reason + "-", Namespace: "lab"},
		InvolvedObject: corev1.ObjectReference{Kind: "BareMetalHost", Namespace: "lab", Name: object},
		Reason:         reason, Message: message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
	}
}

func (a *api) counts(t *testing.T) map[string]int32 {
	t.Helper()
	var l corev1.EventList
	if err := a.List(t.Context(), &l); err != nil {
		t.Fatal(err)
	}
	out := map[string]int32{}
	for _, e := range l.Items {
		out[e.InvolvedObject.Name+" "+e.Reason+" "+e.Message] += e.Count
	}
	if len(out) != len(l.Items) {
		t.Errorf("%d Events for %v", len(l.Items), out)
	}
	return out
}

func TestRepeatedEventsRaiseACount(t *testing.T) {
	a := newAPI()
	r := New(a, testclock.NewFakeClock(time.Now()))
	for range 3 {
		r.Publish(t.Context(), about("a", "X", "one"))
		r.Publish(t.Context(), about("a", "X", "two"))
		r.Publish(t.Context(), about("a", "Y", "one"))
		r.Publish(t.Context(), about("b", "X", "one"))
	}
	got := a.counts(t)
	for _, which := range []string{"a X one", "a X two", "a Y one", "b X one"} {
		if got[which] != 3 {
			t.Errorf("count of %q = %d, want 3", which, got[which])
		}
	}
	if len(got) != 4 {
		t.Errorf("events %v, want 4", got)
	}
}

// An event that repeats fast is not written each time, and its count is right afterwards.
func TestWritesOfRepeatedEventsAreLimited(t *testing.T) {
	a, c := newAPI(), testclock.NewFakeClock(time.Now())
	r := New(a, c)
	const times, seconds = 1000, 10
	for range seconds {
		for range times / seconds {
			r.Publish(t.Context(), about("a", "X", "one"))
		}
		c.Step(time.Second)
	}
	if a.writes > burst+seconds*perSecond {
		t.Errorf("%d writes in %d seconds, want at most %d at once and %d a second", a.writes, seconds, burst, perSecond)
	}
	r.Publish(t.Context(), about("a", "Y", "one"))
	r.Publish(t.Context(), about("a", "X", "one"))
	if got := a.counts(t); got["a X one"] != times+1 || got["a Y one"] != 1 {
		t.Errorf("counts %v, want %d of X and 1 of Y, which is not held up", got, times+1)
	}
}

// Messages that differ each time, such as those with a port number, end in one event.
func TestEventsOfManyMessagesAreCombined(t *testing.T) {
	a := newAPI()
	r := New(a, testclock.NewFakeClock(time.Now()))
	for i := range 100 {
		r.Publish(t.Context(), about("a", "X", fmt.Sprint("port ", i)))
	}
	if got := a.counts(t); len(got) > 15 {
		t.Errorf("%d Events of one reason, want at most 15", len(got))
	}
}

// The first write may fail, and an Event expires after an hour.
func TestEventThatIsNotThereIsCreated(t *testing.T) {
	a := newAPI()
	ctx, cancel := context.WithCancel(t.Context())
	refusing := interceptor.NewClient(a.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return c.Create(ctx, o, opts...)
		},
	})
	r := New(refusing, testclock.NewFakeClock(time.Now()))
	cancel()
	r.Publish(ctx, about("a", "X", "one"))
	r.Publish(t.Context(), about("a", "X", "one"))
	if got := a.counts(t); got["a X one"] != 2 {
		t.Fatalf("after a write that failed: %v, want a count of 2", got)
	}
	if err := a.DeleteAllOf(t.Context(), &corev1.Event{}, client.InNamespace("lab")); err != nil {
		t.Fatal(err)
	}
	r.Publish(t.Context(), about("a", "X", "one"))
	r.Publish(t.Context(), about("a", "X", "one"))
	if got := a.counts(t); len(got) != 1 || got["a X one"] != 4 {
		t.Errorf("after it has expired: %v, want one with a count of 4", got)
	}
}

func TestAboutNamesTheObject(t *testing.T) {
	a, now := newAPI(), time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	r := New(a, testclock.NewFakeClock(now))
	r.About(t.Context(), "helm", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: "c", UID: "u"}}, corev1.EventTypeWarning, "Failed", strings.Repeat("é", maxMessage))
	r.About(t.Context(), "nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, corev1.EventTypeNormal, "Ready", "it runs")
	var got corev1.EventList
	if err := a.List(t.Context(), &got); err != nil || len(got.Items) != 2 {
		t.Fatalf("%d Events, %v, want 2", len(got.Items), err)
	}
	for _, e := range got.Items {
		o, want := e.InvolvedObject, corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "lab", Name: "c", UID: "u"}
		component, kind, namespace := "helm", corev1.EventTypeWarning, "lab"
		if o.Kind == "Node" {
			want = corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: "n"}
			component, kind, namespace = "nodes", corev1.EventTypeNormal, "default"
		}
		if o != want || e.Source.Component != component || e.Type != kind || e.Namespace != namespace || !e.FirstTimestamp.Time.Equal(now) || !e.LastTimestamp.Time.Equal(now) {
			t.Errorf("event %+v, want one about %+v at %s", e, want, now)
		}
		if len(e.Message) > maxMessage || !utf8.ValidString(e.Message) {
			t.Errorf("message of %d bytes, valid %t, want at most %d", len(e.Message), utf8.ValidString(e.Message), maxMessage)
		}
	}
}

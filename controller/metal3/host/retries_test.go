package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

func withoutSecret(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "none" }

// eventsOf returns the events of a reason.
func (b *bench) eventsOf(reason string) (out []corev1.Event) {
	b.t.Helper()
	var l corev1.EventList
	if err := b.kube.List(context.Background(), &l); err != nil {
		b.t.Fatal(err)
	}
	for _, e := range l.Items {
		if e.Reason == reason {
			out = append(out, e)
		}
	}
	return out
}

// B-281: an error that repeats is one event with a count.
func TestRepeatedErrorIsOneEventWithACount(t *testing.T) {
	b := newBench(t, 1, withoutSecret)
	const reason, failures = "BMCCredentialError", 5
	b.failure(failures)
	got := b.eventsOf(reason)
	if len(got) != 1 || got[0].Count != failures {
		t.Fatalf("after %d failures: events %+v, want one with this count", failures, got)
	}
	if first, last := got[0].FirstTimestamp, got[0].LastTimestamp; last.Before(&first) {
		t.Errorf("the event is from %v to %v", first, last)
	}
	message := got[0].Message
	if err := b.kube.Delete(t.Context(), &got[0]); err != nil { // events expire
		t.Fatal(err)
	}
	b.failure(failures + 1)
	if got = b.eventsOf(reason); len(got) != 1 || got[0].Message != message {
		t.Errorf("after the event has expired: events %+v, want one", got)
	}
	b.change(func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "nil" })
	b.failure(failures + 2)
	if got = b.eventsOf(reason); len(got) != 2 {
		t.Errorf("after another error: events %+v, want one of each message", got)
	}
}

// jump works off the queue of a bench's controller for a while of real time, in a lab
// whose time jumps from one wait to the next, and returns the number of passes. It runs
// in a bubble, in which no real time passes but in waits.
func (b *bench) jump(during time.Duration) (passes int) {
	b.t.Helper()
	limit := workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()
	q := b.r.Options().NewQueue("host", limit)
	q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b.host())})
	for end := time.Now().Add(during); time.Now().Before(end); {
		synctest.Wait()
		if q.Len() == 0 {
			time.Sleep(2 * time.Millisecond) //nolint:forbidigo // clock.Quiet, in the time of the bubble
			synctest.Wait()
			if b.clock.HasWaiters() && q.Len() == 0 {
				b.clock.Step(time.Second)
			}
			continue
		}
		req, _ := q.Get()
		res, err := b.r.Reconcile(context.Background(), req)
		passes++
		switch {
		case err != nil:
			q.AddRateLimited(req)
		case res.RequeueAfter > 0:
			q.Forget(req)
			q.AddAfter(req, res.RequeueAfter)
		default:
			q.Forget(req)
		}
		q.Done(req)
	}
	q.ShutDown()
	return passes
}

// B-13 B-14: work that fails, or waits for somebody's change, is bounded in real time,
// also where the time of the controller runs as fast as there is work.
func TestFailingWorkIsBoundedInRealTime(t *testing.T) {
	const during, most = time.Minute, 30
	const refused = "a BMC that refuses the credentials"
	for name, setup := range map[string]func(t *testing.T) *bench{
		"no Secret": func(t *testing.T) *bench { return newBench(t, 1, withoutSecret) },
		refused: func(t *testing.T) *bench {
			b := newBench(t, 1, nil)
			b.password("wrong")
			return b
		},
		"a BMC that refuses power": func(t *testing.T) *bench {
			b := newBench(t, 1, nil)
			b.until("available", in(metal3.StateAvailable))
			b.bmc.Press("Off")
			b.bmc.Fail(bmctest.SetPower, errRefused)
			return b
		},
		"a silent BMC": func(t *testing.T) *bench {
			b := newBench(t, 1, nil)
			b.until("available", in(metal3.StateAvailable))
			b.bmc.Unplug()
			return b
		},
		"what the server cannot have": func(t *testing.T) *bench {
			b := newBench(t, 1, nil)
			b.r.Parts = []Part{&scripted{name: "BIOS", states: []phase.PartState{phase.PartImpossible}}}
			b.until("an error", hasError(metal3.PreparationError))
			return b
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := setup(t)
				eventWrites := 0
				b.api, b.open = interceptor.NewClient(b.kube, interceptor.Funcs{
					Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
						if _, ok := o.(*corev1.Event); ok {
							eventWrites++
						}
						return c.Create(ctx, o, opts...)
					},
					Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
						if _, ok := o.(*corev1.Event); ok {
							eventWrites++
						}
						return c.Patch(ctx, o, p, opts...)
					},
				}), b.bmc.Open
				b.parts = b.r.Parts
				b.replace()
				b.statusWrites = 0
				passes := b.jump(during)
				least, most := 5, most
				if name == refused { // an account is locked after as few failures as 5
					least, most = 2, 4
				}
				if passes < least || passes > most || b.statusWrites > most || eventWrites > most {
					t.Errorf("in %v of real time %d passes, %d writes of the status and %d of events, want %d to %d passes: %+v", during, passes, b.statusWrites, eventWrites, least, most, b.host().Status.ErrorMessage)
				}
			})
		})
	}
}

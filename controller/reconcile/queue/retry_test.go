package queue

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// fastClock is real time, which in a bubble passes only in waits, times factor. As in a
// lab, its tickers do not move it.
type fastClock struct {
	clock.RealClock
	from   time.Time
	factor time.Duration
}

func (c fastClock) Now() time.Time { return c.from.Add(c.Since(c.from)) }

func (c fastClock) Since(t time.Time) time.Duration {
	return time.Since(c.from)*c.factor - t.Sub(c.from)
}

// NewTimer returns a timer that does not fire before d has passed.
func (c fastClock) NewTimer(d time.Duration) clock.Timer {
	return c.RealClock.NewTimer((d + c.factor - 1) / c.factor)
}

func (c fastClock) After(d time.Duration) <-chan time.Time { return c.NewTimer(d).C() }

const fastest = 36_000

// newRetrying returns the queue of a controller whose time runs factor times as fast as
// real time.
func newRetrying(t *testing.T, factor time.Duration, retries *Retries) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	t.Helper()
	o := Options(Config{Clock: fastClock{from: time.Now(), factor: factor}, Workers: 1, Retries: retries})
	q := o.NewQueue("test", workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(q.ShutDown)
	return q
}

// passes works for a while of real time and returns how long after the beginning each
// reconcile began. retry requests the next reconcile.
func passes(q workqueue.TypedRateLimitingInterface[reconcile.Request], during time.Duration, retry func(reconcile.Request)) (at []time.Duration) {
	began, ended := time.Now(), make(chan struct{})
	go func() {
		defer close(ended)
		work(q, func(r reconcile.Request) {
			at = append(at, time.Since(began))
			retry(r)
		})
	}()
	q.Add(request("a"))
	time.Sleep(during) //nolint:forbidigo // the time of the bubble
	q.ShutDown()
	<-ended
	return at
}

func TestRetriesAreBoundedInRealTime(t *testing.T) {
	for name, tt := range map[string]struct {
		retry func(q workqueue.TypedRateLimitingInterface[reconcile.Request], s *Retries) func(reconcile.Request)
		most  int
	}{
		"failure": {func(q workqueue.TypedRateLimitingInterface[reconcile.Request], s *Retries) func(reconcile.Request) {
			return func(r reconcile.Request) { s.Failed(r, 0); q.Forget(r); q.AddAfter(r, 10*time.Second) }
		}, 25},
		"error": {func(q workqueue.TypedRateLimitingInterface[reconcile.Request], _ *Retries) func(reconcile.Request) {
			return q.AddRateLimited
		}, 25},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s Retries
				q := newRetrying(t, fastest, &s)
				got := passes(q, time.Minute, tt.retry(q, &s))
				if len(got) < 10 || len(got) > tt.most {
					t.Errorf("%d reconciles in a minute of real time, want 10 to %d: %v", len(got), tt.most, got)
				}
			})
		})
	}
}

func TestWhatDoesNotFailIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Retries
		q := newRetrying(t, fastest, &s)
		s.Failed(request("a"), 20)
		got := passes(q, time.Second, func(r reconcile.Request) { s.Succeeded(r); q.Forget(r); q.AddAfter(r, time.Hour) })
		if len(got) < 9 {
			t.Errorf("%d reconciles in a second, each an hour after the other at %dx", len(got), fastest)
		}
	})
}

// Where controllers live in real time, a retry comes when the controller wants it.
func TestRetriesInRealTimeAreNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Retries
		q := newRetrying(t, 1, &s)
		got := passes(q, time.Hour, func(r reconcile.Request) { s.Failed(r, 20); q.Forget(r); q.AddAfter(r, 15*time.Minute) })
		for i, at := range got {
			if want := time.Duration(i) * 15 * time.Minute; at != want {
				t.Errorf("reconcile %d began after %v, want %v", i, at, want)
			}
		}
		if len(got) < 4 {
			t.Errorf("%d reconciles in an hour, want one in 15 minutes", len(got))
		}
	})
}

// A change of the object is looked at at once, and replaces the retry.
func TestChangeEndsTheHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Retries
		q := newRetrying(t, fastest, &s)
		r, began := request("a"), time.Now()
		s.Failed(r, 20)
		q.AddAfter(r, time.Hour)
		time.Sleep(time.Second) //nolint:forbidigo // the time of the bubble
		if n := q.Len(); n != 0 {
			t.Fatalf("%d requests are due while the retry is held", n)
		}
		q.Add(r)
		if got, _ := q.Get(); got != r || time.Since(began) != time.Second {
			t.Fatalf("Get() = %v after %v", got, time.Since(began))
		}
		s.Failed(r, 20)
		q.AddAfter(r, time.Hour)
		q.Done(r)
		if got, _ := q.Get(); got != r || time.Since(began) < time.Second+maxHold {
			t.Errorf("the retry was due after %v, want %v after the change", time.Since(began), maxHold)
		}
		s.Succeeded(r)
		q.Forget(r)
		q.Done(r)
		time.Sleep(time.Minute) //nolint:forbidigo // the time of the bubble
		if n := q.Len(); n != 0 {
			t.Errorf("%d requests are due after success", n)
		}
	})
}

// Polls of a Secret wait their time by both clocks.
func TestPollsOfSecretsAreBoundedInRealTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var retries Retries
		q := newRetrying(t, fastest, &retries)
		times := passes(q, time.Minute, func(r reconcile.Request) {
			result, err := retries.ReconcileAfter(r, nil, func() (time.Duration, error) { return SecretWait, nil })
			if err != nil {
				t.Error(err)
			}
			q.AddAfter(r, result.RequeueAfter)
		})
		if n := len(times); n < 5 || n > 7 {
			t.Errorf("%d polls in a minute, at %v, want one each %s", n, times, SecretWait)
		}
		_, _ = retries.ReconcileAfter(request("a"), nil, func() (time.Duration, error) { return 0, nil })
		if n := retries.count(request("a")); n != 0 {
			t.Errorf("count %d after the Secret is corrected, want 0", n)
		}
	})
}

package steps

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// DefaultLimit is how long, in the lab's time, a step waits for its effect.
const DefaultLimit = 24 * time.Hour

// restShare is the share of patience.Limit for which nothing may have changed, in real time, before a
// step gives up. Labs run as fast as there is work: days of their time can go in a second, while a
// controller outside of the lab, which takes real time, has not had its turn.
const restShare = 3

// Rest returns how long nothing has changed, in real time, when a step gives up at its limit.
func Rest() time.Duration { return patience.Limit() / restShare }

// moment is one time of two clocks.
type moment struct{ lab, real time.Time }

// stepLimit decides when a step that waits gives up. It takes the time as an argument.
type stepLimit struct {
	lab  time.Duration // of the lab's time; 0 where there is no lab
	most time.Duration // real time that the step waits for a lab at rest; twice that for one that never rests

	began, changed moment
	sign           string // of what the lab has done
}

func newStepLimit(lab, most time.Duration, now moment) *stepLimit {
	return &stepLimit{lab: lab, most: most, began: now, changed: now}
}

// check returns an error when the step gives up: at the limit in the lab's time or in real time,
// once the lab has rested; a lab that never rests is given up later. sign changes when the lab
// makes progress, and busy says that it has work in flight.
func (l *stepLimit) check(now moment, sign string, busy bool) error {
	if busy || sign != l.sign {
		l.sign, l.changed = sign, now
	}
	inLab, inReal, rested := now.lab.Sub(l.began.lab), now.real.Sub(l.began.real), now.real.Sub(l.changed.real)
	switch {
	case rested < l.most/restShare:
		if inReal >= 2*l.most {
			return fmt.Errorf("%w: the lab never came to rest in %s of real time", patience.ErrLimit, round(inReal))
		}
	case l.lab > 0 && inLab >= l.lab:
		return fmt.Errorf("%w: the step's limit is %s of the lab's time (labctl features --limit), and nothing has changed for %s of real time", patience.ErrLimit, l.lab, round(rested))
	case inReal >= l.most:
		return fmt.Errorf("%w: it is %s of real time (%s multiplies it), and nothing has changed for %s", patience.ErrLimit, l.most, patience.Env, round(rested))
	}
	return nil
}

// waited says how long the step has waited.
func (l *stepLimit) waited(now moment) string {
	if l.lab == 0 {
		return fmt.Sprintf("waited for %s of real time", round(now.real.Sub(l.began.real)))
	}
	return fmt.Sprintf("waited for %s of the lab's time, %s of real time", round(now.lab.Sub(l.began.lab)), round(now.real.Sub(l.began.real)))
}

// round returns a duration as people read it.
func round(d time.Duration) time.Duration {
	if d < time.Second {
		return d.Round(time.Millisecond)
	}
	return d.Round(time.Second)
}

// watchedLab tells a step that waits whether its lab makes progress.
type watchedLab struct {
	lab    *lab.Lab // nil: the scenario has none
	kube   client.Client
	looked time.Time // real time of the last look at the API
	writes writes
}

// writes counts the writes to an API's store, less those of Leases, which are renewed when nothing
// happens.
type writes struct {
	revision uint64 // of the store at the last look
	n        uint64
}

// count adds the writes since the last look. leases has the revision at which each Lease was
// written last.
func (w *writes) count(revision uint64, leases []uint64) {
	renewed := uint64(0)
	for _, at := range leases {
		if at > w.revision && at <= revision {
			renewed++
		}
	}
	if w.revision > 0 && revision > w.revision+renewed {
		w.n += revision - w.revision - renewed
	}
	w.revision = revision
}

// read counts the writes to the API. An API that does not answer makes no progress.
func (w *writes) read(ctx context.Context, c client.Client) {
	var events corev1.EventList
	var all coordinationv1.LeaseList
	if errors.Join(c.List(ctx, &events, client.InNamespace(lab.Namespace), client.Limit(1)), c.List(ctx, &all)) != nil {
		return
	}
	var leases []uint64
	for i := range all.Items {
		if at, err := strconv.ParseUint(all.Items[i].ResourceVersion, 10, 64); err == nil {
			leases = append(leases, at)
		}
	}
	if revision, err := strconv.ParseUint(events.ResourceVersion, 10, 64); err == nil {
		w.count(revision, leases)
	}
}

func (w *watchedLab) now() moment {
	m := moment{real: time.Now()}
	if w.lab != nil {
		m.lab = w.lab.Clock().Now()
	}
	return m
}

// lookPeriod is how often, in real time, a step that waits asks for the revision of the API.
const lookPeriod = 250 * time.Millisecond

// sign returns a text that changes when the lab's API is written or a BMC gets a request, and
// whether work is in flight.
func (w *watchedLab) sign(ctx context.Context, now time.Time) (string, bool) {
	if w.lab == nil {
		return "", false
	}
	if now.Sub(w.looked) >= lookPeriod {
		w.looked = now
		w.writes.read(ctx, w.kube)
	}
	return fmt.Sprint(w.writes.n, " ", w.lab.Rack().Journal().Mark()), w.lab.Clock().Busy()
}

// scenarioKey is the key of a scenario in the context of its steps.
type scenarioKey struct{}

// eventually repeats ok until it returns true or an error, or the step's limit has come.
func eventually(ctx context.Context, what string, ok func(context.Context) (bool, string, error)) error {
	most := patience.Limit()
	if d, set := ctx.Value(patienceKey{}).(time.Duration); set {
		most = d
	}
	w, inLab := &watchedLab{}, time.Duration(0)
	if s, _ := ctx.Value(scenarioKey{}).(*scenario); s != nil && s.lab != nil {
		w.lab, w.kube, inLab = s.lab, s.kube, s.limit()
	}
	limit := newStepLimit(inLab, most, w.now())
	err := patience.Until(ctx, 2*most, func(ctx context.Context) (bool, string, error) {
		done, saw, err := ok(ctx)
		if done || err != nil {
			return done, saw, err
		}
		now := w.now()
		sign, busy := w.sign(ctx, now.real)
		return false, saw, limit.check(now, sign+" "+saw, busy)
	})
	if err != nil {
		return fmt.Errorf("%s: %s: %w", what, limit.waited(w.now()), err)
	}
	return nil
}

// limit returns how long, in the lab's time, the scenario's steps wait.
func (s *scenario) limit() time.Duration {
	if s.labs == nil || s.labs.Limit == 0 {
		return DefaultLimit
	}
	return s.labs.Limit
}

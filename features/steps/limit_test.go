package steps

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestStepGivesUpAtRest looks at a lab several times: the limit of the lab's time ends a step once
// nothing has changed in real time.
func TestStepGivesUpAtRest(t *testing.T) {
	type look struct {
		lab, real time.Duration // since the step began
		sign      string
		busy      bool
	}
	const limit, most = 2 * time.Hour, 3 * time.Minute
	for _, tt := range []struct {
		name  string
		looks []look
		want  string // in the error of the last look; "": none. Those before have none.
	}{
		{name: "before the limit", looks: []look{{lab: time.Hour, real: time.Minute}}},
		{name: "days in a second", looks: []look{{lab: 72 * time.Hour, real: time.Second}}},
		{name: "at rest", looks: []look{{lab: 72 * time.Hour, real: time.Second}, {lab: 72 * time.Hour, real: time.Minute}},
			want: "the step's limit is 2h0m0s of the lab's time (labctl features --limit), and nothing has changed for 1m0s of real time"},
		{name: "a controller is behind", looks: []look{
			{lab: 72 * time.Hour, real: 20 * time.Second, sign: "1"}, {lab: 73 * time.Hour, real: 40 * time.Second, sign: "2"}, {lab: 74 * time.Hour, real: 69 * time.Second, sign: "2"},
		}},
		{name: "work is in flight", looks: []look{{lab: 72 * time.Hour, real: 40 * time.Second, busy: true}, {lab: 72 * time.Hour, real: 69 * time.Second}}},
		{name: "it rests after work", looks: []look{{lab: 72 * time.Hour, real: 40 * time.Second, busy: true}, {lab: 72 * time.Hour, real: 100 * time.Second}}, want: "nothing has changed for 1m0s"},
		{name: "time stands", looks: []look{{real: 2 * time.Minute}, {real: most}}, want: "it is 3m0s of real time (METALAB_PATIENCE multiplies it)"},
		{name: "past the bound at work", looks: []look{{real: 170 * time.Second, busy: true}, {real: 199 * time.Second}}},
		{name: "it never rests", looks: []look{{real: most, sign: "1"}, {real: 2 * most, sign: "2"}}, want: "the lab never came to rest in 6m0s of real time"},
	} {
		began := moment{lab: time.Unix(1e9, 0), real: time.Unix(2e9, 0)}
		l := newStepLimit(limit, most, began)
		var err error
		for _, at := range tt.looks {
			if err != nil {
				t.Errorf("%s: an earlier look gave up: %v", tt.name, err)
			}
			err = l.check(moment{lab: began.lab.Add(at.lab), real: began.real.Add(at.real)}, at.sign, at.busy)
		}
		if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, patience.ErrLimit) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: check() = %v, want %q", tt.name, err, tt.want)
		}
	}
}

// A step that gives up says how long it has waited, and what it saw last.
func TestFailureSaysHowLongItWasWaited(t *testing.T) {
	ctx := WithPatience(t.Context(), time.Millisecond)
	err := eventually(ctx, "the lamp is on", func(context.Context) (bool, string, error) { return false, "off", nil })
	for _, want := range []string{"the lamp is on: waited for ", " of real time: ", "(last: off)"} {
		if !errors.Is(err, patience.ErrLimit) || !strings.Contains(err.Error(), want) {
			t.Errorf("eventually() = %v, want %q", err, want)
		}
	}
	l := newStepLimit(time.Hour, time.Minute, moment{lab: time.Unix(1e9, 0), real: time.Unix(2e9, 0)})
	now := moment{lab: time.Unix(1e9+7384, 0), real: time.Unix(2e9+41, 0)}
	if got, want := l.waited(now), "waited for 2h3m4s of the lab's time, 41s of real time"; got != want {
		t.Errorf("waited() = %q, want %q", got, want)
	}
}

// A Lease that is renewed is no progress: an API renews its own for as long as it runs.
func TestRenewedLeasesAreNoProgress(t *testing.T) {
	var w writes
	for _, tt := range []struct {
		revision uint64
		leases   []uint64
		want     uint64
	}{
		{100, []uint64{7, 90}, 0},    // the first look
		{101, []uint64{7, 101}, 0},   // one is renewed
		{103, []uint64{102, 103}, 0}, // both are
		{104, []uint64{102, 103}, 1}, // something else is written
		{106, []uint64{106, 103}, 2}, // and once more, beside a Lease
		{106, []uint64{106, 107}, 2}, // a Lease is renewed after the revision was read
		{107, []uint64{106, 107}, 2},
	} {
		if w.count(tt.revision, tt.leases); w.n != tt.want {
			t.Errorf("after revision %d and Leases %d: %d writes, want %d", tt.revision, tt.leases, w.n, tt.want)
		}
	}
}

package fault

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func draws(t *testing.T, l Latency, n int) []time.Duration {
	t.Helper()
	d, err := l.parse()
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	out := make([]time.Duration, n)
	for i := range out {
		out[i] = d.draw(r)
	}
	slices.Sort(out)
	return out
}

func TestLatencyDrawsFollowTheDistribution(t *testing.T) {
	const n = 20_000
	if got := draws(t, "250ms", 3); got[0] != 250*time.Millisecond || got[2] != got[0] {
		t.Errorf("250ms = %v", got)
	}
	between := draws(t, "100ms..300ms", n)
	if a, b := between[0], between[n-1]; a < 100*time.Millisecond || a > 101*time.Millisecond || b > 300*time.Millisecond || b < 299*time.Millisecond {
		t.Errorf("100ms..300ms is from %v to %v", a, b)
	}
	near := func(what string, got, want time.Duration) {
		t.Helper()
		if got < want*9/10 || got > want*11/10 {
			t.Errorf("%s = %v, want about %v", what, got, want)
		}
	}
	near("mean of 100ms..300ms", between[n/2], 200*time.Millisecond)
	lognormal := draws(t, "p50=200ms,p99=3s", n)
	near("p50", lognormal[n/2], 200*time.Millisecond)
	near("p99", lognormal[n*99/100], 3*time.Second)
	if got := draws(t, "p50=200ms, p99=3s, max=1s", n)[n-1]; got != time.Second {
		t.Errorf("with max=1s the longest is %v", got)
	}
}

func TestInvalidLatenciesAreRefused(t *testing.T) {
	for _, s := range []Latency{"fast", "-1s", "2s..1s", "1s..", "p50=1s..2s", "p99=1s", "p50=2s,p99=1s", "p50=1s,p50=1s,p99=2s", "p50=1s,p99=2s,max=500ms", "p50=0s,p99=1s", "p50=1s,p99=2s,p5=1s", "9000h"} {
		if _, err := s.parse(); err == nil {
			t.Errorf("%q: want an error", s)
		}
	}
}

func TestLimits(t *testing.T) {
	for s, want := range map[Limit]rate{
		"10/s": {10, time.Second}, "3/1m": {3, time.Minute}, "100 / 5m": {100, 5 * time.Minute}, "1/ms": {1, time.Millisecond}, "": {},
	} {
		if got, err := s.parse(); got != want || err != nil {
			t.Errorf("%q = %v, %v, want %v", s, got, err, want)
		}
	}
	for _, s := range []Limit{"10", "0/s", "-1/s", "x/s", "1/", "1/0s", "5/2ns", "1/d"} {
		if _, err := s.parse(); err == nil {
			t.Errorf("%q: want an error", s)
		}
	}
}

func TestARateLetsBurstsPassAndRefills(t *testing.T) {
	now, tat := time.Unix(0, 0), time.Time{}
	r := rate{3, time.Minute}
	for i, want := range []time.Duration{0, 0, 0, 20 * time.Second, 20 * time.Second} {
		if got := r.take(&tat, now); got != want {
			t.Errorf("request %d: wait %v, want %v", i, got, want)
		}
	}
	now = now.Add(20 * time.Second)
	if a, b := r.take(&tat, now), r.take(&tat, now); a != 0 || b != 20*time.Second {
		t.Errorf("after 20 s: waits %v, %v, want 0, 20s", a, b)
	}
	now = now.Add(time.Hour)
	for i, want := range []time.Duration{0, 0, 0, 20 * time.Second} {
		if got := r.take(&tat, now); got != want {
			t.Errorf("after an hour, request %d: wait %v, want %v", i, got, want)
		}
	}
}

func TestCuts(t *testing.T) {
	for s, want := range map[Cut]string{"0": "", "3": "abc", "50%": "abcde", "0%": "", "1000": "abcdefghij"} {
		c, err := s.parse()
		if got := string(c.of([]byte("abcdefghij"))); got != want || err != nil {
			t.Errorf("%s of ten = %q, %v, want %q", s, got, err, want)
		}
	}
	for _, s := range []Cut{"-1", "half", "100%", "%"} {
		if _, err := s.parse(); err == nil {
			t.Errorf("%q: want an error", s)
		}
	}
}

package kube

import "testing"

// The collector keeps little memory after some quiet periods, and collects less from the first busy
// one on.
func TestCollectorFollowsTheWork(t *testing.T) {
	const mib = 1 << 20
	c := collector{before: 7 * mib}
	at := uint64(7 * mib)
	for i, step := range []struct {
		allocated uint64 // in the period
		percent   int    // 0: unchanged
	}{
		{200 * mib, 0}, {mib, 0}, {40 * mib, 0}, {mib, 0}, {0, 0}, {quietBytes, quietPercent}, {mib, 0}, {0, 0}, {mib, 0},
		{quietBytes + 1, busyPercent}, {100 * mib, 0}, {0, 0}, {0, 0}, {33 * mib, 0}, {0, 0}, {0, 0}, {0, quietPercent},
	} {
		at += step.allocated
		percent, changed := c.next(at)
		if changed != (step.percent != 0) || changed && percent != step.percent {
			t.Errorf("period %d of %d MiB: %d, %t, want %d", i, step.allocated/mib, percent, changed, step.percent)
		}
	}
}

package disk

import (
	"testing"
	"time"
)

// The test makes the checks itself; the timer never fires.
func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		look func(w *stallWatch) // between two checks
		want bool                // cancelled
	}{
		{"silence", func(w *stallWatch) { w.wait() }, true},
		{"drop by drop", func(w *stallWatch) { w.wait(); w.received(1); w.wait() }, true},
		{"enough", func(w *stallWatch) { w.wait(); w.received(stallBytes / 4); w.wait() }, false},
		{"the disk is slow", func(w *stallWatch) { w.wait(); w.received(1) }, false},
	} {
		cancelled := false
		w := startStallWatch(1000*time.Hour, func() { cancelled = true })
		for range 10 * watchTicks {
			tt.look(w)
			w.look()
		}
		if fired := w.stop(); fired != tt.want || cancelled != tt.want {
			t.Errorf("%s: stalled %t, cancelled %t; want %t", tt.name, fired, cancelled, tt.want)
		}
	}
}

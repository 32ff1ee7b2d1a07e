package disk

import (
	"testing"
	"time"
)

// TestWatch takes the looks itself; the timer never comes to it.
func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name string
		look func(w *watch) // between two looks
		want bool           // cancelled
	}{
		{"silence", func(w *watch) { w.wait() }, true},
		{"drop by drop", func(w *watch) { w.wait(); w.brought(1); w.wait() }, true},
		{"enough", func(w *watch) { w.wait(); w.brought(stallBytes / 4); w.wait() }, false},
		{"the disk is slow", func(w *watch) { w.wait(); w.brought(1) }, false},
	} {
		cancelled := false
		w := startWatch(1000*time.Hour, func() { cancelled = true })
		for range 10 * watchTicks {
			tt.look(w)
			w.look()
		}
		if fired := w.stop(); fired != tt.want || cancelled != tt.want {
			t.Errorf("%s: stalled %t, cancelled %t; want %t", tt.name, fired, cancelled, tt.want)
		}
	}
}

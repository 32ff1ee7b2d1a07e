package disk

import (
	"context"
	"sync"
	"time"
)

// stallBytes is the number of bytes that must arrive within each stall time, or a
// server that sends a byte now and then would never be given up.
const stallBytes = 16 << 10

// watchTicks is the number of checks in a stall time.
const watchTicks = 8

// stallWatch cancels a request that delivers too little. It counts the checks at
// which the download waits for the server: the time that the disk takes is not the
// server's fault.
type stallWatch struct {
	mu      sync.Mutex
	timer   *time.Timer
	every   time.Duration
	cancel  context.CancelFunc
	waiting bool
	looks   int   // consecutive checks at which it waited
	got     int64 // bytes since looks began
	fired   bool
	stopped bool
}

func startStallWatch(stall time.Duration, cancel context.CancelFunc) *stallWatch {
	w := &stallWatch{every: max(stall/watchTicks, 1), cancel: cancel}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.timer = time.AfterFunc(w.every, w.look)
	return w
}

func (w *stallWatch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	if w.waiting {
		if w.looks++; w.looks >= watchTicks {
			w.fired = true
			w.cancel()
			return
		}
	}
	w.timer.Reset(w.every)
}

// wait starts a wait for the server, until received is called.
func (w *stallWatch) wait() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = true
}

// received records n bytes from the server.
func (w *stallWatch) received(n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiting = false
	if w.got += n; w.got >= stallBytes {
		w.got, w.looks = 0, 0
	}
}

// stop ends the watch. It reports whether it had cancelled the request.
func (w *stallWatch) stop() (fired bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
	return w.fired
}

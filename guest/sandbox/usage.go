package sandbox

import (
	"sync"
	"time"
)

// usage counts the processor time of a system's sessions.
type usage struct {
	mu      sync.Mutex
	ended   time.Duration // of the sessions that have ended
	running *session      // nil: none
	told    time.Duration
}

func (u *usage) begin(r *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.running = r
}

// finish counts a session whose processes have ended.
func (u *usage) finish(r *session) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running != r {
		return
	}
	u.ended += r.cpuTime()
	u.running = nil
}

// CPUTime returns the processor time that the processes of this boot have used, those that run
// included. It never decreases. Without control groups the time of processes for which their
// parents do not wait is not in it.
func (s *System) CPUTime() time.Duration {
	u := &s.usage
	u.mu.Lock()
	defer u.mu.Unlock()
	sum := u.ended
	if u.running != nil {
		sum += u.running.cpuTime()
	}
	u.told = max(u.told, sum)
	return u.told
}

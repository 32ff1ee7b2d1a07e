package rack

import (
	"container/heap"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/emulator/clock"
)

// schedule is a heap of hosts by deadline, with one timer for the first of them.
type schedule struct {
	now   func() time.Time                             // lab time or client time, in which the deadlines are
	after func(d time.Duration, f func()) *clock.Timer // makes a timer in that time
	lazy  bool                                         // a clock that jumps does not jump to these deadlines

	mu    sync.Mutex
	heap  clock.Due[*deadline]
	tick  func() // nil while the schedule is stopped
	timer *clock.Timer
	armed time.Time // when the timer fires; zero when it is stopped
}

// deadline is the entry of one host in a schedule.
type deadline struct {
	host *Host
	at   time.Time
	pos  int // in the heap; -1 when it is not in it
}

// Before implements clock.Dated. Hosts with the same deadline are ordered by index.
func (d *deadline) Before(o *deadline) bool {
	if !d.at.Equal(o.at) {
		return d.at.Before(o.at)
	}
	return d.host.index < o.host.index
}

// Place implements clock.Dated.
func (d *deadline) Place() *int { return &d.pos }

// set sets a host's deadline, or removes it when ok is false.
func (s *schedule) set(d *deadline, at time.Time, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := s.first()
	switch {
	case !ok && d.pos >= 0:
		heap.Remove(&s.heap, d.pos)
	case ok && d.pos >= 0:
		if d.at.Equal(at) {
			return
		}
		d.at = at
		heap.Fix(&s.heap, d.pos)
	case ok:
		d.at = at
		heap.Push(&s.heap, d)
	}
	now := s.first()
	if s.lazy && !s.armed.IsZero() && now.After(s.armed) {
		return // each request moves the end of its session: a tick too early is cheaper than a timer per request
	}
	if !now.Equal(first) {
		s.arm()
	}
}

// first returns the first deadline, or zero when there is none.
func (s *schedule) first() time.Time {
	if len(s.heap) == 0 {
		return time.Time{}
	}
	return s.heap[0].at
}

// arm sets the timer to the first deadline. The caller holds s.mu.
func (s *schedule) arm() {
	s.armed = time.Time{}
	switch {
	case s.tick == nil:
	case len(s.heap) == 0:
		if s.timer != nil {
			s.timer.Stop()
		}
	default:
		s.armed = s.heap[0].at
		d := s.heap[0].at.Sub(s.now())
		if s.timer != nil {
			s.timer.Reset(d)
		} else {
			s.timer = s.after(d, s.tick)
		}
		s.timer.Stand(len(s.heap))
	}
}

// start calls tick whenever something is due, until stop.
func (s *schedule) start(tick func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick = tick
	s.arm()
}

func (s *schedule) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick, s.armed = nil, time.Time{}
	if s.timer != nil {
		s.timer.Stop()
	}
}

// due removes and returns the hosts whose deadline has passed. Each must be set
// again.
func (s *schedule) due(now time.Time) []*Host {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hosts []*Host
	for len(s.heap) > 0 && !s.heap[0].at.After(now) {
		hosts = append(hosts, heap.Pop(&s.heap).(*deadline).host)
	}
	s.arm()
	return hosts
}

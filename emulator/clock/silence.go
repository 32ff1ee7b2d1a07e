package clock

import "time"

// Quiet is how long a Jumping clock watches, in real time, for activity before it
// jumps: long enough for a message on loopback to be received.
const Quiet = 2 * time.Millisecond

// Longest bounds the silence that a jump needs where the process is starved. A lab
// on a machine without an idle moment therefore still jumps, several times a second.
const Longest = 64 * Quiet

// silence is what a Jumping clock has observed of the time since the last activity.
//
// A process that gets no processor is silent, too: neither the clock nor those that
// would send or receive have run. Time that passes so proves nothing, and the clock
// sees it only by its own lateness, when it wakes later than it asked to. It then
// watches anew, for at least as long as it was late: a receiver that waits for the
// processor as long as the clock did has its turn within. The clock trusts a silence
// that is at least as long as its lateness at the end; a lateness below Quiet, which
// every idle machine has, therefore costs nothing. A machine that starved one moment
// ago is likely to do so again, so that the longer silence stays and halves with each
// jump that was on time.
type silence struct {
	since time.Time     // real time at which the clock first looked after the last activity
	need  time.Duration // silence that is needed from since on; below Quiet it is Quiet
}

// left returns how much longer the clock must watch at now; 0: it may jump. The last
// activity was at active, and the clock may not jump before earliest.
func (s *silence) left(active, earliest, now time.Time) time.Duration {
	if s.since.Before(active) {
		s.since = now // what passed before the clock looked was not observed
	}
	need := max(s.need, Quiet)
	due := s.since.Add(need)
	if due.Before(earliest) {
		due = earliest
	}
	if now.Before(due) {
		return due.Sub(now)
	}
	switch late := now.Sub(due); {
	case late <= need:
		s.need /= 2
	case need < Longest:
		s.since, s.need = now, min(max(late, 2*need), Longest)
		return s.need
	}
	return 0
}

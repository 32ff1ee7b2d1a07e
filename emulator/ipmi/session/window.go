package session

// Reach of a window: how far a number may be ahead of the highest that was
// accepted, and behind it.
const (
	ahead     = 15 // §6.12.14
	behind    = 16
	reachV15  = 8 // §6.12.10, §6.12.11
	windowLen = 32
)

// window tracks which sequence numbers have been accepted. Numbers wrap around.
type window struct {
	high  uint32
	seen  uint32 // bit n: high-n was accepted
	begun bool
}

// windowFrom makes a window in which n is the next number, and none before it is
// accepted.
func windowFrom(n uint32) window { return window{high: n - 1, seen: ^uint32(0), begun: true} }

// takes says whether a number may be accepted: within reach, and not seen.
// Before the first packet any number may: clients count from where they like,
// and a code has proved that it is of this session.
func (w *window) takes(n uint32, ahead, behind int32) bool {
	if n == 0 {
		return false
	}
	if !w.begun {
		return true
	}
	switch d := int32(n - w.high); {
	case d > 0:
		return d <= ahead
	case d < -behind || d <= -windowLen:
		return false
	default:
		return w.seen&(1<<-d) == 0
	}
}

// accept notes a number that takes was true for.
func (w *window) accept(n uint32) {
	d := int32(n - w.high)
	switch {
	case !w.begun:
		*w = window{high: n, seen: 1, begun: true}
	case d > 0:
		w.high, w.seen = n, w.seen<<d|1
	default:
		w.seen |= 1 << -d
	}
}

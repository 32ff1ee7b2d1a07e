package session

// Reach of the window: how far a sequence number may be ahead of the highest
// accepted one, and behind it.
const (
	ahead     = 15 // §6.12.14
	behind    = 16
	windowV15 = 8 // §6.12.10, §6.12.11
	windowLen = 32
)

// window tracks which sequence numbers were accepted. Numbers wrap around.
type window struct {
	high  uint32
	seen  uint32 // bit n: high-n was accepted
	begun bool
}

// newWindow returns a window in which n is the next number and no lower one is
// accepted.
func newWindow(n uint32) window { return window{high: n - 1, seen: ^uint32(0), begun: true} }

// accepts reports whether a number is within reach and was not accepted before.
// Before the first packet any number is: clients start where they like, and the
// AuthCode has proved that the packet belongs to the session.
func (w *window) accepts(n uint32, ahead, behind int32) bool {
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

// accept records a number for which accepts returned true.
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

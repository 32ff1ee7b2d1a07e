package ipmi

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// injectDatagramFault does to a datagram what Config.Astray says goes wrong on its way, and
// calls deliver for what arrives, in its order.
func (s *Service) injectDatagramFault(st *bmcState, way string, data []byte, deliver func([]byte)) {
	if s.c.DatagramFault == nil {
		deliver(data)
		return
	}
	d := s.c.DatagramFault(st.host, way)
	held := st.takeDelayed(way)
	switch d.Wire {
	case fault.Lost:
	case fault.Doubled:
		twin := slices.Clone(data)
		deliver(data)
		deliver(twin)
	case fault.Swapped:
		st.delay(way, slices.Clone(data), deliver)
	case fault.Spoiled:
		spoiled := slices.Clone(data)
		if n := len(spoiled); n > 0 { // within what integrity and checksums cover
			spoiled[n-n/4-1] ^= 0x10
		}
		deliver(spoiled)
	case fault.Late:
		late := slices.Clone(data)
		s.c.Clock.AfterFunc(d.Delay, func() { deliver(late) })
	default:
		deliver(data)
	}
	if held != nil {
		held()
	}
}

// takeDelayed is the delivery of the datagram that waits for another one to overtake
// it; nil when none does.
func (st *bmcState) takeDelayed(way string) func() {
	st.delayedMu.Lock()
	defer st.delayedMu.Unlock()
	held := st.delayed[way]
	delete(st.delayed, way)
	return held
}

// delay lets a datagram wait until the next one of that way has gone.
func (st *bmcState) delay(way string, data []byte, deliver func([]byte)) {
	st.delayedMu.Lock()
	defer st.delayedMu.Unlock()
	if st.delayed == nil {
		st.delayed = map[string]func(){}
	}
	st.delayed[way] = func() { deliver(data) }
}

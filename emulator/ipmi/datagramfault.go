package ipmi

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// injectDatagramFault applies the fault that Config.DatagramFault decides on
// for a datagram, and calls deliver for each datagram that arrives, in order of
// arrival.
func (s *Service) injectDatagramFault(st *bmcState, way string, data []byte, deliver func([]byte)) {
	if s.c.DatagramFault == nil {
		deliver(data)
		return
	}
	d := s.c.DatagramFault(st.Host, way)
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
		if n := len(spoiled); n > 0 { // only within the bytes that integrity codes and checksums cover
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

// takeDelayed returns the delivery of the datagram that waits to be overtaken
// in that direction; nil when none waits.
func (st *bmcState) takeDelayed(way string) func() {
	st.delayedMu.Lock()
	defer st.delayedMu.Unlock()
	held := st.delayed[way]
	delete(st.delayed, way)
	return held
}

// delay holds a datagram back until the next one in that direction is
// delivered.
func (st *bmcState) delay(way string, data []byte, deliver func([]byte)) {
	st.delayedMu.Lock()
	defer st.delayedMu.Unlock()
	if st.delayed == nil {
		st.delayed = map[string]func(){}
	}
	st.delayed[way] = func() { deliver(data) }
}

package ipmi

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/fault"
)

// astray does to a datagram what Config.Astray says goes wrong on its way, and
// calls deliver for what arrives, in its order.
func (s *Service) astray(sd *side, way string, packet []byte, deliver func([]byte)) {
	if s.c.Astray == nil {
		deliver(packet)
		return
	}
	d := s.c.Astray(sd.host, way)
	held := sd.take(way)
	switch d.Wire {
	case fault.Lost:
	case fault.Doubled:
		twin := slices.Clone(packet)
		deliver(packet)
		deliver(twin)
	case fault.Swapped:
		sd.hold(way, slices.Clone(packet), deliver)
	case fault.Spoiled:
		spoiled := slices.Clone(packet)
		if n := len(spoiled); n > 0 { // within what integrity and checksums cover
			spoiled[n-n/4-1] ^= 0x10
		}
		deliver(spoiled)
	case fault.Late:
		late := slices.Clone(packet)
		s.c.Clock.AfterFunc(d.Delay, func() { deliver(late) })
	default:
		deliver(packet)
	}
	if held != nil {
		held()
	}
}

// take is the delivery of the datagram that waits for another one to overtake
// it; nil when none does.
func (sd *side) take(way string) func() {
	sd.holding.Lock()
	defer sd.holding.Unlock()
	held := sd.held[way]
	delete(sd.held, way)
	return held
}

// hold lets a datagram wait until the next one of that way has gone.
func (sd *side) hold(way string, packet []byte, deliver func([]byte)) {
	sd.holding.Lock()
	defer sd.holding.Unlock()
	if sd.held == nil {
		sd.held = map[string]func(){}
	}
	sd.held[way] = func() { deliver(packet) }
}

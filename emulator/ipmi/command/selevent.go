package command

import (
	"strconv"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// Contents of event data bytes 2 and 3 of a threshold event (table 29-6).
const (
	hasReading   = 0x40
	hasThreshold = 0x10
)

// selEvent returns a log note as a SEL event.
func selEvent(v *machine.View, n *event.Note) sel.Event {
	e := sel.Of(*n)
	s := repositoryOf(v.Profile).sensorOf(e.Sensor, n.Subject)
	if s == nil {
		return e
	}
	e.Number = s.Number
	if s.numeric == nil || e.Type != sel.Threshold {
		return e
	}
	// Args[1] is the reading. The last argument is the threshold that was
	// crossed or, after the name of its level, left.
	for i, at := range []int{1, len(n.Args) - 1} {
		if at < 1 || at == 1 && i > 0 || at >= len(n.Args) {
			continue
		}
		if y, err := strconv.ParseFloat(n.Args[at], 64); err == nil {
			e.Data[0] |= []byte{hasReading, hasThreshold}[i]
			e.Data[1+i] = s.factors.Raw(y)
		}
	}
	return e
}

// eventSubject returns the part that a SEL event is about, when its sensor is
// one of this server.
func eventSubject(v *machine.View, e sel.Event) (event.Subject, bool) {
	s := repositoryOf(v.Profile).byNumber[e.Number]
	if s == nil || e.Generator != sel.BMC || s.Type != byte(e.Sensor) {
		return event.Subject{}, false
	}
	return s.subject, true
}

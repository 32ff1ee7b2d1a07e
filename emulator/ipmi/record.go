package ipmi

import (
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// eventOf is how the log tells a note.
func eventOf(v *machine.View, n *event.Note) sel.Event {
	e := sel.Of(*n)
	e.Number = sensorNumber(v, n.Subject, e.Sensor)
	return e
}

func sensorNumber(v *machine.View, of event.Subject, kind sel.Sensor) byte { return 0 }

// subjectOf is the part that a record is about, if its sensor is one of ours.
func subjectOf(v *machine.View, e sel.Event) (event.Subject, bool) { return event.Subject{}, false }

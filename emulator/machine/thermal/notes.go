package thermal

import (
	"strconv"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Overheated reports that a server powers off because of its temperature.
type Overheated struct{ At time.Time }

// Time implements event.Event.
func (e Overheated) Time() time.Time { return e.At }

// Fed reports that the last working power supply has failed, or that one works
// again.
type Fed struct {
	At time.Time
	On bool
}

// Time implements event.Event.
func (e Fed) Time() time.Time { return e.At }

// Units are the units of readings, for display and logs.
var Units = map[Kind]string{Temperature: "Cel", Speed: "RPM", Voltage: "V", Power: "W", Energy: "kW.h"}

// Text formats a reading with the sensor's resolution.
func (s *Sensor) Text(reading float64) string {
	return strconv.FormatFloat(s.rounded(reading), 'f', -1, 64)
}

// crossed returns the events of a change of level. v is the view before it.
func (t *Thermal) crossed(at time.Time, s *Sensor, from, to Level, v View) []event.Event {
	if s.Kind == Speed {
		return t.fanCrossed(at, s, to, v)
	}
	worse, up := to.Bad() > from.Bad(), rank(to) > rank(from)
	kinds := map[bool]event.Kind{true: event.SensorHigh, false: event.SensorLow}
	n := event.Note{At: at, Kind: kinds[up], Subject: event.Subject{Part: event.Sensor, ID: s.ID}}
	reading := s.Text(v.raw(t.model.places[s.ID], at))
	n.Args = []string{s.Name, reading, Units[s.Kind]}
	switch {
	case !worse:
		n.Kind = event.SensorBetter
		if to == Normal {
			n.Kind = event.SensorNormal
		}
		n.Args = append(n.Args, string(from))
		if at := v.limits(s).at(from); at != nil { // otherwise it was removed
			n.Args = append(n.Args, s.Text(*at))
		}
	default:
		n.Args = append(n.Args, s.Text(*v.limits(s).at(to)))
		if to.Bad() == Critical.Bad() {
			n.Kind = map[bool]event.Kind{true: event.SensorTooHigh, false: event.SensorTooLow}[up]
		}
		if to == Fatal {
			n.Kind = event.SensorFatal
		}
	}
	evs := []event.Event{n}
	if to == Fatal && worse {
		evs = append(evs, Overheated{At: at})
	}
	return evs
}

// Redundancy is the redundancy state of fans or power supplies.
type Redundancy string

// The redundancies.
const (
	Redundant    Redundancy = "redundant"
	Bare         Redundancy = "bare"         // all working ones are needed
	Insufficient Redundancy = "insufficient" // fewer work than are needed
)

func redundancy(work, needed int) Redundancy {
	switch {
	case work > needed:
		return Redundant
	case work == needed:
		return Bare
	}
	return Insufficient
}

// FanFailed reports whether a fan failure was detected.
func (v View) FanFailed(n int) bool { return v.Level(FanID(n)) != Normal }

// FanRedundancy returns the fans' redundancy.
func (v View) FanRedundancy() Redundancy {
	work := v.Model.Fans.Count
	for n := range v.Model.Fans.Count {
		if v.FanFailed(n) {
			work--
		}
	}
	return redundancy(work, v.Model.Fans.Needed)
}

// SupplyRedundancy returns the power supplies' redundancy.
func (v View) SupplyRedundancy() Redundancy {
	work := 0
	for n := range v.Model.Supplies.Count {
		if v.SupplyFault(n) == NoFault {
			work++
		}
	}
	return redundancy(work, v.Model.Supplies.Needed)
}

// groups maps redundancy states to kinds of events.
type groups map[Redundancy]event.Kind

var (
	fanGroups    = groups{Redundant: event.FansRedundant, Bare: event.FansNotRedundant, Insufficient: event.FansInsufficient}
	supplyGroups = groups{Redundant: event.SuppliesRedundant, Bare: event.SuppliesNotRedundant, Insufficient: event.SuppliesInsufficient}
)

// note returns the event of a change of redundancy.
func (g groups) note(at time.Time, was, is Redundancy) []event.Event {
	if was == is {
		return nil
	}
	return []event.Event{event.Note{At: at, Kind: g[is], Subject: event.Subject{Part: event.Chassis}}}
}

// fanCrossed returns the events of a fan that stops or starts. v is the view
// before it.
func (t *Thermal) fanCrossed(at time.Time, s *Sensor, to Level, v View) []event.Event {
	kind := event.FanFailed
	if to == Normal {
		kind = event.FanRestored
	}
	evs := []event.Event{event.Note{At: at, Kind: kind, Subject: event.Subject{Part: event.Fan, ID: s.ID}, Args: []string{s.ID}}}
	return append(evs, fanGroups.note(at, v.FanRedundancy(), t.View().FanRedundancy())...)
}

// supplyNotes maps power supply faults to the events of their beginning and
// end.
var supplyNotes = map[Fault]struct{ begins, ends event.Kind }{
	Failed:  {event.SupplyFailed, event.SupplyRestored},
	NoInput: {event.SupplyInputLost, event.SupplyInputBack},
	Absent:  {event.SupplyRemoved, event.SupplyInserted},
}

// immediateEvents returns the events of a command's immediate changes. was is the view
// before it.
func (t *Thermal) immediateEvents(at time.Time, was View) []event.Event {
	var evs []event.Event
	is := t.View()
	for n := range t.model.Supplies.Count {
		from, to := was.SupplyFault(n), is.SupplyFault(n)
		if from == to {
			continue
		}
		of := event.Note{At: at, Subject: event.Subject{Part: event.Supply, ID: SupplyID(n)}, Args: []string{SupplyID(n)}}
		if from != NoFault {
			of.Kind = supplyNotes[from].ends
			evs = append(evs, of)
		}
		if to != NoFault {
			of.Kind = supplyNotes[to].begins
			evs = append(evs, of)
		}
	}
	if t.model.Supplies.Count == 0 {
		return evs
	}
	evs = append(evs, supplyGroups.note(at, was.SupplyRedundancy(), is.SupplyRedundancy())...)
	if fed := is.Fed(); fed != was.Fed() {
		evs = append(evs, Fed{At: at, On: fed})
	}
	return evs
}

// Fed reports whether the server has power while AC is present.
func (v View) Fed() bool { return v.Model.Supplies.Count == 0 || len(v.working()) > 0 }

// working returns the indexes of the power supplies that work while AC is
// present.
func (v View) working() []int {
	var out []int
	for n := range v.Model.Supplies.Count {
		if v.SupplyFault(n) == NoFault {
			out = append(out, n)
		}
	}
	return out
}

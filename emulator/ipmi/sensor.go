package ipmi

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/ipmi/sdr"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// sensorCommands are about single sensors (§35). Those with states make their
// events whatever a client wants, and are as they are: to be set they are not.
var sensorCommands = []command{
	{fn: wire.SensorEvent, cmd: 0x23, name: "Get Sensor Reading Factors", needs: wire.User, least: 2, most: 2, run: readingFactors},
	{fn: wire.SensorEvent, cmd: 0x24, name: "Set Sensor Hysteresis", needs: wire.Operator, least: 4, most: 4, acts: true, run: setHysteresis},
	{fn: wire.SensorEvent, cmd: 0x25, name: "Get Sensor Hysteresis", needs: wire.User, least: 2, most: 2, run: hysteresis},
	{fn: wire.SensorEvent, cmd: 0x26, name: "Set Sensor Threshold", needs: wire.Operator, least: 8, most: 8, acts: true, run: setThresholds},
	{fn: wire.SensorEvent, cmd: 0x27, name: "Get Sensor Threshold", needs: wire.User, least: 1, most: 1, run: thresholds},
	{fn: wire.SensorEvent, cmd: 0x28, name: "Set Sensor Event Enable", needs: wire.Operator, least: 2, most: 6, acts: true, run: setEventEnable},
	{fn: wire.SensorEvent, cmd: 0x29, name: "Get Sensor Event Enable", needs: wire.User, least: 1, most: 1, run: eventEnable},
	{fn: wire.SensorEvent, cmd: 0x2a, name: "Re-arm Sensor Events", needs: wire.Operator, least: 2, most: 6, acts: true, run: rearm},
	{fn: wire.SensorEvent, cmd: 0x2b, name: "Get Sensor Event Status", needs: wire.User, least: 1, most: 1, run: eventStatus},
	{fn: wire.SensorEvent, cmd: 0x2d, name: "Get Sensor Reading", needs: wire.User, least: 1, most: 1, run: sensorReading},
	{fn: wire.SensorEvent, cmd: 0x2e, name: "Set Sensor Type", needs: wire.Operator, least: 3, most: 3, run: setSensorType},
	{fn: wire.SensorEvent, cmd: 0x2f, name: "Get Sensor Type", needs: wire.User, least: 1, most: 1, run: getSensorType},
	{fn: wire.SensorEvent, cmd: 0x30, name: "Set Sensor Reading And Event Status", needs: wire.Operator, least: 3, most: 10, run: setReading},
}

// watchLevels are those of the thresholds in the order of IPMI's bits. There is no
// low one beyond critical.
var watchLevels = [6]thermal.Level{sdr.LowCaution: thermal.LowCaution, sdr.LowCritical: thermal.LowCritical, sdr.Caution: thermal.Caution, sdr.Critical: thermal.Critical, sdr.Fatal: thermal.Fatal}

// limit is a threshold by its bit; nil for one that no sensor has.
func limit(l *thermal.Limits, i int) **float64 {
	return [6]**float64{sdr.LowCaution: &l.LowCaution, sdr.LowCritical: &l.LowCritical, sdr.Caution: &l.Caution, sdr.Critical: &l.Critical, sdr.Fatal: &l.Fatal}[i]
}

// thresholdsOf are the bits of the thresholds that there are.
func thresholdsOf(l *thermal.Limits) byte {
	var has byte
	for i := range watchLevels {
		if at := limit(l, i); at != nil && *at != nil {
			has |= 1 << i
		}
	}
	return has
}

// thresholds are those of a sensor as bytes.
func (s *sensor) thresholds(l *thermal.Limits) sdr.Thresholds {
	t := sdr.Thresholds{Has: s.has}
	for i := range t.At {
		if s.has&(1<<i) != 0 {
			t.At[i] = s.factors.Raw(**limit(l, i))
		}
	}
	return t
}

// slack is the hysteresis of a sensor as bytes. The model says by how much a
// reading is better when it is out, IPMI by how much it may be better and is not
// (§35.13.3).
func (s *sensor) slack(l *thermal.Limits) (high, low byte) {
	if s.has == 0 {
		return 0, 0
	}
	counts := func(difference float64) byte { return max(1, s.factors.Counts(difference)) - 1 }
	high = counts(l.Hysteresis)
	low = high
	if l.LowHysteresis != nil {
		low = counts(*l.LowHysteresis)
	}
	return high, low
}

// asked finds the sensor that is asked about, which must have something to say.
func (x *exchange) asked() (*sensor, error) {
	s, err := x.sensor(x.data[0])
	if err == nil && s.silent() {
		return nil, Illegal
	}
	return s, err
}

// numeric finds the sensor that is asked about, which must read a number.
func (x *exchange) numeric() (*sensor, error) {
	s, err := x.sensor(x.data[0])
	if err == nil && s.numeric == nil {
		return nil, Illegal
	}
	return s, err
}

// watched finds one that has thresholds as well.
func (x *exchange) watched() (*sensor, error) {
	s, err := x.numeric()
	if err == nil && s.has == 0 {
		return nil, Illegal
	}
	return s, err
}

func (x *exchange) limits(s *sensor) *thermal.Limits {
	return x.machine().Thermal.Thresholds(s.numeric.ID)
}

// adjust sets how a sensor is watched.
func (x *exchange) adjust(set thermal.Setting) error {
	return x.do(machine.Thermal{Command: thermal.Adjust{Setting: set}})
}

// readingFactors is §35.5. The factors are the same for every byte.
func readingFactors(x *exchange) error {
	s, err := x.numeric()
	if err != nil {
		return err
	}
	x.put(x.data[1])
	x.put(s.factors.Answer()...)
	return nil
}

// setHysteresis is §35.6. What is as it was stays as exact as it was.
func setHysteresis(x *exchange) error {
	s, err := x.watched()
	if err != nil {
		return err
	}
	set := x.machine().Thermal.Setting(s.numeric.ID)
	l := *x.limits(s)
	high, low := s.slack(&l)
	was := l.Hysteresis
	if x.data[2] != high {
		l.Hysteresis = s.factors.Difference(x.data[2]) + s.factors.Difference(1)
	}
	switch {
	case x.data[3] != low:
		own := s.factors.Difference(x.data[3]) + s.factors.Difference(1)
		l.LowHysteresis = &own
	case l.LowHysteresis == nil:
		l.LowHysteresis = &was
	}
	if *l.LowHysteresis == l.Hysteresis {
		l.LowHysteresis = nil
	}
	set.Limits = &l
	return x.adjust(set)
}

// hysteresis is §35.7.
func hysteresis(x *exchange) error {
	s, err := x.watched()
	if err != nil {
		return err
	}
	high, low := s.slack(x.limits(s))
	x.put(high, low)
	return nil
}

// setThresholds is §35.8.
func setThresholds(x *exchange) error {
	s, err := x.watched()
	if err != nil {
		return err
	}
	if x.data[1]&^s.has != 0 {
		return BadField // what it has not, or is reserved
	}
	set := x.machine().Thermal.Setting(s.numeric.ID)
	l := *x.limits(s)
	is := s.thresholds(&l)
	for i := range is.At {
		if raw := x.data[2+i]; x.data[1]&(1<<i) != 0 && raw != is.At[i] {
			at := s.factors.Value(raw)
			*limit(&l, i) = &at
		}
	}
	set.Limits = &l
	return x.adjust(set)
}

// thresholds is §35.9.
func thresholds(x *exchange) error {
	s, err := x.numeric()
	if err != nil {
		return err
	}
	t := s.thresholds(x.limits(s))
	x.put(t.Has)
	x.put(t.At[:]...)
	return nil
}

// The flags of a sensor (§35.14).
const (
	eventsOn      = 1 << 7
	scanningOn    = 1 << 6
	unavailable   = 1 << 5
	reservedState = 0xc0 // of the comparison with thresholds, returned as 1
)

// flags are whether a sensor makes events and is scanned, and whether it has
// something to say.
func (x *exchange) flags(s *sensor, reads bool) byte {
	out := byte(eventsOn | scanningOn)
	if s.numeric != nil {
		set := x.machine().Thermal.Setting(s.numeric.ID)
		if set.Silent {
			out &^= eventsOn
		}
		if set.Off {
			out &^= scanningOn
		}
	}
	if s.numeric != nil && x.host.Dialect().IPMI.Faults.ScanningDisabled {
		out &^= scanningOn
	}
	if !reads {
		out |= unavailable
	}
	return out
}

// mutable is a set of watchLevels that a client switches by the bits of their events.
type mutable struct {
	muted []thermal.Level
	has   byte
}

// bits are the events that are not muted.
func (m *mutable) bits() uint16 {
	var out uint16
	for i, l := range watchLevels {
		if m.has&(1<<i) != 0 && !slices.Contains(m.muted, l) {
			out |= sdr.Event(i)
		}
	}
	return out
}

// set puts events in place.
func (m *mutable) set(events uint16) {
	m.muted = nil
	for i, l := range watchLevels {
		if m.has&(1<<i) != 0 && events&sdr.Event(i) == 0 {
			m.muted = append(m.muted, l)
		}
	}
}

// setEventEnable is §35.10.
func setEventEnable(x *exchange) error {
	s, err := x.numeric()
	if err != nil {
		return err
	}
	how := x.data[1]
	if how&0x0f != 0 {
		return BadField
	}
	set := x.machine().Thermal.Setting(s.numeric.ID)
	set.Silent, set.Off = how&eventsOn == 0, how&scanningOn == 0
	selected := append(slices.Clone(x.data[2:]), 0, 0, 0, 0) // what is not sent is 0
	for i, muted := range []*[]thermal.Level{&set.Reached, &set.Left} {
		m := mutable{*muted, s.has}
		switch these := le16(selected[2*i:]); how >> 4 & 3 {
		case 1:
			m.set(m.bits() | these)
		case 2:
			m.set(m.bits() &^ these)
		case 3:
			return BadField
		}
		*muted = m.muted
	}
	return x.adjust(set)
}

// eventEnable is §35.11.
func eventEnable(x *exchange) error {
	s, err := x.asked()
	if err != nil {
		return err
	}
	x.put(x.flags(s, true))
	if s.numeric == nil {
		x.put16(s.asserts)
		x.put16(s.deasserts)
		return nil
	}
	set := x.machine().Thermal.Setting(s.numeric.ID)
	x.put16((&mutable{set.Reached, s.has}).bits())
	x.put16((&mutable{set.Left, s.has}).bits())
	return nil
}

// rearm is §35.12. A sensor that is out of the ordinary tells so once more.
func rearm(x *exchange) error {
	s, err := x.watched()
	if err != nil {
		return err
	}
	if x.data[1]&0x7f != 0 {
		return BadField
	}
	if x.data[1]&0x80 != 0 { // only what is selected
		selected := le16(append(slices.Clone(x.data[2:]), 0, 0))
		if s.holds(x.machine().Thermal.Level(s.numeric.ID))&selected == 0 {
			return nil
		}
	}
	return x.do(machine.Thermal{Command: thermal.Rearm{Sensor: s.numeric.ID}})
}

// holds are the events that have come and not gone at a level.
func (s *sensor) holds(level thermal.Level) uint16 {
	var out uint16
	for i, l := range watchLevels {
		low := i <= sdr.LowFatal
		if s.has&(1<<i) != 0 && l.Bad() <= level.Bad() && level.Bad() > 0 && level.Low() == low {
			out |= sdr.Event(i)
		}
	}
	return out
}

// eventStatus is §35.13: what is asserted now, as sensors that rearm themselves
// have it.
func eventStatus(x *exchange) error {
	s, err := x.asked()
	if err != nil {
		return err
	}
	if s.numeric == nil {
		x.put(x.flags(s, true))
		x.put16(x.statesOf(s) & s.asserts)
		x.put16(0)
		return nil
	}
	t := x.machine().Thermal
	_, ok := t.Reading(s.numeric.ID, x.now)
	x.put(x.flags(s, ok))
	x.put16(s.holds(t.Level(s.numeric.ID)))
	x.put16(0)
	return nil
}

// statesOf are the states that a sensor is in.
func (x *exchange) statesOf(s *sensor) uint16 {
	return s.read(x) & s.states
}

// sensorReading is §35.14. The comparison with thresholds is that of the
// reading: it knows no hysteresis.
func sensorReading(x *exchange) error {
	s, err := x.asked()
	if err != nil {
		return err
	}
	if s.numeric == nil {
		states := x.statesOf(s)
		x.put(0, x.flags(s, true), byte(states), 0x80|byte(states>>8))
		return nil
	}
	y, ok := x.machine().Thermal.Reading(s.numeric.ID, x.now)
	if !ok {
		x.put(0, x.flags(s, false), reservedState)
		return nil
	}
	state := byte(reservedState)
	l := x.limits(s)
	for i := range watchLevels {
		if s.has&(1<<i) == 0 {
			continue
		}
		if at := **limit(l, i); i <= sdr.LowFatal && y <= at || i > sdr.LowFatal && y >= at {
			state |= 1 << i
		}
	}
	x.put(s.factors.Raw(y), x.flags(s, true), state)
	return nil
}

// setSensorType is §35.15: ours are wired to what they are.
func setSensorType(x *exchange) error {
	if _, err := x.sensor(x.data[0]); err != nil {
		return err
	}
	return Illegal
}

// getSensorType is §35.16.
func getSensorType(x *exchange) error {
	s, err := x.sensor(x.data[0])
	if err != nil {
		return err
	}
	x.put(s.Type, s.Reading)
	return nil
}

// setReading is §35.17, which is for sensors that read what software says. Ours
// do not, as their records tell.
func setReading(x *exchange) error {
	if _, err := x.sensor(x.data[0]); err != nil {
		return err
	}
	return Illegal
}

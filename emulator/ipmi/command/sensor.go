package command

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/ipmi/sdr"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// sensorCommands are the commands for single sensors (§35). The events of
// discrete sensors cannot be masked, and their state cannot be set.
var sensorCommands = []Row{
	{fn: wire.SensorEvent, cmd: 0x23, name: "Get Sensor Reading Factors", privilege: wire.User, least: 2, most: 2, run: getReadingFactors},
	{fn: wire.SensorEvent, cmd: 0x24, name: "Set Sensor Hysteresis", privilege: wire.Operator, least: 4, most: 4, mutates: true, run: setHysteresis},
	{fn: wire.SensorEvent, cmd: 0x25, name: "Get Sensor Hysteresis", privilege: wire.User, least: 2, most: 2, run: getHysteresis},
	{fn: wire.SensorEvent, cmd: 0x26, name: "Set Sensor Threshold", privilege: wire.Operator, least: 8, most: 8, mutates: true, run: setThresholds},
	{fn: wire.SensorEvent, cmd: 0x27, name: "Get Sensor Threshold", privilege: wire.User, least: 1, most: 1, run: getThresholds},
	{fn: wire.SensorEvent, cmd: 0x28, name: "Set Sensor Event Enable", privilege: wire.Operator, least: 2, most: 6, mutates: true, run: setEventEnable},
	{fn: wire.SensorEvent, cmd: 0x29, name: "Get Sensor Event Enable", privilege: wire.User, least: 1, most: 1, run: getEventEnable},
	{fn: wire.SensorEvent, cmd: 0x2a, name: "Re-arm Sensor Events", privilege: wire.Operator, least: 2, most: 6, mutates: true, run: rearmEvents},
	{fn: wire.SensorEvent, cmd: 0x2b, name: "Get Sensor Event Status", privilege: wire.User, least: 1, most: 1, run: getEventStatus},
	{fn: wire.SensorEvent, cmd: 0x2d, name: "Get Sensor Reading", privilege: wire.User, least: 1, most: 1, run: getSensorReading},
	{fn: wire.SensorEvent, cmd: 0x2e, name: "Set Sensor Type", privilege: wire.Operator, least: 3, most: 3, run: setSensorType},
	{fn: wire.SensorEvent, cmd: 0x2f, name: "Get Sensor Type", privilege: wire.User, least: 1, most: 1, run: getSensorType},
	{fn: wire.SensorEvent, cmd: 0x30, name: "Set Sensor Reading And Event Status", privilege: wire.Operator, least: 3, most: 10, run: setSensorReading},
}

// thresholdLevels maps IPMI's threshold bits to the model's levels. There is no
// lower non-recoverable one.
var thresholdLevels = [6]thermal.Level{sdr.LowCaution: thermal.LowCaution, sdr.LowCritical: thermal.LowCritical, sdr.Caution: thermal.Caution, sdr.Critical: thermal.Critical, sdr.Fatal: thermal.Fatal}

// limit returns the threshold of a bit; nil when no sensor has it.
func limit(l *thermal.Limits, i int) **float64 {
	return [6]**float64{sdr.LowCaution: &l.LowCaution, sdr.LowCritical: &l.LowCritical, sdr.Caution: &l.Caution, sdr.Critical: &l.Critical, sdr.Fatal: &l.Fatal}[i]
}

// thresholdsOf returns the bit mask of the thresholds that are set.
func thresholdsOf(l *thermal.Limits) byte {
	var has byte
	for i := range thresholdLevels {
		if at := limit(l, i); at != nil && *at != nil {
			has |= 1 << i
		}
	}
	return has
}

// thresholds returns a sensor's thresholds as raw bytes.
func (s *sensor) thresholds(l *thermal.Limits) sdr.Thresholds {
	t := sdr.Thresholds{Has: s.thresholdMask}
	for i := range t.At {
		if s.thresholdMask&(1<<i) != 0 {
			t.At[i] = s.factors.Raw(**limit(l, i))
		}
	}
	return t
}

// hysteresis returns a sensor's hysteresis in raw counts. In the model it is
// the distance at which a reading leaves the level, in IPMI the largest
// distance at which it still does not (§35.13.3).
func (s *sensor) hysteresis(l *thermal.Limits) (high, low byte) {
	if s.thresholdMask == 0 {
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

// requestedSensor returns the sensor that a request names; one that only
// generates events is refused.
func (x *Request) requestedSensor() (*sensor, error) {
	s, err := x.sensor(x.data[0])
	if err == nil && s.eventOnly() {
		return nil, IllegalForRecord
	}
	return s, err
}

// requestedNumericSensor returns the sensor that a request names, which must
// have numeric readings.
func (x *Request) requestedNumericSensor() (*sensor, error) {
	s, err := x.sensor(x.data[0])
	if err == nil && s.numeric == nil {
		return nil, IllegalForRecord
	}
	return s, err
}

// requestedThresholdSensor returns the sensor that a request names, which must
// have thresholds.
func (x *Request) requestedThresholdSensor() (*sensor, error) {
	s, err := x.requestedNumericSensor()
	if err == nil && s.thresholdMask == 0 {
		return nil, IllegalForRecord
	}
	return s, err
}

func (x *Request) limits(s *sensor) *thermal.Limits {
	return x.machine().Thermal.Thresholds(s.numeric.ID)
}

// adjust stores how a sensor's thresholds are watched.
func (x *Request) adjust(set thermal.Setting) error {
	return x.applyMachine(machine.Thermal{Command: thermal.Adjust{Setting: set}})
}

// getReadingFactors handles Get Sensor Reading Factors (§35.5). The factors
// are the same for every reading.
func getReadingFactors(x *Request) error {
	s, err := x.requestedNumericSensor()
	if err != nil {
		return err
	}
	x.put(x.data[1])
	x.put(s.factors.ReadingFactors()...)
	return nil
}

// setHysteresis handles Set Sensor Hysteresis (§35.6). A value that the
// request does not change keeps its full precision.
func setHysteresis(x *Request) error {
	s, err := x.requestedThresholdSensor()
	if err != nil {
		return err
	}
	set := x.machine().Thermal.Setting(s.numeric.ID)
	l := *x.limits(s)
	high, low := s.hysteresis(&l)
	was := l.Hysteresis
	if x.data[2] != high {
		l.Hysteresis = s.factors.Difference(x.data[2]) + s.factors.Difference(1)
	}
	switch {
	case x.data[3] != low:
		hysteresis := s.factors.Difference(x.data[3]) + s.factors.Difference(1)
		l.LowHysteresis = &hysteresis
	case l.LowHysteresis == nil:
		l.LowHysteresis = &was
	}
	if *l.LowHysteresis == l.Hysteresis {
		l.LowHysteresis = nil
	}
	set.Limits = &l
	return x.adjust(set)
}

// getHysteresis handles Get Sensor Hysteresis (§35.7).
func getHysteresis(x *Request) error {
	s, err := x.requestedThresholdSensor()
	if err != nil {
		return err
	}
	high, low := s.hysteresis(x.limits(s))
	x.put(high, low)
	return nil
}

// setThresholds handles Set Sensor Threshold (§35.8).
func setThresholds(x *Request) error {
	s, err := x.requestedThresholdSensor()
	if err != nil {
		return err
	}
	if x.data[1]&^s.thresholdMask != 0 {
		return InvalidDataField // a threshold that the sensor does not have, or a reserved bit
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

// getThresholds handles Get Sensor Threshold (§35.9).
func getThresholds(x *Request) error {
	s, err := x.requestedNumericSensor()
	if err != nil {
		return err
	}
	t := s.thresholds(x.limits(s))
	x.put(t.Has)
	x.put(t.At[:]...)
	return nil
}

// Flags of Get Sensor Reading (§35.14).
const (
	eventsOn      = 1 << 7
	scanningOn    = 1 << 6
	unavailable   = 1 << 5
	reservedState = 0xc0 // reserved bits of the threshold comparison, returned as 1
)

// sensorFlags returns a sensor's event, scanning and reading-unavailable flags.
func (x *Request) sensorFlags(s *sensor, reads bool) byte {
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
	if s.numeric != nil && x.Host.Dialect().IPMI.Faults.ScanningDisabled {
		out &^= scanningOn
	}
	if !reads {
		out |= unavailable
	}
	return out
}

// maskableLevels is a set of levels whose events a client enables and disables
// by bit.
type maskableLevels struct {
	muted []thermal.Level
	has   byte
}

// bits returns the events that are enabled.
func (m *maskableLevels) bits() uint16 {
	var out uint16
	for i, l := range thresholdLevels {
		if m.has&(1<<i) != 0 && !slices.Contains(m.muted, l) {
			out |= sdr.Event(i)
		}
	}
	return out
}

// set enables exactly these events.
func (m *maskableLevels) set(events uint16) {
	m.muted = nil
	for i, l := range thresholdLevels {
		if m.has&(1<<i) != 0 && events&sdr.Event(i) == 0 {
			m.muted = append(m.muted, l)
		}
	}
}

// setEventEnable handles Set Sensor Event Enable (§35.10).
func setEventEnable(x *Request) error {
	s, err := x.requestedNumericSensor()
	if err != nil {
		return err
	}
	how := x.data[1]
	if how&0x0f != 0 {
		return InvalidDataField
	}
	set := x.machine().Thermal.Setting(s.numeric.ID)
	set.Silent, set.Off = how&eventsOn == 0, how&scanningOn == 0
	selected := append(slices.Clone(x.data[2:]), 0, 0, 0, 0) // bytes that are not sent are 0
	for i, muted := range []*[]thermal.Level{&set.Reached, &set.Left} {
		m := maskableLevels{*muted, s.thresholdMask}
		switch these := le16(selected[2*i:]); how >> 4 & 3 {
		case 1:
			m.set(m.bits() | these)
		case 2:
			m.set(m.bits() &^ these)
		case 3:
			return InvalidDataField
		}
		*muted = m.muted
	}
	return x.adjust(set)
}

// getEventEnable handles Get Sensor Event Enable (§35.11).
func getEventEnable(x *Request) error {
	s, err := x.requestedSensor()
	if err != nil {
		return err
	}
	x.put(x.sensorFlags(s, true))
	if s.numeric == nil {
		x.put16(s.asserts)
		x.put16(s.deasserts)
		return nil
	}
	set := x.machine().Thermal.Setting(s.numeric.ID)
	x.put16((&maskableLevels{set.Reached, s.thresholdMask}).bits())
	x.put16((&maskableLevels{set.Left, s.thresholdMask}).bits())
	return nil
}

// rearmEvents handles Re-arm Sensor Events (§35.12). A sensor that is still
// out of range generates its event again.
func rearmEvents(x *Request) error {
	s, err := x.requestedThresholdSensor()
	if err != nil {
		return err
	}
	if x.data[1]&0x7f != 0 {
		return InvalidDataField
	}
	if x.data[1]&0x80 != 0 { // only the selected events
		selected := le16(append(slices.Clone(x.data[2:]), 0, 0))
		if s.activeEvents(x.machine().Thermal.Level(s.numeric.ID))&selected == 0 {
			return nil
		}
	}
	return x.applyMachine(machine.Thermal{Command: thermal.Rearm{Sensor: s.numeric.ID}})
}

// activeEvents returns the events that are asserted at a level.
func (s *sensor) activeEvents(level thermal.Level) uint16 {
	var out uint16
	for i, l := range thresholdLevels {
		low := i <= sdr.LowFatal
		if s.thresholdMask&(1<<i) != 0 && l.Bad() <= level.Bad() && level.Bad() > 0 && level.Low() == low {
			out |= sdr.Event(i)
		}
	}
	return out
}

// getEventStatus handles Get Sensor Event Status (§35.13): what is asserted
// now, since the sensors re-arm themselves.
func getEventStatus(x *Request) error {
	s, err := x.requestedSensor()
	if err != nil {
		return err
	}
	if s.numeric == nil {
		x.put(x.sensorFlags(s, true))
		x.put16(x.statesOf(s) & s.asserts)
		x.put16(0)
		return nil
	}
	t := x.machine().Thermal
	_, ok := t.Reading(s.numeric.ID, x.Now)
	x.put(x.sensorFlags(s, ok))
	x.put16(s.activeEvents(t.Level(s.numeric.ID)))
	x.put16(0)
	return nil
}

// statesOf returns the states that a discrete sensor is in.
func (x *Request) statesOf(s *sensor) uint16 {
	return s.read(x) & s.states
}

// getSensorReading handles Get Sensor Reading (§35.14). The comparison with
// thresholds uses the reading alone, without hysteresis.
func getSensorReading(x *Request) error {
	s, err := x.requestedSensor()
	if err != nil {
		return err
	}
	if s.numeric == nil {
		states := x.statesOf(s)
		x.put(0, x.sensorFlags(s, true), byte(states), 0x80|byte(states>>8))
		return nil
	}
	y, ok := x.machine().Thermal.Reading(s.numeric.ID, x.Now)
	if !ok {
		x.put(0, x.sensorFlags(s, false), reservedState)
		return nil
	}
	state := byte(reservedState)
	l := x.limits(s)
	for i := range thresholdLevels {
		if s.thresholdMask&(1<<i) == 0 {
			continue
		}
		if at := **limit(l, i); i <= sdr.LowFatal && y <= at || i > sdr.LowFatal && y >= at {
			state |= 1 << i
		}
	}
	x.put(s.factors.Raw(y), x.sensorFlags(s, true), state)
	return nil
}

// setSensorType refuses Set Sensor Type (§35.15): the types are fixed.
func setSensorType(x *Request) error {
	if _, err := x.sensor(x.data[0]); err != nil {
		return err
	}
	return IllegalForRecord
}

// getSensorType handles Get Sensor Type (§35.16).
func getSensorType(x *Request) error {
	s, err := x.sensor(x.data[0])
	if err != nil {
		return err
	}
	x.put(s.Type, s.Reading)
	return nil
}

// setSensorReading refuses Set Sensor Reading And Event Status (§35.17), which
// is for sensors whose readings software sets; the SDRs say that these are not.
func setSensorReading(x *Request) error {
	if _, err := x.sensor(x.data[0]); err != nil {
		return err
	}
	return IllegalForRecord
}

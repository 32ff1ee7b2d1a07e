package command

import (
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// filterSize is the size of an event filter table entry in bytes (table 17-2).
const filterSize = 20

// filter is an event filter table entry.
type filter [filterSize]byte

// Fields of a filter that are not simply compared.
const (
	filterOn            = 0x80 // bit 7 of byte 0: the filter is enabled
	filterPreconfigured = 0x40 // bits 6:5 of byte 0: preconfigured by the manufacturer
	filterAction        = 1
	filterPolicy        = 2
	filterSeverity      = 3
	filterMask          = 9  // two bytes of event offsets
	filterData          = 11 // three bytes for each event data byte
)

// Filter actions (table 17-2), which are also bits of PEF action global control
// (table 30-6).
const (
	actAlert     = 1 << 0
	actPowerOff  = 1 << 1
	actReset     = 1 << 2
	actCycle     = 1 << 3
	actInterrupt = 1 << 5
	actions      = actAlert | actPowerOff | actReset | actCycle | actInterrupt
)

// matches reports whether an event matches the filter (§17.7).
func (f *filter) matches(e sel.Event) bool {
	if f[0]&filterOn == 0 {
		return false
	}
	dir := byte(e.Type)
	if e.Gone {
		dir |= 0x80
	}
	for i, is := range []byte{byte(e.Generator), byte(e.Generator >> 8), byte(e.Sensor), e.Number, dir} {
		if want := f[4+i]; want != 0xff && want != is {
			return false
		}
	}
	if le16(f[filterMask:])>>e.Offset()&1 == 0 {
		return false
	}
	for i, is := range e.Data {
		if !matchesData(is, [3]byte(f[filterData+3*i:])) {
			return false
		}
	}
	return true
}

// matchesData compares an event data byte (§17.9) by an AND mask, a byte that
// says which bits must be equal and which only need one match, and the values.
func matchesData(is byte, with [3]byte) bool {
	exact, want := with[1], with[2]
	same := ^(is&with[0] ^ want)
	return same&exact == exact && (exact == 0xff || same&^exact != 0)
}

// anyData matches any event data.
var anyData = [9]byte{}

// preconfigured returns a filter that comes with the BMC: for a sensor type, an
// event type and event offsets. It alerts by policy 1.
func preconfigured(sensor sel.Sensor, dir byte, offsets uint16, severity byte) filter {
	f := filter{
		filterOn | filterPreconfigured, actAlert, 1, severity, 0xff, 0xff, byte(sensor), 0xff, dir, byte(offsets), byte(offsets >> 8),
	}
	copy(f[filterData:], anyData[:])
	return f
}

// Event severities of filters and alerts (table 17-2).
const (
	severityUnspecified = 0x00
	severityInformation = 0x02
	severityOK          = 0x04
	severityNonCritical = 0x08
	severityCritical    = 0x10
)

// preconfiguredFilters are the filters that come with the BMC. All other
// entries are empty and configurable.
var preconfiguredFilters = []filter{
	preconfigured(sel.Temperature, byte(sel.Threshold), 1<<sel.CautionGoingHigh|1<<sel.LowCautionGoingLow, severityNonCritical),
	preconfigured(sel.Temperature, byte(sel.Threshold), 1<<sel.CriticalGoingHigh|1<<sel.FatalGoingHigh|1<<sel.LowCriticalGoingLow, severityCritical),
	preconfigured(sel.Voltage, byte(sel.Threshold), 1<<sel.CriticalGoingHigh|1<<sel.LowCriticalGoingLow, severityCritical),
	preconfigured(sel.Fan, byte(sel.Threshold), 1<<sel.LowCriticalGoingLow, severityCritical),
	preconfigured(sel.Intrusion, byte(sel.Specific), 0x007f, severityCritical),
	preconfigured(sel.Supply, byte(sel.Specific), 0x007e, severityCritical),
	preconfigured(sel.PowerUnit, byte(sel.Redundancy), 0x0022, severityNonCritical),
	preconfigured(sel.Memory, byte(sel.Specific), 0x0002, severityCritical),
	preconfigured(sel.Drive, byte(sel.Specific), 0x0066, severityCritical),
	preconfigured(sel.Watchdog, byte(sel.Specific), 0x000f, severityCritical),
	preconfigured(sel.OSStop, byte(sel.Specific), 0x0003, severityCritical),
}

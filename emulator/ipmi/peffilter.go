package ipmi

import (
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// filterSize is the size of an entry of the event filter table (table 17-2).
const filterSize = 20

// filter is such an entry.
type filter [filterSize]byte

// The fields of a filter that are more than bytes to compare.
const (
	filterOn            = 0x80 // of byte 0
	filterPreconfigured = 0x40 // of byte 0: it comes with the BMC
	filterAction        = 1
	filterPolicy        = 2
	filterSeverity      = 3
	filterMask          = 9  // of offsets, two bytes
	filterData          = 11 // three bytes for each of the event data
)

// Actions of filters (table 17-2), which are bits of the global control, too
// (table 30-6).
const (
	actAlert     = 1 << 0
	actPowerOff  = 1 << 1
	actReset     = 1 << 2
	actCycle     = 1 << 3
	actInterrupt = 1 << 5
	actions      = actAlert | actPowerOff | actReset | actCycle | actInterrupt
)

// matches says whether an event passes a filter (§17.7).
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

// matchesData matchesData a byte of event data (§17.9): with is an AND mask, which
// bits must be as the last byte has them, and how the others are, of which one
// suffices.
func matchesData(is byte, with [3]byte) bool {
	exact, want := with[1], with[2]
	same := ^(is&with[0] ^ want)
	return same&exact == exact && (exact == 0xff || same&^exact != 0)
}

// anyData lets all event data pass.
var anyData = [9]byte{}

// preconfigured is a filter that comes with a BMC: of a type of sensor, and of a type of
// event, with those offsets. It alerts by the first policy.
func preconfigured(sensor sel.Sensor, dir byte, offsets uint16, severity byte) filter {
	f := filter{
		filterOn | filterPreconfigured, actAlert, 1, severity, 0xff, 0xff, byte(sensor), 0xff, dir, byte(offsets), byte(offsets >> 8),
	}
	copy(f[filterData:], anyData[:])
	return f
}

// Severities as alerts have them (table 17-2).
const (
	severityUnspecified = 0x00
	severityInformation = 0x02
	severityOK          = 0x04
	severityNonCritical = 0x08
	severityCritical    = 0x10
)

// preconfiguredFilters are those. All others are empty, for whoever wants to have them.
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

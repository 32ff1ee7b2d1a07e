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
	filterOn     = 0x80 // of byte 0
	filterOwn    = 0x40 // of byte 0: it comes with the BMC
	filterAction = 1
	filterPolicy = 2
	filterBad    = 3
	filterMask   = 9  // of offsets, two bytes
	filterData   = 11 // three bytes for each of the event data
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
		if !compares(is, [3]byte(f[filterData+3*i:])) {
			return false
		}
	}
	return true
}

// compares compares a byte of event data (§17.9): with is an AND mask, which
// bits must be as the last byte has them, and how the others are, of which one
// suffices.
func compares(is byte, with [3]byte) bool {
	exact, want := with[1], with[2]
	same := ^(is&with[0] ^ want)
	return same&exact == exact && (exact == 0xff || same&^exact != 0)
}

// anyData lets all event data pass.
var anyData = [9]byte{}

// own is a filter that comes with a BMC: of a type of sensor, and of a type of
// event, with those offsets. It alerts by the first policy.
func own(sensor sel.Sensor, dir byte, offsets uint16, severity byte) filter {
	f := filter{
		filterOn | filterOwn, actAlert, 1, severity, 0xff, 0xff, byte(sensor), 0xff, dir, byte(offsets), byte(offsets >> 8),
	}
	copy(f[filterData:], anyData[:])
	return f
}

// Severities as alerts have them (table 17-2).
const (
	isUnspecified = 0x00
	isInformation = 0x02
	isOK          = 0x04
	isNonCritical = 0x08
	isCritical    = 0x10
)

// ownFilters are those. All others are empty, for whoever wants to have them.
var ownFilters = []filter{
	own(sel.Temperature, byte(sel.Threshold), 1<<sel.CautionGoingHigh|1<<sel.LowCautionGoingLow, isNonCritical),
	own(sel.Temperature, byte(sel.Threshold), 1<<sel.CriticalGoingHigh|1<<sel.FatalGoingHigh|1<<sel.LowCriticalGoingLow, isCritical),
	own(sel.Voltage, byte(sel.Threshold), 1<<sel.CriticalGoingHigh|1<<sel.LowCriticalGoingLow, isCritical),
	own(sel.Fan, byte(sel.Threshold), 1<<sel.LowCriticalGoingLow, isCritical),
	own(sel.Intrusion, byte(sel.Specific), 0x007f, isCritical),
	own(sel.Supply, byte(sel.Specific), 0x007e, isCritical),
	own(sel.PowerUnit, byte(sel.Redundancy), 0x0022, isNonCritical),
	own(sel.Memory, byte(sel.Specific), 0x0002, isCritical),
	own(sel.Drive, byte(sel.Specific), 0x0066, isCritical),
	own(sel.Watchdog, byte(sel.Specific), 0x000f, isCritical),
	own(sel.OSStop, byte(sel.Specific), 0x0003, isCritical),
}

package command

import (
	"bytes"

	"github.com/metalab-dev/metalab/emulator/bmc"
)

// Numbers of the PEF configuration parameters (table 30-6).
const (
	pefControl     = 1
	pefActions     = 2
	pefStartDelay  = 3
	pefAlertDelay  = 4
	pefFilterCount = 5
	pefFilters     = 6
	pefFilterByte  = 7
	pefPolicyCount = 8
	pefPolicies    = 9
	pefGUID        = 10
	pefStringCount = 11
	pefKeys        = 12
	pefStrings     = 13
)

// Sizes of the PEF tables.
const (
	filterCount  = 20
	policyCount  = 16
	policySize   = 3
	stringCount  = 8
	stringBlock  = 16
	stringBlocks = 4
	stringSize   = stringBlock * stringBlocks // with the terminating zero
)

// Bits of PEF control (parameter 1).
const (
	pefOn           = 1 << 0
	pefLogsActions  = 1 << 1 // its actions
	pefDelaysOn     = 1 << 2
	pefAlertDelayOn = 1 << 3
)

// pefParam describes a PEF configuration parameter.
type pefParam struct {
	size     int // bytes of data, without selectors
	lastSet  int // highest set selector; 0: none
	firstSet int // lowest set selector
	blocks   int // number of blocks; 0: no block selector
	readOnly bool
	// initial returns the value that the parameter has until it is set.
	initial func(set byte) []byte
	// sanitize corrects data that are set; false: they are refused.
	sanitize func(data []byte) bool
}

func initialValue(b ...byte) func(byte) []byte { return func(byte) []byte { return b } }

// maskedBy accepts data whose bits are all in mask.
func maskedBy(mask byte) func([]byte) bool {
	return func(data []byte) bool { return data[0]&^mask == 0 }
}

// pefParams are the stored parameters; set in progress is volatile. Group
// control (14, 15) belongs to ICMB, which does not exist here.
var pefParams = map[byte]pefParam{
	pefControl: {size: 1, initial: initialValue(0), sanitize: maskedBy(pefOn | pefLogsActions | pefDelaysOn | pefAlertDelayOn)},
	pefActions: {size: 1, initial: initialValue(0), sanitize: func(data []byte) bool {
		ok := data[0]&0xc0 == 0
		data[0] &= actions
		return ok
	}},
	pefStartDelay:  {size: 1, initial: initialValue(60)},
	pefAlertDelay:  {size: 1, initial: initialValue(60)},
	pefFilterCount: {size: 1, readOnly: true, initial: initialValue(filterCount)},
	pefFilters:     {size: filterSize, firstSet: 1, lastSet: filterCount, initial: initialFilter, sanitize: sanitizeFilter},
	pefFilterByte:  {size: 1, firstSet: 1, lastSet: filterCount},
	pefPolicyCount: {size: 1, readOnly: true, initial: initialValue(policyCount)},
	pefPolicies:    {size: policySize, firstSet: 1, lastSet: policyCount, initial: initialPolicy},
	pefGUID:        {size: 17, initial: initialValue(make([]byte, 17)...), sanitize: maskedBy(0x01)},
	pefStringCount: {size: 1, readOnly: true, initial: initialValue(stringCount)},
	pefKeys:        {size: 2, lastSet: stringCount, initial: initialValue(0, 0), sanitize: func(data []byte) bool { return (data[0]|data[1])&0x80 == 0 }},
	pefStrings:     {size: stringSize, lastSet: stringCount, blocks: stringBlocks, initial: initialValue(make([]byte, stringSize)...)},
}

func initialFilter(set byte) []byte {
	var f filter
	if int(set) <= len(preconfiguredFilters) {
		f = preconfiguredFilters[set-1]
	}
	return f[:]
}

// initialPolicy returns a disabled policy table entry; the first one has the
// policy number that the preconfigured filters use.
func initialPolicy(set byte) []byte {
	if set == 1 {
		return []byte{1 << 4, lanChannel<<4 | 1, 0}
	}
	return make([]byte, policySize)
}

// sanitizeFilter clears the filter actions that do not exist (table 17-2).
func sanitizeFilter(data []byte) bool {
	kind := data[0] & 0x60
	ok := data[0]&0x1f == 0 && (kind == 0 || kind == filterPreconfigured) && data[filterAction]&0x80 == 0 && data[filterPolicy]&0x80 == 0
	data[filterAction] &= actions
	return ok
}

// pefValue returns the stored value of a parameter.
func pefValue(v *bmc.View, param, set byte) []byte {
	if b := v.Channel.Parameter(pefTable, param, set); b != nil {
		return b
	}
	return pefParams[param].initial(set)
}

// alertStringText returns the text of an alert string.
func alertStringText(b []byte) string {
	before, _, _ := bytes.Cut(b, []byte{0})
	return string(before)
}

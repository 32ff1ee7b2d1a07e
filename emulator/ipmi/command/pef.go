package command

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// pefCommands are the platform event filtering commands (§30).
var pefCommands = []Row{
	{fn: wire.SensorEvent, cmd: 0x10, name: "Get PEF Capabilities", privilege: wire.User, run: getPEFCapabilities},
	{fn: wire.SensorEvent, cmd: 0x11, name: "Arm PEF Postpone Timer", privilege: wire.Administrator, least: 1, most: 1, mutates: true, run: armPostponeTimer},
	{fn: wire.SensorEvent, cmd: 0x12, name: "Set PEF Configuration Parameters", privilege: wire.Administrator, least: 1, most: -1, mutates: true, run: setPEF},
	{fn: wire.SensorEvent, cmd: 0x13, name: "Get PEF Configuration Parameters", privilege: wire.Operator, least: 3, most: 3, run: getPEF},
	{fn: wire.SensorEvent, cmd: 0x14, name: "Set Last Processed Event ID", privilege: wire.Administrator, least: 3, most: 3, mutates: true, run: setLastProcessedEvent},
	{fn: wire.SensorEvent, cmd: 0x15, name: "Get Last Processed Event ID", privilege: wire.Administrator, run: getLastProcessedEvent},
	{fn: wire.SensorEvent, cmd: 0x16, name: "Alert Immediate", privilege: wire.Administrator, least: 3, most: 11, run: alertImmediate},
	{fn: wire.SensorEvent, cmd: 0x17, name: "PET Acknowledge", least: 12, most: 12, run: petAcknowledge},
}

// Completion codes and values of the PEF commands (§30.3, §30.7).
const (
	pefParamUnsupported    Code = 0x80
	pefParamReadOnly       Code = 0x82
	alertAlreadyInProgress Code = 0x81
	noProcessedEvent            = 0xffff
)

// pefState is the volatile state of PEF.
type pefState struct {
	setInProgress setInProgress
	boots         uint64
	key0          []byte       // event filter and set of alert string 0
	string0       []byte       // whole
	alerted       *alertStatus // state of the last Alert Immediate; nil: none was sent
}

// getPEFCapabilities handles Get PEF Capabilities (§30.1).
func getPEFCapabilities(x *Request) error {
	x.put(0x51, actions, filterCount)
	return nil
}

// armPostponeTimer handles Arm PEF Postpone Timer (§30.2).
func armPostponeTimer(x *Request) error {
	const stop, ask = 0xfe, 0xff
	var err error
	switch n := x.data[0]; n {
	case ask:
	case stop:
		_, err = x.applyBMC(bmc.ArmPostponeTimer{Off: true})
	default:
		_, err = x.applyBMC(bmc.ArmPostponeTimer{For: time.Duration(n) * time.Second})
	}
	if err != nil {
		return err
	}
	a := x.bmc().PEF
	switch {
	case a == nil:
		x.put(0)
	case a.Off:
		x.put(stop)
	case a.Until.IsZero():
		x.put(byte(a.PostponeFor / time.Second))
	default:
		x.put(byte(max(0, a.Until.Sub(x.Now)+time.Second-1) / time.Second))
	}
	return nil
}

// pefVolatile returns the volatile PEF state, which a restart of the BMC or of
// the system clears.
func (x *Request) pefVolatile() *pefState {
	p := &x.State.pef
	if boots := x.machine().Boots; p.boots != boots {
		p.boots, p.setInProgress = boots, setComplete
	}
	return p
}

// pefValue returns the value of a parameter; alert string 0 is volatile.
func (x *Request) pefValue(param, set byte) []byte {
	p := x.pefVolatile()
	switch {
	case param == pefFilterByte:
		return pefValue(x.bmc(), pefFilters, set)[:1]
	case param == pefKeys && set == 0 && p.key0 != nil:
		return p.key0
	case param == pefStrings && set == 0 && p.string0 != nil:
		return p.string0
	}
	return pefValue(x.bmc(), param, set)
}

// selected splits the selectors off a parameter's data.
func (row *pefParam) selected(data []byte) (set, block byte, rest []byte, err error) {
	if row.lastSet > 0 {
		if len(data) == 0 {
			return 0, 0, nil, DataLengthInvalid
		}
		if set, data = data[0], data[1:]; int(set) < row.firstSet || int(set) > row.lastSet {
			return 0, 0, nil, ParameterOutOfRange
		}
	}
	if row.blocks > 0 {
		if len(data) == 0 {
			return 0, 0, nil, DataLengthInvalid
		}
		if block, data = data[0], data[1:]; block == 0 || int(block) > row.blocks {
			return 0, 0, nil, ParameterOutOfRange
		}
	}
	return set, block, data, nil
}

// setPEF handles Set PEF Configuration Parameters (§30.3).
func setPEF(x *Request) error {
	param, data := x.data[0], x.data[1:]
	if param&onlyRevision != 0 {
		return InvalidDataField
	}
	if param == setInProgressParameter {
		return x.pefVolatile().setInProgress.set(data)
	}
	row, ok := pefParams[param]
	switch {
	case !ok:
		return pefParamUnsupported
	case row.readOnly:
		return pefParamReadOnly
	}
	set, block, data, err := row.selected(data)
	if err != nil {
		return err
	}
	if row.blocks > 0 { // data shorter than the block ends the string
		if len(data) == 0 || len(data) > stringBlock {
			return DataLengthInvalid
		}
		text := slices.Clone(x.pefValue(param, set))
		at := text[int(block-1)*stringBlock:][:stringBlock]
		clear(at[copy(at, data):])
		data = text
	} else if len(data) != row.size {
		return DataLengthInvalid
	}
	data = slices.Clone(data)
	if param == pefFilterByte { // byte 1 of a filter
		data = append(data, pefValue(x.bmc(), pefFilters, set)[1:]...)
		param, row = pefFilters, pefParams[pefFilters]
	}
	if row.sanitize != nil && !row.sanitize(data) {
		return InvalidDataField
	}
	p := x.pefVolatile()
	switch {
	case param == pefKeys && set == 0:
		p.key0 = data
	case param == pefStrings && set == 0:
		p.string0 = data
	default:
		_, err = x.applyBMC(bmc.SetParameter{Parameter: bmc.Parameter{Table: pefTable, Param: param, Set: set, Data: data}})
	}
	return err
}

// getPEF handles Get PEF Configuration Parameters (§30.4).
func getPEF(x *Request) error {
	param := x.data[0] &^ onlyRevision
	row, ok := pefParams[param]
	switch {
	case !ok && param != setInProgressParameter:
		return pefParamUnsupported
	case x.data[0]&onlyRevision != 0:
		x.put(revision)
		return nil
	case param == setInProgressParameter:
		x.put(revision, byte(x.pefVolatile().setInProgress))
		return nil
	}
	set, block, _, err := row.selected(x.data[1:])
	if err != nil {
		return err
	}
	x.put(revision)
	if row.lastSet > 0 {
		x.put(set)
	}
	data := x.pefValue(param, set)
	if row.blocks > 0 {
		x.put(block)
		data = data[int(block-1)*stringBlock:][:stringBlock]
	}
	x.put(data...)
	return nil
}

// setLastProcessedEvent handles Set Last Processed Event ID (§30.5).
func setLastProcessedEvent(x *Request) error {
	if x.erasing() {
		return selErasing
	}
	if x.data[0]&^1 != 0 {
		return InvalidDataField
	}
	c := bmc.SetLastProcessedEvent{BMC: x.data[0] == 1}
	if id := le16(x.data[1:]); id != noProcessedEvent && id != firstRecord {
		e, ok := x.selEntry(id)
		if !ok {
			return NotPresent
		}
		c.Entry = e.ID
	}
	_, err := x.applyBMC(c)
	return err
}

// getLastProcessedEvent handles Get Last Processed Event ID (§30.6).
func getLastProcessedEvent(x *Request) error {
	if x.erasing() {
		return selErasing
	}
	v := x.bmc()
	var added time.Time
	first := uint64(0)
	if v.Log != nil {
		added, first = v.Log.Added, v.Log.First
	}
	// Clearing the log also forgets the processed entries.
	id := func(entry uint64) uint16 {
		if entry == 0 || entry < first {
			return noProcessedEvent
		}
		return recordID(entry)
	}
	last, bySoftware, byBMC := uint64(0), uint64(0), uint64(0)
	if e, ok := v.Log.Last(); ok {
		last = e.ID
	}
	byBMC = last
	if a := v.PEF; a != nil {
		bySoftware = a.ProcessedBySoftware
		switch {
		case a.ProcessedByBMC != nil && v.Log != nil && a.ProcessedByBMC.Next == v.Log.Next:
			byBMC = a.ProcessedByBMC.Entry
		case !a.Until.IsZero():
			byBMC = a.FirstPostponed - 1
		}
	}
	x.put32(selTimestamp(v.Clock, added))
	x.put16(id(last))
	x.put16(id(bySoftware))
	x.put16(id(byBMC))
	return nil
}

// alertImmediate handles Alert Immediate (§30.7).
func alertImmediate(x *Request) error {
	const start, ask, forget = 0, 1, 2
	p := x.pefVolatile()
	do, to := x.data[1]>>6, x.data[1]&0x0f
	switch {
	case len(x.data) != 3 && len(x.data) != 11:
		return DataLengthInvalid
	case !onLAN(x.data[0]&0x0f) || x.data[0]&0xf0 != 0 || x.data[1]&0x30 != 0:
		return InvalidDataField
	case do == ask:
		x.put(p.alerted.code())
		return nil
	case do == forget:
		p.alerted = nil
		return nil
	case do != start:
		return InvalidDataField
	case p.alerted.code() == alertInProgress:
		return alertAlreadyInProgress
	}
	a := alert{host: x.Host, at: x.clock(), severity: severityUnspecified}
	if len(x.data) == 11 {
		d := x.data[3:]
		a.generatorType, a.event = 0x21, sel.Event{
			Generator: uint16(d[0]), Sensor: sel.Sensor(d[2]), Number: d[3], Type: sel.Type(d[4] & 0x7f), Gone: d[4]&0x80 != 0, Data: [3]byte(d[5:8]),
		}
	} else {
		a.event = sel.Event{Generator: sel.BMC, Sensor: sel.Alert, Type: sel.Specific, Data: [3]byte{0x02, sel.Unspecified, sel.Unspecified}}
	}
	if s := x.data[2]; s&0x80 != 0 {
		if s&0x7f > stringCount {
			return ParameterOutOfRange
		}
		a.text = alertStringText(x.pefValue(pefStrings, s&0x7f))
	}
	if to > destinations {
		return ParameterOutOfRange
	}
	p.alerted = new(alertStatus)
	x.State.Alerts.send(&a, x.alertDestination(to), p.alerted.finish)
	return nil
}

// petAcknowledge handles PET Acknowledge (§30.8). It needs no session: whoever
// received the trap may acknowledge it.
func petAcknowledge(x *Request) error {
	if x.State.Alerts.Acknowledged != nil {
		x.State.Alerts.Acknowledged(x.Host, le16(x.data))
	}
	return nil
}

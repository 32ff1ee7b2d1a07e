package command

import (
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// eventCommands are the commands of the event generator and the event receiver
// (§29); the BMC is both.
var eventCommands = []Row{
	{fn: wire.SensorEvent, cmd: 0x00, name: "Set Event Receiver", privilege: wire.Administrator, least: 2, most: 2, run: setEventReceiver},
	{fn: wire.SensorEvent, cmd: 0x01, name: "Get Event Receiver", privilege: wire.User, run: getEventReceiver},
	{fn: wire.SensorEvent, cmd: 0x02, name: "Platform Event", privilege: wire.Operator, least: 5, most: 8, mutates: true, run: platformEvent},
}

const (
	bmcAddress     = 0x20 // on IPMB
	eventsDisabled = 0xff // event generation is disabled
)

// eventReceiver is where the BMC sends the events of its sensors: to itself,
// initially.
type eventReceiver struct {
	set          bool
	address, lun byte
}

// setEventReceiver handles Set Event Receiver (§29.1). Another receiver would
// get events over IPMB, where nobody takes any; the BMC logs its own events all
// the same.
func setEventReceiver(x *Request) error {
	if x.data[0] != eventsDisabled && x.data[0]&1 != 0 || x.data[1] > 3 {
		return InvalidDataField
	}
	x.State.eventReceiver = eventReceiver{true, x.data[0], x.data[1]}
	return nil
}

// getEventReceiver handles Get Event Receiver (§29.2).
func getEventReceiver(x *Request) error {
	r := x.State.eventReceiver
	if !r.set {
		r.address = bmcAddress
	}
	x.put(r.address, r.lun)
	return nil
}

// platformEvent handles Platform Event (§29.3). Over LAN the generator ID is
// the requester's; in band it is the first byte.
func platformEvent(x *Request) error {
	generator, data := uint16(x.source)|uint16(lanChannel<<4|x.sourceLUN)<<8, x.data
	if x.inBand {
		if len(data) < 6 {
			return DataLengthInvalid
		}
		generator, data = uint16(data[0]), data[1:]
	}
	if len(data) > 7 {
		return DataLengthInvalid
	}
	if data[0] != 0x03 && data[0] != 0x04 { // event message revision of IPMI 1.0, and of later versions (§32.1)
		return InvalidDataField
	}
	is := sel.Event{
		Generator: generator, Sensor: sel.Sensor(data[1]), Number: data[2], Type: sel.Type(data[3] & 0x7f), Gone: data[3]&0x80 != 0,
		Data: [3]byte{sel.Unspecified, sel.Unspecified, sel.Unspecified},
	}
	copy(is.Data[:], data[4:])
	err := x.addRecord(is.Record(), !x.inBand)
	x.out = nil // the response has no data
	return err
}

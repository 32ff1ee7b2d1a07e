package command

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/ipmi/sdr"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// sdrCommands serve sensor data records: those of the SDR repository (§33),
// and the device SDRs (§35.2-4), which are the ones the server came with and
// cannot be written.
var sdrCommands = slices.Concat(sdrWriteCommands, []Row{
	{fn: wire.Storage, cmd: 0x20, name: "Get SDR Repository Info", privilege: wire.User, run: getSDRRepositoryInfo},
	{fn: wire.Storage, cmd: 0x21, name: "Get SDR Repository Allocation Info", privilege: wire.User, run: getSDRAllocationInfo},
	{fn: wire.Storage, cmd: 0x22, name: "Reserve SDR Repository", privilege: wire.User, run: reserveSDRRepository},
	{fn: wire.Storage, cmd: 0x23, name: "Get SDR", privilege: wire.User, least: 6, most: 6, run: getSDR},
	{fn: wire.Storage, cmd: 0x28, name: "Get SDR Repository Time", privilege: wire.User, run: getSDRRepositoryTime},
	{fn: wire.Storage, cmd: 0x29, name: "Set SDR Repository Time", privilege: wire.Operator, least: 4, most: 4, mutates: true, run: setSELTime},
	{fn: wire.Storage, cmd: 0x2c, name: "Run Initialization Agent", privilege: wire.Operator, least: 1, most: 1, run: runInitializationAgent},
	{fn: wire.SensorEvent, cmd: 0x20, name: "Get Device SDR Info", privilege: wire.User, most: 1, run: getDeviceSDRInfo},
	{fn: wire.SensorEvent, cmd: 0x21, name: "Get Device SDR", privilege: wire.User, least: 6, most: 6, run: getDeviceSDR},
	{fn: wire.SensorEvent, cmd: 0x22, name: "Reserve Device SDR Repository", privilege: wire.User, run: reserveDeviceSDRRepository},
})

// reservation is a reservation ID, which partial reads of a record need; only
// the last one given is valid.
type reservation struct{ id uint16 }

// sdrState is the volatile state of the SDR commands.
type sdrState struct {
	repositoryReservation, deviceReservation reservation
	partialRecord                            []byte // record of Partial Add SDR so far
}

// next gives out a new reservation, which cancels the previous one.
func (r *reservation) next() uint16 {
	if r.id++; r.id == 0 {
		r.id++
	}
	return r.id
}

// allocationUnit is the size of an allocation unit in bytes (§33.10).
const allocationUnit = 16

// getSDRRepositoryInfo handles Get SDR Repository Info (§33.9).
func getSDRRepositoryInfo(x *Request) error {
	const canAllocate, canReserve, canAddParts, canDelete, writable = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 5
	added, erased := x.repository().timestamp, uint32(unspecifiedTime)
	can := byte(canAllocate | canReserve)
	if x.Host.Dialect().IPMI.AddedSDRBytes > 0 {
		can |= canAddParts | canDelete | writable
	}
	if w := x.bmc().SDRs; w != nil {
		if !w.AddedAt.IsZero() {
			added = selTimestamp(x.bmc().Clock, w.AddedAt)
		}
		erased = selTimestamp(x.bmc().Clock, w.Erased)
	}
	x.put(sdr.Version)
	x.put16(uint16(len(x.records())))
	x.put16(uint16(x.sdrSpace()))
	x.put32(added)
	x.put32(erased)
	x.put(can)
	return nil
}

// unspecifiedTime is the timestamp "unspecified" (§37).
const unspecifiedTime = 0xffffffff

// getSDRAllocationInfo handles Get SDR Repository Allocation Info (§33.10).
func getSDRAllocationInfo(x *Request) error {
	all, most := 0, maxSDR/allocationUnit
	for _, rec := range x.records() {
		n := (len(rec) + allocationUnit - 1) / allocationUnit
		all, most = all+n, max(most, n)
	}
	free := x.sdrSpace() / allocationUnit
	x.put16(uint16(all + free))
	x.put16(allocationUnit)
	x.put16(uint16(free))
	x.put16(uint16(free))
	x.put(byte(most))
	return nil
}

// reserveSDRRepository handles Reserve SDR Repository (§33.11).
func reserveSDRRepository(x *Request) error {
	x.put16(x.State.repositoryReservation.next())
	return nil
}

// getSDR handles Get SDR (§33.12).
func getSDR(x *Request) error { return x.readSDR(x.records(), x.State.repositoryReservation) }

// readSDR answers with a part of a record. Reservation 0 is always accepted, as
// DCMI 1.5 demands (§6.5.3.1).
func (x *Request) readSDR(all [][]byte, held reservation) error {
	reserved, id, offset, count := le16(x.data), le16(x.data[2:]), int(x.data[4]), int(x.data[5])
	if offset > 0 && reserved != 0 && reserved != held.id {
		return ReservationCanceled
	}
	at, ok := recordAt(all, id)
	if !ok {
		return NotPresent
	}
	rec := all[at]
	faults := &x.Host.Dialect().IPMI.Faults
	if faults.DiscreteReadings {
		rec = sdr.AsDiscrete(rec)
	}
	if faults.ForeignOwner {
		rec = sdr.AsForeign(rec)
	}
	if count == 0xff {
		count = len(rec) - offset
	}
	switch {
	case offset >= len(rec):
		return ParameterOutOfRange
	case offset+count > len(rec), count > maxRead:
		return CannotReturnBytes
	}
	next := uint16(0xffff)
	if at+1 < len(all) {
		next = le16(all[at+1])
	}
	x.put16(next)
	x.put(rec[offset : offset+count]...)
	return nil
}

// recordAt returns the index of the record with an ID; 0 and FFFFh are the
// first and the last.
func recordAt(all [][]byte, id uint16) (int, bool) {
	switch {
	case len(all) == 0:
		return 0, false
	case id == 0:
		return 0, true
	case id == 0xffff:
		return len(all) - 1, true
	}
	return slices.BinarySearchFunc(all, id, func(rec []byte, id uint16) int { return int(le16(rec)) - int(id) })
}

// getSDRRepositoryTime handles Get SDR Repository Time (§33.17), which is also
// the SEL's.
func getSDRRepositoryTime(x *Request) error {
	x.put32(selTimestamp(x.bmc().Clock, x.clock()))
	return nil
}

// runInitializationAgent handles Run Initialization Agent (§33.21). Sensors
// need no initialization.
func runInitializationAgent(x *Request) error {
	if x.data[0]&^1 != 0 {
		return InvalidDataField
	}
	x.put(1)
	return nil
}

// getDeviceSDRInfo handles Get Device SDR Info (§35.2). The sensor population
// is static.
func getDeviceSDRInfo(x *Request) error {
	r := x.repository()
	n := len(r.sensors)
	if x.lun != 0 {
		n = 0
	}
	if len(x.data) > 0 {
		switch x.data[0] {
		case 0:
		case 1:
			n = len(r.records)
		default:
			return InvalidDataField
		}
	}
	x.put(byte(min(n, 0xff)), 1) // static population; sensors on LUN 0
	return nil
}

// getDeviceSDR handles Get Device SDR (§35.3).
func getDeviceSDR(x *Request) error {
	return x.readSDR(x.repository().records, x.State.deviceReservation)
}

// reserveDeviceSDRRepository handles Reserve Device SDR Repository (§35.4).
func reserveDeviceSDRRepository(x *Request) error {
	x.put16(x.State.deviceReservation.next())
	return nil
}

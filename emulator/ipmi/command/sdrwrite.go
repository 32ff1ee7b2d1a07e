package command

import (
	"bytes"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/ipmi/sdr"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// sdrWriteCommands are the commands that write the SDR repository, where a
// vendor's BMC allows it. Records do not change what the sensors are.
var sdrWriteCommands = []Row{
	{fn: wire.Storage, cmd: 0x24, name: "Add SDR", privilege: wire.Operator, least: sdr.HeaderSize, most: -1, mutates: true, supported: sdrWritable, run: addSDR},
	{fn: wire.Storage, cmd: 0x25, name: "Partial Add SDR", privilege: wire.Operator, least: 7, most: -1, mutates: true, supported: sdrWritable, run: partialAddSDR},
	{fn: wire.Storage, cmd: 0x26, name: "Delete SDR", privilege: wire.Operator, least: 4, most: 4, mutates: true, supported: sdrWritable, run: deleteSDR},
	{fn: wire.Storage, cmd: 0x27, name: "Clear SDR Repository", privilege: wire.Operator, least: 6, most: 6, mutates: true, supported: sdrWritable, run: clearSDRRepository},
}

func sdrWritable(d *dialect.Record) bool { return d.IPMI.AddedSDRBytes > 0 }

// maxSDR is the maximum record length in bytes (§33.10).
const maxSDR = 64

// records returns the repository's records by ID.
func (x *Request) records() [][]byte {
	made, w := x.repository().records, x.bmc().SDRs
	if w == nil {
		return made
	}
	var all [][]byte
	for i, rec := range made {
		if w.Has(uint16(i + 1)) {
			all = append(all, rec)
		}
	}
	for _, a := range w.Added {
		all = append(all, a.Bytes)
	}
	return all
}

// sdrSpace returns the free space of the repository in bytes.
func (x *Request) sdrSpace() int {
	left := x.Host.Dialect().IPMI.AddedSDRBytes
	if w := x.bmc().SDRs; w != nil {
		left -= w.Size()
	}
	return max(0, left)
}

// addSDR handles Add SDR (§33.13).
func addSDR(x *Request) error {
	if int(x.data[4]) != len(x.data)-sdr.HeaderSize {
		return DataLengthInvalid
	}
	return x.appendSDR(x.data)
}

// appendSDR stores a record under the next ID. It cancels the reservations,
// since record positions change.
func (x *Request) appendSDR(data []byte) error {
	if len(data) > maxSDR {
		return DataLengthInvalid
	}
	id := x.nextSDR()
	if id == 0xffff {
		return OutOfSpace
	}
	rec := bytes.Clone(data)
	rec[0], rec[1] = byte(id), byte(id>>8)
	if _, err := x.applyBMC(bmc.AddSensorRecord{SensorRecord: bmc.SensorRecord{ID: id, Bytes: rec}, Room: x.Host.Dialect().IPMI.AddedSDRBytes}); err != nil {
		return err
	}
	x.State.repositoryReservation.next()
	x.put16(id)
	return nil
}

// nextSDR returns the ID of the next record that is added.
func (x *Request) nextSDR() uint16 {
	if w := x.bmc().SDRs; w != nil && len(w.Added) > 0 {
		return w.Added[len(w.Added)-1].ID + 1
	}
	return uint16(len(x.repository().records) + 1)
}

// holdsSDRReservation reports whether a reservation is valid; 0 always is, for
// DCMI (§6.5.3.1).
func (x *Request) holdsSDRReservation(id uint16) bool {
	return id == 0 || id == x.State.repositoryReservation.id
}

// partialAddSDR handles Partial Add SDR (§33.14). Parts come in order, the
// first at offset 0.
func partialAddSDR(x *Request) error {
	offset, last, part := int(x.data[4]), x.data[5], x.data[6:]
	if !x.holdsSDRReservation(le16(x.data)) {
		return ReservationCanceled
	}
	if last > 1 {
		return InvalidDataField
	}
	adding := x.State.partialRecord
	if offset == 0 {
		adding = nil
	}
	if offset != len(adding) || offset+len(part) > maxSDR {
		return ParameterOutOfRange
	}
	adding = append(bytes.Clone(adding), part...)
	x.State.partialRecord = adding
	if last == 0 {
		x.put16(x.nextSDR())
		return nil
	}
	x.State.partialRecord = nil
	if len(adding) < sdr.HeaderSize || int(adding[4]) != len(adding)-sdr.HeaderSize {
		return Code(0x80)
	}
	return x.appendSDR(adding)
}

// deleteSDR handles Delete SDR (§33.15).
func deleteSDR(x *Request) error {
	if !x.holdsSDRReservation(le16(x.data)) {
		return ReservationCanceled
	}
	all := x.records()
	at, ok := recordAt(all, le16(x.data[2:]))
	if !ok {
		return NotPresent
	}
	id := le16(all[at])
	if _, err := x.applyBMC(bmc.RemoveSensorRecord{ID: id}); err != nil {
		return err
	}
	x.State.repositoryReservation.next()
	x.put16(id)
	return nil
}

// clearSDRRepository handles Clear SDR Repository (§33.16).
func clearSDRRepository(x *Request) error {
	const erase, status, completed = 0xaa, 0x00, 1
	switch {
	case !x.holdsSDRReservation(le16(x.data)):
		return ReservationCanceled
	case string(x.data[2:5]) != "CLR" || x.data[5] != erase && x.data[5] != status:
		return InvalidDataField
	case x.data[5] == erase:
		if _, err := x.applyBMC(bmc.ClearSensorRecords{}); err != nil {
			return err
		}
	}
	x.put(completed)
	return nil
}

package ipmi

import (
	"fmt"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/sdr"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// bits are some states.
func bits(states ...int) uint16 {
	var out uint16
	for _, s := range states {
		out |= 1 << s
	}
	return out
}

// when is one state, if it is so.
func when(state int, is bool) uint16 {
	if is {
		return 1 << state
	}
	return 0
}

// discrete adds the sensors that have states (tables 42-2 and 42-3).
func (b *builder) discrete() {
	b.ofSystem()
	supplies, fans := b.p.Thermal.Supplies, b.p.Thermal.Fans
	for n := range supplies.Count {
		b.states(numberSupply+n, sensor{
			Key: key(sel.Supply, entitySupply, n, numbered("PSU %d Status", n)), of: event.Subject{Part: event.Supply, ID: thermal.SupplyID(n)},
			asserts: bits(0, 1, 3), deasserts: bits(0, 1, 3), states: bits(0, 1, 3),
			read: func(x *exchange) uint16 { return supplyStates[x.machine().Thermal.SupplyFault(n)] },
		})
	}
	if supplies.Count > supplies.Needed {
		b.redundancy("PSU Redundancy", sel.PowerUnit, entityPowerUnit, thermal.View.SupplyRedundancy)
	}
	if fans.Count > fans.Needed {
		b.redundancy("Fan Redundancy", sel.Cooling, entityCooling, thermal.View.FanRedundancy)
	}
	for n := range b.p.Processors.Sockets {
		temperature := fmt.Sprintf("CPU%dTemp", n+1)
		b.states(numberProcessor+n, sensor{
			Key: key(sel.Processor, entityProcessor, n, numbered("CPU %d Status", n)), of: event.Subject{Part: event.System, ID: fmt.Sprint("CPU", n+1)},
			asserts: bits(1, 10), deasserts: bits(10), states: bits(1, 7, 10),
			read: func(x *exchange) uint16 {
				t := x.machine().Thermal
				is, wanted := t.Load()
				return bits(7) | when(1, t.Level(temperature) == thermal.Fatal) | when(10, is < wanted)
			},
		})
	}
	for i, nic := range b.p.NICs {
		b.states(numberLink+i, sensor{
			Key: key(sel.LAN, entityCard, i, numbered("NIC %d Link", i)), of: event.Subject{Part: event.NIC, ID: nic.ID},
		})
	}
	n := 0
	for _, c := range b.p.Storage {
		for range c.Bays {
			id := fmt.Sprintf("Disk.%d", n)
			b.states(numberDrive+n, sensor{
				Key: key(sel.Drive, entityDriveBay, n, bayName(id)), of: event.Subject{Part: event.Drive, ID: id},
				asserts: bits(0, 1, 2, 3, 4, 5, 6, 7), deasserts: bits(0, 1, 2, 3, 4, 5, 6, 7), states: bits(0, 1, 2, 3, 4, 5, 6, 7),
				read: func(x *exchange) uint16 { return driveStates(x.machine().Storage, id) },
			})
			n++
		}
	}
	for n := range b.p.Memory.Modules {
		b.states(numberMemory+n, sensor{
			Key: key(sel.Memory, entityDIMM, n, numbered("DIMM %d Status", n)), of: event.Subject{Part: event.System, ID: fmt.Sprint("DIMM", n+1)},
			asserts: bits(0, 1), states: bits(6), read: func(*exchange) uint16 { return bits(6) },
		})
	}
}

// key is that of the n-th sensor of its kind.
func key(t sel.Sensor, entity byte, n int, name string) sdr.Key {
	return sdr.Key{Entity: sdr.Entity{ID: entity, Instance: byte(n + 1)}, Type: byte(t), Reading: sdr.SpecificReading, Name: name}
}

func (b *builder) states(number int, s sensor) { b.add(number, s) }

// supplyStates are those of a power supply by what is wrong with it.
var supplyStates = map[thermal.Fault]uint16{
	thermal.NoFault: bits(0), thermal.Failed: bits(0, 1), thermal.NoInput: bits(0, 3), thermal.Absent: 0,
}

// redundancies are the states of redundancy (table 42-2, type 0Bh).
var redundancies = map[thermal.Redundancy]uint16{thermal.Redundant: bits(0), thermal.Bare: bits(1), thermal.Insufficient: bits(5)}

func (b *builder) redundancy(name string, t sel.Sensor, entity byte, of func(thermal.View) thermal.Redundancy) {
	s := sensor{
		Key: key(t, entity, 0, name), of: event.Subject{Part: event.Chassis}, asserts: bits(0, 1, 5), states: bits(0, 1, 5),
		read: func(x *exchange) uint16 { return redundancies[of(x.machine().Thermal)] },
	}
	s.Reading = sdr.RedundancyReading
	b.states(numberSystem, s)
}

// ofSystem adds the sensors that there is one of each.
func (b *builder) ofSystem() {
	system := event.Subject{Part: event.System}
	for _, s := range []sensor{
		{
			// That the power is off is told, and is no state: the one for that
			// would be read as trouble.
			Key: key(sel.PowerUnit, entityPowerUnit, 0, "Power Unit"), of: system, asserts: bits(0, 1, 4, 5, 6), states: bits(4, 6),
			read: func(x *exchange) uint16 {
				v := x.machine()
				return when(4, !v.AC) | when(6, v.Profile.Thermal.Supplies.Count > 0 && v.Thermal.SupplyRedundancy() == thermal.Insufficient)
			},
		},
		{
			Key: key(sel.ACPI, entitySystem, 0, "ACPI State"), of: system, asserts: bits(0, 6), states: bits(0, 6),
			read: func(x *exchange) uint16 {
				off := x.machine().Power == machine.PowerOff
				return when(0, !off) | when(6, off)
			},
		},
		{
			Key: key(sel.Watchdog, entityController, 0, "Watchdog"), of: system, asserts: bits(0, 1, 2, 3, 8), states: bits(8),
			read: func(x *exchange) uint16 { return when(8, x.machine().Watchdog.Warned) },
		},
		{
			Key: key(sel.Logging, entityController, 0, "SEL"), of: event.Subject{Part: event.Log}, asserts: bits(2, 4, 5), states: bits(4, 5),
			read: func(x *exchange) uint16 {
				n, most, full := x.bmc().Log.Len(), x.bmc().Spec.Log.Size, x.bmc().Spec.Log.Full == bmc.Stays
				return when(4, full && n >= most) | when(5, full && n*4 >= most*3)
			},
		},
		{
			Key: key(sel.Intrusion, entityChassis, 0, "Intrusion"), of: event.Subject{Part: event.Chassis}, asserts: bits(0), deasserts: bits(0), states: bits(0),
			read: func(x *exchange) uint16 { return when(0, x.machine().Lid.Seen) },
		},
		{Key: key(sel.Interrupt, entityBoard, 0, "Critical Int"), of: system},
		{Key: key(sel.OSStop, entitySystem, 0, "OS Stop"), of: system},
		{
			Key: key(sel.BootError, entityFirmware, 0, "Boot Error"), of: system, asserts: bits(0), states: bits(0),
			read: func(x *exchange) uint16 { return when(0, x.machine().Phase == machine.Halted) },
		},
		{Key: key(sel.Version, entityController2, 0, "Version Change"), of: event.Subject{Part: event.Component}},
		{Key: key(sel.Management, entityController, 0, "BMC Health"), of: event.Subject{Part: event.BMC}},
		{Key: key(sel.Sessions, entityController, 0, "Session Audit"), of: event.Subject{Part: event.Account}},
		{Key: key(sel.System, entityController, 0, "System Event"), of: system},
	} {
		b.states(numberSystem, s)
	}
}

// driveStates are those of a drive's bay.
func driveStates(v storage.View, bay string) uint16 {
	d, ok := v.Drive(bay)
	if !ok {
		return 0
	}
	out := bits(0) | when(1, d.State == storage.DriveFailed) | when(2, d.Predicted) | when(3, d.Spare != "")
	for _, id := range d.Volumes {
		a, ok := v.Volume(d.Controller, id)
		if !ok {
			continue
		}
		out |= when(5, a.Degraded()) | when(6, a.Health() == event.Critical)
		for _, o := range a.Ops {
			out |= when(4, o.Kind == storage.OpCheck)
		}
	}
	return out | when(7, d.Op != nil && d.Op.Kind == storage.OpRebuild)
}

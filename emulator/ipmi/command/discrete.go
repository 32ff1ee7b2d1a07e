package command

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

// stateBits returns a state mask.
func stateBits(states ...int) uint16 {
	var out uint16
	for _, s := range states {
		out |= 1 << s
	}
	return out
}

// stateIf returns the mask of one state when is is true, else 0.
func stateIf(state int, is bool) uint16 {
	if is {
		return 1 << state
	}
	return 0
}

// discreteSensors adds the sensors with discrete states (tables 42-2 and 42-3).
func (b *builder) discreteSensors() {
	b.systemSensors()
	supplies, fans := b.p.Thermal.Supplies, b.p.Thermal.Fans
	for n := range supplies.Count {
		b.states(numberSupply+n, sensor{
			Key: key(sel.Supply, entitySupply, n, numberedName("PSU %d Status", n)), subject: event.Subject{Part: event.Supply, ID: thermal.SupplyID(n)},
			asserts: stateBits(0, 1, 3), deasserts: stateBits(0, 1, 3), states: stateBits(0, 1, 3),
			read: func(x *Request) uint16 { return supplyStates[x.machine().Thermal.SupplyFault(n)] },
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
			Key: key(sel.Processor, entityProcessor, n, numberedName("CPU %d Status", n)), subject: event.Subject{Part: event.System, ID: fmt.Sprint("CPU", n+1)},
			asserts: stateBits(1, 10), deasserts: stateBits(10), states: stateBits(1, 7, 10),
			read: func(x *Request) uint16 {
				t := x.machine().Thermal
				is, wanted := t.Load()
				return stateBits(7) | stateIf(1, t.Level(temperature) == thermal.Fatal) | stateIf(10, is < wanted)
			},
		})
	}
	for i, nic := range b.p.NICs {
		b.states(numberLink+i, sensor{
			Key: key(sel.LAN, entityCard, i, numberedName("NIC %d Link", i)), subject: event.Subject{Part: event.NIC, ID: nic.ID},
		})
	}
	n := 0
	for _, c := range b.p.Storage {
		for range c.Bays {
			id := fmt.Sprintf("Disk.%d", n)
			b.states(numberDrive+n, sensor{
				Key: key(sel.Drive, entityDriveBay, n, bayName(id)), subject: event.Subject{Part: event.Drive, ID: id},
				asserts: stateBits(0, 1, 2, 3, 4, 5, 6, 7), deasserts: stateBits(0, 1, 2, 3, 4, 5, 6, 7), states: stateBits(0, 1, 2, 3, 4, 5, 6, 7),
				read: func(x *Request) uint16 { return driveStates(x.machine().Storage, id) },
			})
			n++
		}
	}
	for n := range b.p.Memory.Modules {
		b.states(numberMemory+n, sensor{
			Key: key(sel.Memory, entityDIMM, n, numberedName("DIMM %d Status", n)), subject: event.Subject{Part: event.System, ID: fmt.Sprint("DIMM", n+1)},
			asserts: stateBits(0, 1), states: stateBits(6), read: func(*Request) uint16 { return stateBits(6) },
		})
	}
}

// key returns the key of the n-th sensor of its kind.
func key(t sel.Sensor, entity byte, n int, name string) sdr.Key {
	return sdr.Key{Entity: sdr.Entity{ID: entity, Instance: byte(n + 1)}, Type: byte(t), Reading: sdr.SpecificReading, Name: name}
}

func (b *builder) states(number int, s sensor) { b.add(number, s) }

// supplyStates maps faults of a power supply to sensor states.
var supplyStates = map[thermal.Fault]uint16{
	thermal.NoFault: stateBits(0), thermal.Failed: stateBits(0, 1), thermal.NoInput: stateBits(0, 3), thermal.Absent: 0,
}

// redundancies maps redundancy to sensor states (table 42-2, type 0Bh).
var redundancies = map[thermal.Redundancy]uint16{thermal.Redundant: stateBits(0), thermal.Bare: stateBits(1), thermal.Insufficient: stateBits(5)}

func (b *builder) redundancy(name string, t sel.Sensor, entity byte, of func(thermal.View) thermal.Redundancy) {
	s := sensor{
		Key: key(t, entity, 0, name), subject: event.Subject{Part: event.Chassis}, asserts: stateBits(0, 1, 5), states: stateBits(0, 1, 5),
		read: func(x *Request) uint16 { return redundancies[of(x.machine().Thermal)] },
	}
	s.Reading = sdr.RedundancyReading
	b.states(numberSystem, s)
}

// systemSensors adds the sensors that exist once per system.
func (b *builder) systemSensors() {
	system := event.Subject{Part: event.System}
	for _, s := range []sensor{
		{
			// Power off generates an event but is no state: clients would show
			// the state as a failure.
			Key: key(sel.PowerUnit, entityPowerUnit, 0, "Power Unit"), subject: system, asserts: stateBits(0, 1, 4, 5, 6), states: stateBits(4, 6),
			read: func(x *Request) uint16 {
				v := x.machine()
				return stateIf(4, !v.AC) | stateIf(6, v.Profile.Thermal.Supplies.Count > 0 && v.Thermal.SupplyRedundancy() == thermal.Insufficient)
			},
		},
		{
			Key: key(sel.ACPI, entitySystem, 0, "ACPI State"), subject: system, asserts: stateBits(0, 6), states: stateBits(0, 6),
			read: func(x *Request) uint16 {
				off := x.machine().Power == machine.PowerOff
				return stateIf(0, !off) | stateIf(6, off)
			},
		},
		{
			Key: key(sel.Watchdog, entityController, 0, "Watchdog"), subject: system, asserts: stateBits(0, 1, 2, 3, 8), states: stateBits(8),
			read: func(x *Request) uint16 { return stateIf(8, x.machine().Watchdog.Warned) },
		},
		{
			Key: key(sel.Logging, entityController, 0, "SEL"), subject: event.Subject{Part: event.Log}, asserts: stateBits(2, 4, 5), states: stateBits(4, 5),
			read: func(x *Request) uint16 {
				n, most, full := x.bmc().Log.Len(), x.bmc().Spec.Log.Size, x.bmc().Spec.Log.Full == bmc.Stays
				return stateIf(4, full && n >= most) | stateIf(5, full && n*4 >= most*3)
			},
		},
		{
			Key: key(sel.Intrusion, entityChassis, 0, "Intrusion"), subject: event.Subject{Part: event.Chassis}, asserts: stateBits(0), deasserts: stateBits(0), states: stateBits(0),
			read: func(x *Request) uint16 { return stateIf(0, x.machine().PhysicalSecurity.Intrusion) },
		},
		{Key: key(sel.Interrupt, entityBoard, 0, "Critical Int"), subject: system},
		{Key: key(sel.OSStop, entitySystem, 0, "OS Stop"), subject: system},
		{
			Key: key(sel.BootError, entityFirmware, 0, "Boot Error"), subject: system, asserts: stateBits(0), states: stateBits(0),
			read: func(x *Request) uint16 { return stateIf(0, x.machine().Phase == machine.Halted) },
		},
		{Key: key(sel.Version, entityController2, 0, "Version Change"), subject: event.Subject{Part: event.Component}},
		{Key: key(sel.Management, entityController, 0, "BMC Health"), subject: event.Subject{Part: event.BMC}},
		{Key: key(sel.Sessions, entityController, 0, "Session Audit"), subject: event.Subject{Part: event.Account}},
		{Key: key(sel.System, entityController, 0, "System Event"), subject: system},
	} {
		b.states(numberSystem, s)
	}
}

// driveStates returns the states of a drive bay's sensor.
func driveStates(v storage.View, bay string) uint16 {
	d, ok := v.Drive(bay)
	if !ok {
		return 0
	}
	out := stateBits(0) | stateIf(1, d.State == storage.DriveFailed) | stateIf(2, d.Predicted) | stateIf(3, d.Spare != "")
	for _, id := range d.Volumes {
		a, ok := v.Volume(d.Controller, id)
		if !ok {
			continue
		}
		out |= stateIf(5, a.Degraded()) | stateIf(6, a.Health() == event.Critical)
		for _, o := range a.Ops {
			out |= stateIf(4, o.Kind == storage.OpCheck)
		}
	}
	return out | stateIf(7, d.Op != nil && d.Op.Kind == storage.OpRebuild)
}

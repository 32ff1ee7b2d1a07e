package command

import (
	"fmt"
	"hash/crc32"
	"runtime"
	"strings"
	"sync"
	"time"
	"weak"

	"github.com/metalab-dev/metalab/emulator/ipmi/sdr"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// Entity IDs of sensors and FRU devices (table 43-13).
const (
	entityProcessor   = 0x03
	entityDriveBay    = 0x1a
	entityController  = 0x06
	entityBoard       = 0x07
	entityMemory      = 0x08 // memory module of a processor
	entitySupply      = 0x0a
	entityCard        = 0x0b
	entityPowerUnit   = 0x13
	entityChassis     = 0x17
	entityFan         = 0x1d
	entityCooling     = 0x1e
	entityDIMM        = 0x20
	entityFirmware    = 0x22
	entitySystem      = 0x23
	entityController2 = 0x2e // firmware of a controller
	entityInlet       = 0x37
)

// units are the sensor unit codes of readings (table 43-15).
var units = map[thermal.Kind]byte{thermal.Temperature: 1, thermal.Voltage: 4, thermal.Power: 6, thermal.Speed: 18}

// numericTypes are the sensor types of numeric sensors (table 42-3).
var numericTypes = map[thermal.Kind]sel.Sensor{
	thermal.Temperature: sel.Temperature, thermal.Voltage: sel.Voltage, thermal.Power: sel.Units, thermal.Speed: sel.Fan,
}

// First sensor numbers by kind. Those of temperatures, fans and voltages are
// the numbers that Redfish's Thermal and Power resources show.
const (
	numberTemperature = 0x01
	numberFan         = 0x30
	numberVoltage     = 0x40
	numberInput       = 0x58 // power supply input
	numberPower       = 0x60
	numberSupply      = 0x70
	numberSystem      = 0x78
	numberLink        = 0x88
	numberProcessor   = 0x90
	numberDrive       = 0xa0
	numberMemory      = 0xd0
	numberLast        = 0xfe
)

// sensor is an IPMI sensor and the part of the machine that it measures.
type sensor struct {
	sdr.Key
	record  uint16
	subject event.Subject
	// Of a numeric sensor.
	numeric       *thermal.Sensor
	factors       sdr.Factors
	thresholdMask byte // bit mask of the thresholds that it has
	// Of a discrete sensor.
	asserts, deasserts, states uint16
	read                       func(x *Request) uint16
}

// eventOnly reports whether the sensor generates events but has no reading.
func (s *sensor) eventOnly() bool { return s.numeric == nil && s.read == nil }

// repository holds the sensor data records of a server model. It is immutable
// and shared by all servers of the model.
type repository struct {
	records   [][]byte // record IDs are indexes, counted from 1
	sensors   []sensor
	frus      []fruDevice
	byNumber  [256]*sensor
	timestamp uint32 // when it was built, in seconds since 1970; a different content has a different time
}

// repositories holds the repository of each profile by weak.Pointer, so that it
// is freed with its profile.
var repositories sync.Map

// repositoryOf returns the repository of a profile, built at the first call.
func repositoryOf(p *machine.Profile) *repository {
	key := weak.Make(p)
	if r, ok := repositories.Load(key); ok {
		return r.(*repository)
	}
	r, known := repositories.LoadOrStore(key, newRepository(p))
	if !known {
		runtime.AddCleanup(p, func(key weak.Pointer[machine.Profile]) { repositories.Delete(key) }, key)
	}
	return r.(*repository)
}

func (x *Request) repository() *repository { return repositoryOf(x.machine().Profile) }

// sensor returns the sensor with a number on the request's LUN.
func (x *Request) sensor(number byte) (*sensor, error) {
	if number == 0xff {
		return nil, InvalidDataField // reserved
	}
	if s := x.repository().byNumber[number]; s != nil && x.lun == 0 {
		return s, nil
	}
	return nil, NotPresent
}

// sensorOf returns the sensor of a type that measures a part; without one, the
// only sensor of that type; nil when that is ambiguous.
func (r *repository) sensorOf(t sel.Sensor, of event.Subject) *sensor {
	var only *sensor
	n := 0
	for i := range r.sensors {
		s := &r.sensors[i]
		switch {
		case s.Type != byte(t):
		case s.subject == of:
			return s
		default:
			only = s
			n++
		}
	}
	if n != 1 {
		return nil
	}
	return only
}

// builder builds a repository.
type builder struct {
	p    *machine.Profile
	r    *repository
	used [256]bool
}

func newRepository(p *machine.Profile) *repository {
	b := builder{p: p, r: new(repository)}
	b.numericSensors()
	b.discreteSensors()
	for i := range b.r.sensors {
		s := &b.r.sensors[i]
		b.r.byNumber[s.Number] = s
		s.record = b.next()
		b.r.records = append(b.r.records, s.append(s.record))
	}
	b.r.frus = fruDevices(p)
	for _, f := range b.r.frus {
		if f.id != 0 { // the record of FRU device 0 is its controller's
			b.r.records = append(b.r.records, sdr.FRU{Owner: bmcAddress, ID: f.id, Entity: f.entity, Name: f.name}.Append(nil, b.next()))
		}
	}
	for _, c := range []sdr.Controller{
		{Address: bmcAddress, Devices: 0xbf, Entity: sdr.Entity{ID: entityController, Instance: 1}, Name: "BMC"},
		// Static controller, event generator, not initialized by others.
		{Address: managementEngine, Global: 0x22, Devices: 0x20, Entity: sdr.Entity{ID: entityController2, Instance: 1}, Name: "Chipset ME"},
	} {
		b.r.records = append(b.r.records, c.Append(nil, b.next()))
	}
	sum := crc32.NewIEEE()
	for _, rec := range b.r.records {
		sum.Write(rec)
	}
	// Clients that cache SDRs compare this timestamp.
	const span = 365 * 24 * 60 * 60
	b.r.timestamp = uint32(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC).Unix()) + sum.Sum32()%span
	return b.r
}

// next returns the next record ID.
func (b *builder) next() uint16 { return uint16(len(b.r.records) + 1) }

// number allocates a sensor number: the wanted one, or any that is free.
func (b *builder) number(wanted int) (byte, bool) {
	for ; wanted < numberLast && b.used[wanted]; wanted++ {
	}
	if wanted >= numberLast {
		for wanted = numberLast; wanted > 0 && b.used[wanted]; wanted-- {
		}
	}
	b.used[wanted] = true
	return byte(wanted), wanted > 0
}

// add adds a sensor unless all numbers are in use.
func (b *builder) add(wanted int, s sensor) {
	n, ok := b.number(wanted)
	if !ok {
		return
	}
	s.Owner, s.Number = bmcAddress, n
	b.r.sensors = append(b.r.sensors, s)
}

// numericSensors adds the sensors with numeric readings. Energy does not fit
// into a byte.
func (b *builder) numericSensors() {
	model := &b.p.Thermal
	next := map[thermal.Kind]int{thermal.Temperature: numberTemperature, thermal.Speed: numberFan, thermal.Voltage: numberVoltage, thermal.Power: numberPower}
	counted := map[byte]byte{}
	for i := range model.Sensors {
		t := &model.Sensors[i]
		kind, ok := numericTypes[t.Kind]
		if !ok {
			continue
		}
		s := sensor{numeric: t, factors: readingFactorsOf(model, t), thresholdMask: thresholdsOf(&t.Limits), subject: event.Subject{Part: event.Sensor, ID: t.ID}}
		if t.Kind == thermal.Speed {
			s.subject.Part = event.Fan
		}
		s.Key = sdr.Key{Entity: sensorEntity(t), Type: byte(kind), Reading: sdr.ThresholdReading, Name: shortName(t.Name)}
		if s.Entity.Instance == 0 {
			counted[s.Entity.ID]++
			s.Entity.Instance = counted[s.Entity.ID]
		}
		wanted := next[t.Kind]
		if t.Kind == thermal.Voltage && t.Part == thermal.Supply {
			wanted = numberInput + t.N
		} else {
			next[t.Kind]++
		}
		b.add(wanted, s)
	}
}

// shortName returns a name that fits into a record.
func shortName(name string) string {
	for _, w := range [][2]string{{"Input", "In"}, {"Output", "Out"}, {"Voltage", "Volt"}, {"Temperature", "Temp"}} {
		if len(name) > sdr.MaxName {
			name = strings.Replace(name, w[0], w[1], 1)
		}
	}
	return name[:min(len(name), sdr.MaxName)]
}

// sensorEntity returns the entity of a sensor; instance 0 is replaced by a
// counter.
func sensorEntity(t *thermal.Sensor) sdr.Entity {
	n := byte(t.N + 1)
	switch {
	case t.Part == thermal.Processor:
		return sdr.Entity{ID: entityProcessor, Instance: n}
	case t.Part == thermal.Memory:
		return sdr.Entity{ID: entityMemory, Instance: n}
	case t.Part == thermal.Fan:
		return sdr.Entity{ID: entityFan, Instance: n}
	case t.Part == thermal.Supply:
		return sdr.Entity{ID: entitySupply, Instance: n}
	case t.Kind == thermal.Power:
		return sdr.Entity{ID: entityPowerUnit, Instance: 1}
	case t.Context == "Intake":
		return sdr.Entity{ID: entityInlet}
	case t.Kind == thermal.Temperature:
		return sdr.Entity{ID: entityBoard}
	}
	return sdr.Entity{ID: entityBoard, Instance: 1}
}

// readingFactorsOf returns factors by which a sensor's readings fit into a
// byte; thresholds are exact where possible.
func readingFactorsOf(m *thermal.Model, t *thermal.Sensor) sdr.Factors {
	var exact []float64
	for i := range 6 {
		if at := limit(&t.Limits, i); at != nil && *at != nil {
			exact = append(exact, **at)
		}
	}
	const room = 1.015 // tolerance between servers of a model
	switch {
	case t.Kind == thermal.Temperature:
		return sdr.Factors{M: 1, Signed: true}
	case t.Kind == thermal.Speed:
		return sdr.Fit(m.Fans.RPM*room, t.Step, exact...)
	case t.Kind == thermal.Power && t.Part == thermal.Processor:
		return sdr.Fit(m.Watts.Processors*room, t.Step)
	case t.Kind == thermal.Power && t.Part == thermal.Memory:
		return sdr.Fit(m.Watts.Memory*room, t.Step)
	case t.Kind == thermal.Power:
		return sdr.Fit(m.Watts.Full*room*100/efficiencyOrOne(m.Supplies.Efficiency), t.Step)
	case t.Part == thermal.Supply:
		return sdr.Fit(m.Supplies.Volts*1.1, t.Step)
	}
	most := 1.0
	if t.Limits.Critical != nil {
		most = *t.Limits.Critical
	}
	return sdr.Fit(most, t.Step, exact...)
}

// efficiencyOrOne returns a power supply efficiency in percent, or 100 for a
// server without power supplies.
func efficiencyOrOne(percent float64) float64 {
	if percent == 0 {
		return 100
	}
	return percent
}

// append returns the sensor data record of a sensor.
func (s *sensor) append(id uint16) []byte {
	if s.eventOnly() {
		return sdr.EventOnly{Key: s.Key}.Append(nil, id)
	}
	if s.numeric == nil {
		return sdr.Compact{Key: s.Key, Asserts: s.asserts, Deasserts: s.deasserts, States: s.states}.Append(nil, id)
	}
	f := sdr.Full{Key: s.Key, Unit: units[s.numeric.Kind], Factors: s.factors, Thresholds: s.thresholds(&s.numeric.Limits)}
	f.Hysteresis, f.NegativeHysteresis = s.hysteresis(&s.numeric.Limits)
	switch s.numeric.Measure {
	case thermal.Input:
		f.Direction = 1
	case thermal.Output:
		f.Direction = 2
	}
	if l := &s.numeric.Limits; l.LowCritical != nil && l.Critical != nil && s.numeric.Kind == thermal.Voltage {
		nominal := s.factors.Raw((*l.LowCritical + *l.Critical) / 2)
		f.Nominal = &nominal
	}
	return f.Append(nil, id)
}

// bayName returns the name of a drive bay's sensor.
func bayName(id string) string { return shortName(strings.Replace(id, "Disk.", "Drive ", 1)) }

// numberedName returns a name with a number, counted from 1.
func numberedName(format string, n int) string { return shortName(fmt.Sprintf(format, n+1)) }

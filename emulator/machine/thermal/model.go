package thermal

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Model describes how a server model produces heat, is cooled and is powered.
// It is a section of a hardware profile: parsed once, prepared by Complete, and
// then immutable.
type Model struct {
	Ambient  float64      `json:"ambient"` // default ambient temperature, in °C
	Watts    Watts        `json:"watts"`
	Work     map[Work]int `json:"work"` // utilization by work, in percent
	Zones    []Zone       `json:"zones"`
	Fans     Fans         `json:"fans"`
	Supplies Supplies     `json:"supplies"`
	Rails    []Rail       `json:"rails"`
	Sensors  []Sensor     `json:"-"` // in the order in which services list them

	places  map[string]int // indexes of Sensors by ID
	lagging int            // number of lagging sensors
	follows int            // index of the zone that the fans follow
}

// Watts holds a server's power consumption, all of which becomes heat.
type Watts struct {
	Standby    float64 `json:"standby"`    // off: the BMC
	Idle       float64 `json:"idle"`       // on, without load
	Full       float64 `json:"full"`       // on, at full load
	Processors float64 `json:"processors"` // the processors' share of Full
	Memory     float64 `json:"memory"`     // the memory's share of Full
}

// Work is what a server is doing. Values are stored.
type Work string

// The works.
const (
	Starting Work = "starting" // powering on
	Testing  Work = "post"     // power-on self test
	Waiting  Work = "firmware" // waiting in the firmware, or trying boot sources
	Loading  Work = "loading"  // loading an operating system
	Idling   Work = "idle"     // operating system without load
	Working  Work = "working"  // operating system under load
)

// Works lists all works.
var Works = []Work{Starting, Testing, Waiting, Loading, Idling, Working}

// Zone is a place in the server. Its temperature rises above ambient with the
// load and with missing airflow.
type Zone struct {
	ID      string     `json:"id"`      // ID of its sensor; {n} is replaced by the socket number
	Name    string     `json:"name"`    // name of its sensor; {n} is replaced by the socket number
	Each    string     `json:"each"`    // "socket": one per socket; "": one
	Context string     `json:"context"` // PhysicalContext of its sensor (DSP2046, Sensor.PhysicalContext)
	Rise    [2]float64 `json:"rise"`    // °C above ambient, idle and at full load
	Lag     float64    `json:"lag"`     // time constant, in seconds
	Standby bool       `json:"standby"` // its sensor has a reading while the server is off
	Limits  Limits     `json:"limits"`
}

// Fans describes a server's fans, which are all alike.
type Fans struct {
	Count   int        `json:"count"`   // number of fans
	Needed  int        `json:"needed"`  // number that suffices
	RPM     float64    `json:"rpm"`     // maximum speed
	Least   float64    `json:"least"`   // minimum speed, in percent of RPM
	Follows string     `json:"follows"` // ID of the zone whose temperature sets the speed
	Curve   [2]float64 `json:"curve"`   // temperatures of that zone at minimum and at maximum speed, in °C
	Vendor  string     `json:"vendor"`  // manufacturer
	Product string     `json:"product"` // model name
}

// Supplies describes a server's power supplies, which are all alike and share
// the load.
type Supplies struct {
	Count      int     `json:"count"`      // number of power supplies
	Needed     int     `json:"needed"`     // number that suffices
	Watts      float64 `json:"watts"`      // rated output power of each
	Volts      float64 `json:"volts"`      // input voltage
	Hertz      float64 `json:"hertz"`      // input frequency
	Efficiency float64 `json:"efficiency"` // in percent
	Vendor     string  `json:"vendor"`     // manufacturer
	Product    string  `json:"product"`    // model name
	PartNumber string  `json:"partNumber"` // the manufacturer's part number
	Component  string  `json:"component"`  // ID of their firmware component; "" when it cannot be updated
}

// Rail is a voltage rail.
type Rail struct {
	ID      string  `json:"id"`      // ID of its sensor
	Name    string  `json:"name"`    // name of its sensor
	Each    string  `json:"each"`    // as in Zone
	Context string  `json:"context"` // PhysicalContext of its sensor
	Volts   float64 `json:"volts"`   // nominal voltage
	Droop   float64 `json:"droop"`   // drop at full load, in percent
	Standby bool    `json:"standby"` // its sensor has a reading while the server is off
}

// Limits are a sensor's thresholds; nil: none.
type Limits struct {
	LowCritical *float64 `json:"lowCritical"` // lower critical threshold
	LowCaution  *float64 `json:"lowCaution"`  // lower caution threshold
	Caution     *float64 `json:"caution"`     // upper caution threshold
	Critical    *float64 `json:"critical"`    // upper critical threshold
	Fatal       *float64 `json:"fatal"`       // at which the server powers off
	Hysteresis  float64  `json:"hysteresis"`  // distance by which a reading must return before it leaves a level
	// LowHysteresis applies to the low thresholds; nil: Hysteresis.
	LowHysteresis *float64 `json:"lowHysteresis,omitempty"`
}

// Kind is a sensor's physical quantity.
type Kind string

// The kinds.
const (
	Temperature Kind = "temperature" // °C
	Speed       Kind = "speed"       // RPM of a fan
	Voltage     Kind = "voltage"     // V
	Power       Kind = "power"       // W
	Energy      Kind = "energy"      // kWh
)

// Part is the part that a sensor belongs to, with which services show the
// reading too.
type Part string

// The parts.
const (
	Chassis   Part = "chassis"
	Processor Part = "processor"
	Memory    Part = "memory" // memory of one socket
	Fan       Part = "fan"
	Supply    Part = "supply"
	Board     Part = "board"
)

// Measure distinguishes sensors of the same kind and part.
type Measure string

// The measures, where there are several.
const (
	Reads  Measure = "" // the only one
	Input  Measure = "input"
	Output Measure = "output"
)

// Sensor describes a sensor.
type Sensor struct {
	ID      string // "CPU1Temp"
	Name    string // for display
	Kind    Kind
	Part    Part
	N       int // index of the part, from 0
	Measure Measure
	Context string  // location (DSP2046, PhysicalContext)
	Step    float64 // resolution of readings
	Limits  Limits
	Standby bool // has a reading while the server is off

	slot  int     // index in State.Values; -1 without lag
	lag   float64 // seconds
	zone  int
	rail  int
	share float64 // variation between servers: in °C for a temperature, else relative
}

// FanID returns the ID of the n-th fan.
func FanID(n int) string { return fmt.Sprint("Fan", n+1) }

// SupplyID returns the ID of the n-th power supply.
func SupplyID(n int) string { return fmt.Sprint("PSU", n+1) }

// Complete prepares a parsed model that Check accepts, for a server with that
// many processors.
func (m *Model) Complete(sockets int) {
	m.Sensors, m.places, m.lagging = nil, map[string]int{}, 0
	if m.Watts.Full == 0 { // a profile without thermal section
		return
	}
	add := func(s Sensor) {
		s.slot = -1
		if s.lag > 0 {
			s.slot = m.lagging
			m.lagging++
		}
		m.places[s.ID] = len(m.Sensors)
		m.Sensors = append(m.Sensors, s)
	}
	each := func(kind string, f func(n int, name func(string) string)) {
		count := 1
		if kind == "socket" {
			count = sockets
		}
		for n := range count {
			f(n, func(s string) string { return strings.ReplaceAll(s, "{n}", fmt.Sprint(n+1)) })
		}
	}
	for i, z := range m.Zones {
		if z.ID == m.Fans.Follows {
			m.follows = i
		}
		each(z.Each, func(n int, name func(string) string) {
			add(Sensor{
				ID: name(z.ID), Name: name(z.Name), Kind: Temperature, Part: parts[z.Context], N: n, Context: z.Context, Step: 1,
				Limits: z.Limits, Standby: z.Standby, lag: z.Lag, zone: i, share: 1,
			})
		})
	}
	stalled := m.Fans.RPM * m.Fans.Least / 100 / 2
	for n := range m.Fans.Count {
		add(Sensor{
			ID: FanID(n), Name: fmt.Sprint("Fan ", n+1), Kind: Speed, Part: Fan, N: n, Context: "Fan", Step: 60,
			Limits: Limits{LowCritical: &stalled, Hysteresis: 60}, lag: max(1, m.Zones[m.follows].Lag), share: 0.015,
		})
	}
	for i, r := range m.Rails {
		low, high := r.Volts*0.9, r.Volts*1.1
		each(r.Each, func(n int, name func(string) string) {
			add(Sensor{
				ID: name(r.ID), Name: name(r.Name), Kind: Voltage, Part: parts[r.Context], N: n, Context: r.Context, Step: 0.01,
				Limits: Limits{LowCritical: &low, Critical: &high}, Standby: r.Standby, rail: i, share: 0.006,
			})
		})
	}
	brownout := m.Supplies.Volts * 0.8
	for n := range m.Supplies.Count {
		of := Sensor{Part: Supply, N: n, Context: "PowerSupply", Standby: true}
		volts, in, out := of, of, of
		volts.ID, volts.Name, volts.Kind, volts.Step, volts.share = SupplyID(n)+"InputVoltage", fmt.Sprintf("PSU %d Input Voltage", n+1), Voltage, 1, 0.01
		volts.Limits, volts.Measure = Limits{LowCritical: &brownout, Hysteresis: 2}, Input
		in.ID, in.Name, in.Kind, in.Step, in.Measure = SupplyID(n)+"InputPower", fmt.Sprintf("PSU %d Input Power", n+1), Power, 1, Input
		out.ID, out.Name, out.Kind, out.Step, out.Measure = SupplyID(n)+"OutputPower", fmt.Sprintf("PSU %d Output Power", n+1), Power, 1, Output
		add(volts)
		add(in)
		add(out)
	}
	for n := range sockets {
		add(Sensor{ID: fmt.Sprintf("CPU%dPower", n+1), Name: fmt.Sprintf("CPU %d Power", n+1), Kind: Power, Part: Processor, N: n, Context: "CPU", Step: 1})
	}
	add(Sensor{ID: "MemoryPower", Name: "Memory Power", Kind: Power, Part: Memory, Context: "Memory", Step: 1})
	add(Sensor{ID: "TotalPower", Name: "Total Power", Kind: Power, Part: Chassis, Context: "Chassis", Step: 1, Standby: true})
	add(Sensor{ID: "TotalEnergy", Name: "Total Energy", Kind: Energy, Part: Chassis, Context: "Chassis", Step: 0.01, Standby: true})
}

// parts maps physical contexts to parts.
var parts = map[string]Part{"CPU": Processor, "Memory": Memory, "Intake": Chassis, "Exhaust": Chassis, "SystemBoard": Board}

// Check reports errors of a model: a field and what it must be.
func (m *Model) Check(bad func(field, must string)) {
	if m.Watts == (Watts{}) && len(m.Zones) == 0 && m.Fans.Count == 0 && m.Supplies.Count == 0 {
		return // a profile without thermal section
	}
	need := func(ok bool, field, must string) {
		if !ok {
			bad(field, must)
		}
	}
	w := m.Watts
	need(w.Standby > 0 && w.Idle > w.Standby && w.Full > w.Idle, "watts", "have standby, more when idle, and still more when full")
	need(w.Processors >= 0 && w.Memory >= 0 && w.Processors+w.Memory <= w.Full, "watts", "have processors and memory draw no more than full")
	for work, percent := range m.Work {
		need(slices.Contains(Works, work), "work", fmt.Sprintf("have names of %v", Works))
		need(percent >= 0 && percent <= 100, "work", "be percent")
	}
	follows := m.Fans.Count == 0
	for i, z := range m.Zones {
		at := fmt.Sprintf("zones[%d]", i)
		follows = follows || z.ID == m.Fans.Follows
		need(z.ID != "" && z.Name != "" && parts[z.Context] != "", at, "have an id, a name and a context of CPU, Memory, SystemBoard, Intake or Exhaust")
		need(z.Lag > 0, at+".lag", "be positive")
		need(z.Each == "" || z.Each == "socket", at+".each", "be socket or nothing")
		checkLimits(z.Limits, func(must string) { bad(at+".limits", must) })
	}
	f := m.Fans
	need(f.Count >= 0 && f.Needed >= 0 && f.Needed <= f.Count, "fans", "be no fewer than are needed")
	need(f.Count == 0 || f.RPM > 0 && f.Least > 0 && f.Least <= 100, "fans", "have rpm, and least in percent of that")
	need(follows, "fans.follows", "be the id of a zone")
	s := m.Supplies
	need(s.Count >= 0 && s.Needed >= 0 && s.Needed <= s.Count, "supplies", "be no fewer than are needed")
	need(s.Count == 0 || s.Watts > 0 && s.Volts > 0 && s.Efficiency > 0 && s.Efficiency <= 100, "supplies", "have watts, volts, and efficiency in percent")
	for i, r := range m.Rails {
		at := fmt.Sprintf("rails[%d]", i)
		need(r.ID != "" && r.Name != "" && r.Volts > 0, at, "have an id, a name and volts")
		need(r.Droop >= 0 && r.Droop < 10, at+".droop", "be 0 to 10 percent")
	}
}

// checkLimits checks that the thresholds increase.
func checkLimits(l Limits, bad func(must string)) {
	last := math.Inf(-1)
	for _, at := range []*float64{l.LowCritical, l.LowCaution, l.Caution, l.Critical, l.Fatal} {
		if at == nil {
			continue
		}
		if *at <= last {
			bad("grow from low critical to fatal")
		}
		last = *at
	}
	if l.Hysteresis < 0 {
		bad("have no negative hysteresis")
	}
}

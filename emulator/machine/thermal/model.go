package thermal

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Model is how a server model makes heat, carries it away and is fed. It is
// part of a hardware profile: parsed once, made ready by Complete, and then
// never changed.
type Model struct {
	Ambient  float64      `json:"ambient"` // of the room, in °C, until somebody says otherwise
	Watts    Watts        `json:"watts"`
	Work     map[Work]int `json:"work"` // how much of what it can each work takes, in percent
	Zones    []Zone       `json:"zones"`
	Fans     Fans         `json:"fans"`
	Supplies Supplies     `json:"supplies"`
	Rails    []Rail       `json:"rails"`
	Sensors  []Sensor     `json:"-"` // all that can be read, in the order in which services list them

	places  map[string]int // of sensors, by ID
	lagging int            // sensors whose reading lags
	follows int            // zone that the fans follow
}

// Watts is what a server draws from its supplies, all of which becomes heat.
type Watts struct {
	Standby    float64 `json:"standby"`    // off: the BMC alone
	Idle       float64 `json:"idle"`       // on, with nothing to do
	Full       float64 `json:"full"`       // with all to do that it can
	Processors float64 `json:"processors"` // of that, what the processors draw
	Memory     float64 `json:"memory"`     // of that, what the memory draws
}

// Work is what a server is busy with. Values are stored.
type Work string

// The works.
const (
	Starting Work = "starting" // the power comes up
	Testing  Work = "post"     // power-on self test
	Waiting  Work = "firmware" // the firmware waits, or tries boot sources
	Loading  Work = "loading"  // a system is being loaded
	Idling   Work = "idle"     // a system runs, with little to do
	Working  Work = "working"  // a system is at work
)

// Works are all of them.
var Works = []Work{Starting, Testing, Waiting, Loading, Idling, Working}

// Zone is a place that is warmer than the room, by so much more the more there
// is to do and the less air there is.
type Zone struct {
	ID      string     `json:"id"`   // of its sensor; {n} is the number of the socket
	Name    string     `json:"name"` // likewise
	Each    string     `json:"each"` // "socket": there is one at each; "": there is one
	Context string     `json:"context"`
	Rise    [2]float64 `json:"rise"`    // °C over the room, idle and at full load
	Lag     float64    `json:"lag"`     // time constant, in seconds
	Standby bool       `json:"standby"` // its sensor reads while the server is off
	Limits  Limits     `json:"limits"`
}

// Fans are a server's equal fans.
type Fans struct {
	Count   int        `json:"count"`
	Needed  int        `json:"needed"` // that suffice
	RPM     float64    `json:"rpm"`    // at most
	Least   float64    `json:"least"`  // of that, in percent
	Follows string     `json:"follows"`
	Curve   [2]float64 `json:"curve"` // °C of that zone at which they begin to turn faster, and turn fastest
	Vendor  string     `json:"vendor"`
	Product string     `json:"product"`
}

// Supplies are a server's equal power supplies, which share the load.
type Supplies struct {
	Count      int     `json:"count"`
	Needed     int     `json:"needed"`     // that suffice
	Watts      float64 `json:"watts"`      // that each can give
	Volts      float64 `json:"volts"`      // of the mains
	Hertz      float64 `json:"hertz"`      // of the mains
	Efficiency float64 `json:"efficiency"` // percent
	Vendor     string  `json:"vendor"`
	Product    string  `json:"product"`
	PartNumber string  `json:"partNumber"`
	Component  string  `json:"component"` // of firmware that they run; "" when no update reaches it
}

// Rail is a voltage that a server makes.
type Rail struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Each    string  `json:"each"` // as of a Zone
	Context string  `json:"context"`
	Volts   float64 `json:"volts"`
	Droop   float64 `json:"droop"` // percent that it falls by at full load
	Standby bool    `json:"standby"`
}

// Limits are the thresholds of a sensor; nil where it has none.
type Limits struct {
	LowCritical *float64 `json:"lowCritical"`
	LowCaution  *float64 `json:"lowCaution"`
	Caution     *float64 `json:"caution"`
	Critical    *float64 `json:"critical"`
	Fatal       *float64 `json:"fatal"`      // beyond which the server switches itself off
	Hysteresis  float64  `json:"hysteresis"` // by which a reading must be better before it counts as that
	// LowHysteresis is that of the low thresholds; nil: as Hysteresis.
	LowHysteresis *float64 `json:"lowHysteresis,omitempty"`
}

// Kind is what a sensor reads.
type Kind string

// The kinds.
const (
	Temperature Kind = "temperature" // °C
	Speed       Kind = "speed"       // of a fan, revolutions per minute
	Voltage     Kind = "voltage"     // V
	Power       Kind = "power"       // W
	Energy      Kind = "energy"      // kWh
)

// Part is what a sensor is of. Services show the reading there, too.
type Part string

// The parts.
const (
	Chassis   Part = "chassis"
	Processor Part = "processor"
	Memory    Part = "memory" // of a socket
	Fan       Part = "fan"
	Supply    Part = "supply"
	Board     Part = "board"
)

// Measure tells sensors of the same kind and part from each other.
type Measure string

// The measures, where there are several.
const (
	Reads  Measure = "" // what else is there to say
	Input  Measure = "input"
	Output Measure = "output"
)

// Sensor is something that can be read.
type Sensor struct {
	ID      string // "CPU1Temp"
	Name    string // for people
	Kind    Kind
	Part    Part
	N       int // which one of the parts, counted from 0
	Measure Measure
	Context string  // where it is (DSP2046, PhysicalContext)
	Step    float64 // that readings are rounded to
	Limits  Limits
	Standby bool // it reads while the server is off

	slot  int     // in State.Values; -1 when it lags not
	lag   float64 // seconds
	zone  int
	rail  int
	share float64 // how much servers differ: °C of a temperature, else a part of the reading
}

// FanID is the name of the n-th fan.
func FanID(n int) string { return fmt.Sprint("Fan", n+1) }

// SupplyID is the name of the n-th power supply.
func SupplyID(n int) string { return fmt.Sprint("PSU", n+1) }

// Complete makes a parsed model in which Check found nothing ready for a server
// with so many processors.
func (m *Model) Complete(sockets int) {
	m.Sensors, m.places, m.lagging = nil, map[string]int{}, 0
	if m.Watts.Full == 0 { // of a profile that says nothing of heat
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

// parts are what is where.
var parts = map[string]Part{"CPU": Processor, "Memory": Memory, "Intake": Chassis, "Exhaust": Chassis, "SystemBoard": Board}

// Check says what is wrong with a model: which field must be what.
func (m *Model) Check(bad func(field, must string)) {
	if m.Watts == (Watts{}) && len(m.Zones) == 0 && m.Fans.Count == 0 && m.Supplies.Count == 0 {
		return // a model of which nothing is known
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

// checkLimits says what is wrong with thresholds, which must grow.
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

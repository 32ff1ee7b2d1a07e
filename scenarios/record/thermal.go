package record

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// zoneDefaults holds the temperature rise (°C) when idle and at full load, and
// the lag (s), by PhysicalContext. Readings do not tell them.
var zoneDefaults = map[string]struct {
	rise [2]float64
	lag  float64
}{
	"Intake": {lag: 60}, "CPU": {[2]float64{11, 50}, 25}, "Memory": {[2]float64{8, 28}, 90},
	"Exhaust": {[2]float64{5, 20}, 75}, "SystemBoard": {[2]float64{6, 18}, 90},
}

// contextAliases maps other values of PhysicalContext to those that a model
// has.
var contextAliases = map[string]string{
	"CPUSubsystem": "CPU", "MemorySubsystem": "Memory", "Front": "Intake", "Back": "Exhaust", "Rear": "Exhaust", "Room": "Intake",
}

// utilization is the load in percent by phase of work. No BMC shows it.
var utilization = map[thermal.Work]int{
	thermal.Starting: 20, thermal.Testing: 45, thermal.Waiting: 12, thermal.Loading: 40, thermal.Idling: 4, thermal.Working: 70,
}

// thermal derives temperature zones, voltage rails, fans and power supplies.
func (d *deriver) thermal(p *machine.Profile) {
	x := d.resource(d.chassis)
	m := &p.Thermal
	m.Ambient, m.Work = 22, utilization
	d.fans(&m.Fans, x)
	d.supplies(&m.Supplies, x)
	d.watts(p, x)
	var zones, rails []sensor
	for _, s := range d.sensors(x) {
		switch {
		case s.context == "PowerSupply" || s.context == "Fan" || s.id == "":
		case s.kind == "Temperature":
			zones = append(zones, s)
		case s.kind == "Voltage":
			rails = append(rails, s)
		}
	}
	for _, g := range groupBySocket(zones, p.Processors.Sockets) {
		c := zoneDefaults[g.context]
		m.Zones = append(m.Zones, thermal.Zone{
			ID: g.id, Name: g.name, Each: g.each, Context: g.context, Rise: c.rise, Lag: c.lag, Standby: g.standby, Limits: g.limits(),
		})
	}
	if len(m.Zones) == 0 {
		m.Zones = []thermal.Zone{
			{ID: "InletTemp", Name: "Inlet Temp", Context: "Intake", Lag: 60, Standby: true},
			{ID: "CPU{n}Temp", Name: "CPU {n} Temp", Each: "socket", Context: "CPU", Rise: zoneDefaults["CPU"].rise, Lag: zoneDefaults["CPU"].lag},
		}
	}
	m.Fans.Follows = m.Zones[0].ID
	for _, z := range m.Zones {
		if z.Context == "CPU" {
			m.Fans.Follows = z.ID
			break
		}
	}
	for _, g := range groupBySocket(rails, p.Processors.Sockets) {
		if volts := g.volts(); volts > 0 {
			m.Rails = append(m.Rails, thermal.Rail{ID: g.id, Name: g.name, Each: g.each, Context: g.context, Volts: volts, Droop: 1, Standby: g.standby})
		}
	}
}

// sensor holds what a BMC shows of a sensor.
type sensor struct {
	at, id, name, kind, context, each string
	standby                           bool
	of                                resource
}

// sensors returns the Sensor resources of the chassis, or, on older services,
// the entries of Thermal and Power.
func (d *deriver) sensors(x resource) []sensor {
	var out []sensor
	seen := map[string]bool{}
	add := func(at, id, kind, name, context string, of resource) {
		if to := contextAliases[context]; to != "" {
			context = to
		}
		if id == "" || seen[id] {
			return
		}
		seen[id] = true
		if context != "PowerSupply" && context != "Fan" && zoneDefaults[context].lag == 0 {
			context = "SystemBoard"
		}
		standby := of.str("Status/State") == "Enabled" && d.resource(d.system).str("PowerState") == "Off" || context == "Intake" || context == "Exhaust"
		out = append(out, sensor{at: at, id: id, name: cmp.Or(name, id), kind: kind, context: context, standby: standby, of: of})
	}
	for _, at := range d.members(x, "Sensors") {
		s := d.resource(at)
		d.locate("/redfish/v1/Chassis/{chassis}/Sensors/"+last(at), at)
		add(at, last(at), s.str("ReadingType"), s.str("Name"), s.str("PhysicalContext"), s)
	}
	if len(out) > 0 {
		return out
	}
	for _, s := range d.resource(strings.TrimRight(x.str("Thermal/@odata.id"), "/")).objects("Temperatures") {
		add("", segment(s.str("Name")), "Temperature", s.str("Name"), s.str("PhysicalContext"), s)
	}
	for _, s := range d.resource(strings.TrimRight(x.str("Power/@odata.id"), "/")).objects("Voltages") {
		add("", segment(s.str("Name")), "Voltage", s.str("Name"), s.str("PhysicalContext"), s)
	}
	return out
}

// segment returns a name without the characters that a URI segment must not
// have.
func segment(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return -1
	}, name)
}

// groupBySocket replaces the sensors that every socket has by one whose ID and
// name contain {n}.
func groupBySocket(all []sensor, sockets int) []sensor {
	find := func(id string) bool { return slices.ContainsFunc(all, func(s sensor) bool { return s.id == id }) }
	done := map[string]bool{}
	var out []sensor
	for _, s := range all {
		if done[s.id] {
			continue
		}
		for i := range s.id {
			// One of the digits 1 in the ID is the number of the socket.
			if s.id[i] != '1' || s.context != "CPU" && s.context != "Memory" && sockets < 2 {
				continue
			}
			complete := sockets > 1
			for n := 1; n <= sockets; n++ {
				complete = complete && find(s.id[:i]+strconv.Itoa(n)+s.id[i+1:])
			}
			if !complete || find(s.id[:i]+strconv.Itoa(sockets+1)+s.id[i+1:]) || strings.Count(s.name, "1") != strings.Count(s.id, "1") {
				continue
			}
			for n := 1; n <= sockets; n++ {
				done[s.id[:i]+strconv.Itoa(n)+s.id[i+1:]] = true
			}
			nth := strings.Count(s.id[:i], "1")
			s.each, s.id = "socket", s.id[:i]+"{n}"+s.id[i+1:]
			at := -1
			for range nth + 1 {
				at += 1 + strings.IndexByte(s.name[at+1:], '1')
			}
			s.name = s.name[:at] + "{n}" + s.name[at+1:]
			break
		}
		out = append(out, s)
	}
	return out
}

// limit returns a threshold by its name in Sensor, or else by its older name
// in Thermal and Power.
func (s *sensor) limit(name, before string) *float64 {
	v, ok := s.of.at("Thresholds/" + name + "/Reading").(float64)
	if !ok {
		v, ok = s.of.at(before).(float64)
	}
	if !ok {
		return nil
	}
	return &v
}

// limits returns the thresholds and the hysteresis.
func (s *sensor) limits() thermal.Limits {
	l := thermal.Limits{
		LowCritical: s.limit("LowerCritical", "LowerThresholdCritical"), LowCaution: s.limit("LowerCaution", "LowerThresholdNonCritical"),
		Caution: s.limit("UpperCaution", "UpperThresholdNonCritical"), Critical: s.limit("UpperCritical", "UpperThresholdCritical"),
		Fatal: s.limit("UpperFatal", "UpperThresholdFatal"),
	}
	for _, name := range []string{"UpperCaution", "UpperCritical", "UpperFatal", "LowerCaution", "LowerCritical"} {
		if h := s.of.num("Thresholds/" + name + "/HysteresisReading"); h > 0 {
			if strings.HasPrefix(name, "Lower") && l.Hysteresis > 0 && h != l.Hysteresis {
				l.LowHysteresis = &h
			}
			l.Hysteresis = max(l.Hysteresis, 0)
			if l.Hysteresis == 0 {
				l.Hysteresis = h
			}
		}
	}
	before := math.Inf(-1)
	for _, at := range []**float64{&l.LowCritical, &l.LowCaution, &l.Caution, &l.Critical, &l.Fatal} {
		if *at != nil && **at <= before {
			*at = nil // thresholds that do not ascend are dropped
		}
		if *at != nil {
			before = **at
		}
	}
	return l
}

// volts returns the nominal voltage of a rail: the middle between the critical
// limits, which are a tenth below and above it, or else the reading.
func (s *sensor) volts() float64 {
	round := func(v float64) float64 { return math.Round(v*100) / 100 }
	low, high := s.limit("LowerCritical", "LowerThresholdCritical"), s.limit("UpperCritical", "UpperThresholdCritical")
	if low != nil && high != nil {
		return round((*low + *high) / 2)
	}
	return round(cmp.Or(s.of.num("Reading"), s.of.num("ReadingVolts")))
}

// fans derives the fans.
func (d *deriver) fans(f *thermal.Fans, x resource) {
	sub := d.resource(strings.TrimRight(x.str("ThermalSubsystem/@odata.id"), "/"))
	for _, at := range d.members(sub, "Fans") {
		one := d.resource(at)
		if one.absent() {
			continue
		}
		f.Count++
		d.locate("/redfish/v1/Chassis/{chassis}/ThermalSubsystem/Fans/"+thermal.FanID(f.Count-1), at)
		if f.Count == 1 {
			f.RPM, f.Vendor, f.Product = one.num("RatedSpeedRPM"), one.str("Manufacturer"), one.str("Model")
			limits := d.resource(strings.TrimRight(one.str("SpeedPercent/DataSourceUri"), "/"))
			f.Least = 2 * limits.num("Thresholds/LowerCritical/Reading")
		}
	}
	if f.Count == 0 {
		for _, one := range d.resource(strings.TrimRight(x.str("Thermal/@odata.id"), "/")).objects("Fans") {
			if !one.absent() {
				f.Count++
				f.Vendor, f.Product, f.RPM = cmp.Or(f.Vendor, one.str("Manufacturer")), cmp.Or(f.Product, one.str("Model")), cmp.Or(f.RPM, one.num("MaxReadingRange"))
			}
		}
	}
	if f.Count == 0 {
		return
	}
	f.Needed = f.Count
	old := d.resource(strings.TrimRight(x.str("Thermal/@odata.id"), "/"))
	for _, one := range old.objects("Fans") {
		f.RPM = cmp.Or(f.RPM, one.num("MaxReadingRange"))
	}
	for _, r := range append(sub.objects("FanRedundancy"), old.objects("Redundancy")...) {
		if n := cmp.Or(r.int("MinNeededInGroup"), r.int("MinNumNeeded")); n > 0 {
			f.Needed = min(n, f.Count)
			break
		}
	}
	f.RPM, f.Curve = cmp.Or(max(0, f.RPM), 16000), [2]float64{38, 82}
	if f.Least <= 0 || f.Least > 100 {
		f.Least = 20
	}
}

// inputVolts holds voltages by Redfish's names of input voltage types.
var inputVolts = map[string]float64{"AC100To127V": 115, "AC100To277V": 230, "AC120V": 120, "AC100To240V": 230, "AC200To240V": 230, "AC208V": 208, "AC230V": 230, "AC240V": 240, "AC277V": 277, "DCNeg48V": 48, "DC48V": 48, "DC380V": 380}

// supplies derives the power supplies.
func (d *deriver) supplies(s *thermal.Supplies, x resource) {
	old := d.resource(strings.TrimRight(x.str("Power/@odata.id"), "/"))
	sub := d.resource(strings.TrimRight(x.str("PowerSubsystem/@odata.id"), "/"))
	var all []resource
	for _, at := range d.members(sub, "PowerSupplies") {
		if one := d.resource(at); !one.absent() {
			all = append(all, one)
			d.locate(fmt.Sprintf("/redfish/v1/Chassis/{chassis}/PowerSubsystem/PowerSupplies/%s", thermal.SupplyID(len(all)-1)), at)
		}
	}
	if len(all) == 0 {
		for _, one := range old.objects("PowerSupplies") {
			if !one.absent() {
				all = append(all, one)
			}
		}
	}
	if len(all) == 0 {
		return
	}
	one := all[0]
	s.Count, s.Needed = len(all), max(1, len(all)-1)
	for _, r := range append(sub.objects("PowerSupplyRedundancy"), old.objects("Redundancy")...) {
		if n := cmp.Or(r.int("MinNeededInGroup"), r.int("MinNumNeeded")); n > 0 {
			s.Needed = min(n, s.Count)
			break
		}
	}
	s.Watts = cmp.Or(max(0, one.num("PowerCapacityWatts")), 800)
	s.Volts, s.Hertz, s.Efficiency = cmp.Or(inputVolts[one.str("InputNominalVoltageType")], inputVolts[one.str("LineInputVoltageType")], 230), 50, 92
	if e := one.num("EfficiencyPercent"); e > 0 && e <= 100 {
		s.Efficiency = e
	}
	if e := one.objects("EfficiencyRatings"); len(e) > 0 && e[0].num("EfficiencyPercent") > 0 && e[0].num("EfficiencyPercent") <= 100 {
		s.Efficiency = e[0].num("EfficiencyPercent")
	}
	s.Vendor, s.Product, s.PartNumber = one.str("Manufacturer"), one.str("Model"), one.str("PartNumber")
}

// watts derives the power that the server draws from the chassis's figures, or
// else from its processors.
func (d *deriver) watts(p *machine.Profile, x resource) {
	m := &p.Thermal
	sub := d.resource(strings.TrimRight(x.str("PowerSubsystem/@odata.id"), "/"))
	e := cmp.Or(m.Supplies.Efficiency, 100) / 100
	// The chassis shows the power at the mains plus a tenth, rounded up to
	// tens.
	back := func(w float64) float64 { return math.Round((w - 5) * e / 1.1) }
	old := d.resource(strings.TrimRight(x.str("Power/@odata.id"), "/"))
	requested := sub.num("Allocation/RequestedWatts")
	if all := old.objects("PowerControl"); requested == 0 && len(all) > 0 {
		requested = all[0].num("PowerRequestedWatts")
	}
	m.Watts.Full = cmp.Or(requested, max(0, back(x.num("MaxPowerWatts"))), float64(p.Processors.Sockets*cmp.Or(p.Processors.Watts, 150)+200))
	m.Watts.Idle = cmp.Or(max(0, back(x.num("MinPowerWatts"))), math.Round(m.Watts.Full/5))
	m.Watts.Standby = 14
	if m.Watts.Idle <= m.Watts.Standby {
		m.Watts.Idle = 2 * m.Watts.Standby
	}
	m.Watts.Full = max(m.Watts.Full, m.Watts.Idle+50)
	m.Watts.Processors = math.Round(m.Watts.Full * 0.64)
	m.Watts.Memory = math.Round(min(m.Watts.Full*0.2, float64(3*max(p.Memory.Modules, 1))))
}

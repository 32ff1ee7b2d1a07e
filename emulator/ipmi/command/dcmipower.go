package command

import (
	"math"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// dcmiPowerCommands are the DCMI commands for power and thermal limits and
// readings (DCMI 1.5, §6.6 and §6.7).
var dcmiPowerCommands = []Row{
	{fn: wire.Group, group: dcmi, cmd: 0x02, name: "Get Power Reading", privilege: wire.User, least: 3, most: 3, run: getPowerReading},
	{fn: wire.Group, group: dcmi, cmd: 0x03, name: "Get Power Limit", privilege: wire.User, least: 2, most: 2, run: getPowerLimit},
	{fn: wire.Group, group: dcmi, cmd: 0x04, name: "Set Power Limit", privilege: wire.Operator, least: 14, most: 14, mutates: true, run: setPowerLimit},
	{fn: wire.Group, group: dcmi, cmd: 0x05, name: "Activate/Deactivate Power Limit", privilege: wire.Operator, least: 3, most: 3, mutates: true, run: activatePowerLimit},
	{fn: wire.Group, group: dcmi, cmd: 0x0b, name: "Set Thermal Limit", privilege: wire.Operator, least: 6, most: 6, mutates: true, run: setThermalLimit},
	{fn: wire.Group, group: dcmi, cmd: 0x0c, name: "Get Thermal Limit", privilege: wire.User, least: 2, most: 2, run: getThermalLimit},
}

// Completion codes of the power commands.
const (
	noPowerLimit             Code = 0x80 // no limit is active
	limitOutOfRange          Code = 0x84
	correctionTimeOutOfRange Code = 0x85
	samplingPeriodOutOfRange Code = 0x89
)

// averagingPeriod is a rolling average time period in DCMI's encoding: the unit
// is in the upper two bits.
type averagingPeriod struct {
	code byte
	over time.Duration
}

// averagingPeriods are the periods that a client can ask for; 0 is the present
// reading.
var averagingPeriods = []averagingPeriod{{0x00, 0}, {0x05, 5 * time.Second}, {0x1e, 30 * time.Second}, {0x41, time.Minute}}

// powerReading handles Get Power Reading (§6.6.1). A server that is off has no
// reading: what its BMC draws is not the system's.
func getPowerReading(x *Request) error {
	over := x.bmc().DCMI.Power.SamplingPeriod
	switch mode, attribute := x.data[0], x.data[1]; mode {
	case 1:
		if attribute != 0 {
			return InvalidDataField
		}
	case 2:
		i := slices.IndexFunc(averagingPeriods, func(a averagingPeriod) bool { return a.code == attribute })
		if i < 0 {
			return ParameterOutOfRange
		}
		over = averagingPeriods[i].over
	default:
		return InvalidDataField
	}
	var u thermal.Usage
	state := byte(0)
	if v := x.machine(); v.Power != machine.PowerOff {
		u, state = v.Thermal.Usage(x.Now, over), 1<<6
	}
	for _, watts := range []float64{u.Is, u.Least, u.Most, u.Mean} {
		x.put16(uint16(min(math.MaxUint16, math.Round(watts))))
	}
	x.put32(selTimestamp(x.bmc().Clock, x.Now))
	x.put32(uint32(over / time.Millisecond)) // in both modes, which is how clients read it
	x.put(state)
	return nil
}

// getPowerLimit handles Get Power Limit (§6.6.2). A limit that is not active is
// answered with the completion code that says so and its values. Until one is set, the
// limit is the highest that Set Power Limit accepts: clients such as ipmi-config write
// back all values that they have read.
func getPowerLimit(x *Request) error {
	caps := x.bmc().DCMI.Power
	watts, active := float64(caps.Watts), false
	if is := x.machine().Thermal.Limit(); is > 0 {
		watts, active = is, true
	} else if watts == 0 {
		_, watts = x.machine().Profile.Thermal.Limits()
	}
	x.put(0, 0, caps.Action)
	x.put16(uint16(math.Round(watts)))
	x.put32(uint32(caps.CorrectionTime / time.Millisecond))
	x.put(0, 0)
	x.put16(uint16(caps.SamplingPeriod / time.Second))
	if !active {
		return codeWithData(noPowerLimit)
	}
	return nil
}

// Exception actions when a power limit cannot be met. Here it always is: the
// lowest limit that can be set is more than an idle server draws.
const (
	exceptionNone     = 0x00
	exceptionPowerOff = 0x01
	exceptionLog      = 0x11
)

// maxCorrectionTime is the longest time that a server may take to come below
// its limit.
const maxCorrectionTime = time.Hour

// setPowerLimit handles Set Power Limit (§6.6.3). An active limit changes at
// once.
func setPowerLimit(x *Request) error {
	action, watts := x.data[3], int(le16(x.data[4:]))
	correct := time.Duration(le32(x.data[6:])) * time.Millisecond
	sampling := time.Duration(le16(x.data[12:])) * time.Second
	least, most := x.machine().Profile.Thermal.Limits()
	switch {
	case !slices.Contains([]byte{exceptionNone, exceptionPowerOff, exceptionLog}, action):
		return InvalidDataField
	case float64(watts) < least || float64(watts) > most:
		return limitOutOfRange
	case correct == 0 || correct > maxCorrectionTime:
		return correctionTimeOutOfRange
	case sampling == 0 || sampling > thermal.Window:
		return samplingPeriodOutOfRange
	}
	caps := *x.bmc().DCMI
	caps.Power = bmc.PowerLimit{Watts: watts, Action: action, CorrectionTime: correct, SamplingPeriod: sampling}
	if _, err := x.applyBMC(bmc.SetDCMISettings{DCMISettings: caps}); err != nil {
		return err
	}
	if x.machine().Thermal.Limit() == 0 {
		return nil
	}
	return x.applyMachine(machine.Thermal{Command: thermal.SetLimit{Watts: float64(watts)}})
}

// activatePowerLimit handles Activate/Deactivate Power Limit (§6.6.4). It is
// the limit that Redfish's PowerControl shows.
func activatePowerLimit(x *Request) error {
	t := x.machine().Thermal
	watts := float64(x.bmc().DCMI.Power.Watts)
	switch {
	case x.data[0] == 0:
		watts = 0
	case x.data[0] != 1:
		return InvalidDataField
	case t.Limit() > 0:
		return nil
	case watts == 0:
		return NotSupportedInState // none was set
	}
	return x.applyMachine(machine.Thermal{Command: thermal.SetLimit{Watts: watts}})
}

// Exception action bits of a thermal limit (§6.7.1). DCMI 1.0 had one more,
// for keeping the limit over a reset; it is always kept.
const (
	persists = 1 << 7
	cutOff   = 1 << 6
	logOnly  = 1 << 5
)

// inlet returns the inlet temperature sensor that a thermal limit is for.
func (x *Request) inlet() (*sensor, error) {
	if dcmiEntities[x.data[0]] != entityInlet {
		return nil, InvalidDataField
	}
	r := x.repository()
	for i := range r.sensors {
		if s := &r.sensors[i]; s.numeric != nil && s.Entity.ID == entityInlet && s.Entity.Instance == x.data[1] {
			return s, nil
		}
	}
	return nil, NotPresent
}

// setThermalLimit handles Set Thermal Limit (§6.7.2).
func setThermalLimit(x *Request) error {
	s, err := x.inlet()
	if err != nil {
		return err
	}
	does, limit := x.data[2]&^persists, s.factors.Value(x.data[3])
	p := thermal.Policy{Sensor: s.numeric.ID, Limit: limit, After: time.Duration(le16(x.data[4:])) * time.Second}
	switch {
	case does&^(cutOff|logOnly) != 0:
		return InvalidDataField
	case does != 0 && limit <= 0:
		return limitOutOfRange
	case does&cutOff != 0:
		p.Do = thermal.CutOff
	case does != 0:
		p.Do = thermal.Log
	}
	return x.applyMachine(machine.Thermal{Command: thermal.SetPolicy{Policy: p}})
}

// getThermalLimit handles Get Thermal Limit (§6.7.1).
func getThermalLimit(x *Request) error {
	s, err := x.inlet()
	if err != nil {
		return err
	}
	p := x.machine().Thermal.Policy(s.numeric.ID)
	x.put(map[thermal.Act]byte{thermal.CutOff: cutOff, thermal.Log: logOnly}[p.Do], s.factors.Raw(p.Limit))
	x.put16(uint16(p.After / time.Second))
	return nil
}

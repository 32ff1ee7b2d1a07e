package command

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// dcmi is the defining body of the Data Center Manageability Interface 1.5.
const dcmi = 0xdc

// dcmiCommands are the DCMI commands (DCMI 1.5, §6.1, §6.4 and §6.5;
// privileges in table 6-1).
var dcmiCommands = slices.Concat([]Row{
	{fn: wire.Group, group: dcmi, cmd: 0x01, name: "Get DCMI Capabilities Info", least: 1, most: 1, run: getDCMICapabilities},
	{fn: wire.Group, group: dcmi, cmd: 0x06, name: "Get Asset Tag", privilege: wire.User, least: 2, most: 2, run: getAssetTag},
	{fn: wire.Group, group: dcmi, cmd: 0x07, name: "Get DCMI Sensor Info", privilege: wire.User, least: 4, most: 4, run: getDCMISensorInfo},
	{fn: wire.Group, group: dcmi, cmd: 0x08, name: "Set Asset Tag", privilege: wire.Operator, least: 2, most: 2 + dcmiChunk, mutates: true, run: setAssetTag},
	{fn: wire.Group, group: dcmi, cmd: 0x09, name: "Get Management Controller Identifier String", privilege: wire.User, least: 2, most: 2, run: getControllerID},
	{fn: wire.Group, group: dcmi, cmd: 0x0a, name: "Set Management Controller Identifier String", privilege: wire.Administrator, least: 3, most: 2 + dcmiChunk, mutates: true, run: setControllerID},
	{fn: wire.Group, group: dcmi, cmd: 0x10, name: "Get Temperature Readings", privilege: wire.User, least: 4, most: 4, run: getTemperatureReadings},
	{fn: wire.Group, group: dcmi, cmd: 0x12, name: "Set DCMI Configuration Parameters", privilege: wire.Administrator, least: 3, most: 4, mutates: true, run: setDCMIParameter},
	{fn: wire.Group, group: dcmi, cmd: 0x13, name: "Get DCMI Configuration Parameters", privilege: wire.User, least: 2, most: 2, run: getDCMIParameter},
}, dcmiPowerCommands)

// dcmiChunk is the most text that one command reads or writes, in bytes.
const dcmiChunk = 16

// putConformance appends the DCMI version that the BMC conforms to, and a
// parameter's revision.
func (x *Request) putConformance(revision byte) { x.put(1, 5, revision) }

// dcmiCapabilities handles Get DCMI Capabilities Info (§6.1.1).
func getDCMICapabilities(x *Request) error {
	const none = 0xff // no such channel
	var param []byte
	switch x.data[0] {
	case 1: // power management; in band
		param = []byte{0, 1, 1}
	case 2:
		log := x.bmc().Spec.Log
		attributes := uint16(min(log.Size, 0xfff))
		if log.Full == bmc.Wraps { // record by record
			attributes |= 1<<15 | 1<<13
		}
		param = []byte{byte(attributes), byte(attributes >> 8), 0, 0, 1} // every second
	case 3:
		param = []byte{bmcAddress, 1}
	case 4:
		param = []byte{lanChannel, none, none}
	case 5:
		param = []byte{byte(len(averagingPeriods))}
		for _, a := range averagingPeriods {
			param = append(param, a.code)
		}
	default:
		return InvalidDataField
	}
	x.putConformance(2)
	x.put(param...)
	return nil
}

// dcmiEntities maps the entity IDs of DCMI, those of IPMI and those of DCMI
// 1.0, to IPMI's (table 6-14).
var dcmiEntities = map[byte]byte{
	entityInlet: entityInlet, 0x40: entityInlet, entityProcessor: entityProcessor, 0x41: entityProcessor, entityBoard: entityBoard, 0x42: entityBoard,
}

// dcmiMaxRecords is the most sensors that one response lists.
const dcmiMaxRecords = 8

// temperatureSensors returns how many temperature sensors the requested entity
// has, and those of them that fit into one response.
func (x *Request) temperatureSensors(takes func(*sensor) bool) (of int, these []*sensor, err error) {
	entity, ok := dcmiEntities[x.data[1]]
	if !ok || x.data[0] != 0x01 { // sensor type 01h, temperature
		return 0, nil, InvalidDataField
	}
	instance, start := x.data[2], x.data[3]
	r := x.repository()
	for i := range r.sensors {
		s := &r.sensors[i]
		if s.numeric == nil || s.numeric.Kind != thermal.Temperature || s.Entity.ID != entity || !takes(s) {
			continue
		}
		of++
		if instance == s.Entity.Instance || instance == 0 && of >= int(start) && len(these) < dcmiMaxRecords {
			these = append(these, s)
		}
	}
	if instance != 0 && len(these) == 0 {
		return 0, nil, NotPresent
	}
	return of, these, nil
}

// getDCMISensorInfo handles Get DCMI Sensor Info (§6.5.2).
func getDCMISensorInfo(x *Request) error {
	of, these, err := x.temperatureSensors(func(*sensor) bool { return true })
	if err != nil {
		return err
	}
	x.put(byte(of), byte(len(these)))
	for _, s := range these {
		x.put16(s.record)
	}
	return nil
}

// getTemperatureReadings handles Get Temperature Readings (§6.7.3): of the
// sensors that have a reading.
func getTemperatureReadings(x *Request) error {
	read := func(s *sensor) (float64, bool) { return x.machine().Thermal.Reading(s.numeric.ID, x.Now) }
	of, these, err := x.temperatureSensors(func(s *sensor) bool { _, ok := read(s); return ok })
	if err != nil {
		return err
	}
	x.put(byte(of), byte(len(these)))
	for _, s := range these {
		y, _ := read(s)
		x.put(dcmiTemperature(y), s.Entity.Instance)
	}
	return nil
}

// dcmiTemperature returns a temperature as a sign bit and seven bits.
func dcmiTemperature(y float64) byte {
	if y < 0 {
		return 0x80 | byte(min(0x7f, -y))
	}
	return byte(min(0x7f, y))
}

// Parameters of Get DCMI Configuration Parameters (§6.1.3).
const (
	activateDHCP = 1
	discovery    = 2
	dhcpFirst    = 3
	dhcpContact  = 4
	dhcpRetry    = 5
)

// setDCMIParameter handles Set DCMI Configuration Parameters (§6.1.2). DHCP's
// address does not change in a rack: a renewed lease has the same one.
func setDCMIParameter(x *Request) error {
	caps := *x.bmc().DCMI
	d := &caps.Discovery
	data := x.data[2:]
	long := map[byte]int{activateDHCP: 1, discovery: 1, dhcpFirst: 1, dhcpContact: 2, dhcpRetry: 2}[x.data[0]]
	switch {
	case long == 0 || x.data[1] != 0:
		return InvalidDataField
	case len(data) != long:
		return DataLengthInvalid
	}
	seconds := time.Duration(data[0]) * time.Second
	if long == 2 {
		seconds = time.Duration(le16(data)) * time.Second
	}
	switch x.data[0] {
	case activateDHCP:
		if data[0] != 1 {
			return InvalidDataField
		}
		return nil
	case discovery:
		if data[0]&0x7c != 0 {
			return InvalidDataField
		}
		d.Options = data[0]
	case dhcpFirst:
		d.First = seconds
	case dhcpContact:
		d.Contact = seconds
	case dhcpRetry:
		d.Retry = seconds
	}
	_, err := x.applyBMC(bmc.SetDCMISettings{DCMISettings: caps})
	return err
}

// getDCMIParameter handles Get DCMI Configuration Parameters (§6.1.3).
func getDCMIParameter(x *Request) error {
	d := x.bmc().DCMI.Discovery
	two := func(t time.Duration) []byte { n := uint16(t / time.Second); return []byte{byte(n), byte(n >> 8)} }
	param, ok := map[byte][]byte{
		activateDHCP: {0}, discovery: {d.Options}, dhcpFirst: {byte(d.First / time.Second)}, dhcpContact: two(d.Contact), dhcpRetry: two(d.Retry),
	}[x.data[0]]
	if !ok || x.data[1] != 0 {
		return InvalidDataField
	}
	x.putConformance(1)
	x.put(param...)
	return nil
}

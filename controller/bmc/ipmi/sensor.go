package ipmi

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	goipmi "github.com/bougou/go-ipmi/pkg/client"
	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Commands of the SDR repository and of sensors (IPMI v2.0 rev 1.1, §33, §35).
var (
	getSDR     = request{fn: types.NetFnStorageRequest, cmd: 0x20, name: "Get SDR Repository Info"}
	reserveSDR = request{fn: types.NetFnStorageRequest, cmd: 0x22, name: "Reserve SDR Repository"}
	readSDR    = request{fn: types.NetFnStorageRequest, cmd: 0x23, name: "Get SDR"}
	getReading = request{fn: types.NetFnSensorEventRequest, cmd: 0x2D, name: "Get Sensor Reading"}
	getFactors = request{fn: types.NetFnSensorEventRequest, cmd: 0x23, name: "Get Sensor Reading Factors"}
)

// sensorRecords holds the sensors of the SDR repository.
type sensorRecords struct {
	version string // changes with the repository
	sensors []sensorRecord
}

// sensorRecord is a full sensor record (§43.1), or the name of a compact one
// (§43.2).
type sensorRecord struct {
	owner       byte // address of the owner
	number, lun byte
	name        string
	analog      bool
	states      bool // the record declares a discrete sensor: its state bits are not threshold comparisons
	format      byte // format of the raw reading: 0 unsigned, 1 ones' complement, 2 two's complement
	unit        string
	linear      byte // linearization; from 70h on the factors differ by reading
	factors
}

// factors convert a raw reading (§36.3).
type factors struct {
	m, b       int
	bExp, rExp int
}

// name returns the name of the sensor with this number, "" if there is none.
func (r *sensorRecords) name(number byte) string {
	if r == nil {
		return ""
	}
	for _, s := range r.sensors {
		if s.number == number {
			return s.name
		}
	}
	return ""
}

// sdr returns the sensor records, which the client caches until the repository
// changes.
func (s *session) sdr(ctx context.Context) (*sensorRecords, error) {
	b, err := s.command(ctx, getSDR)
	if err != nil {
		return nil, err
	}
	if len(b) < 13 {
		return nil, shortResponse(getSDR, b)
	}
	version := string(b[1:3]) + string(b[5:13]) // record count, and the times of the last addition and erase
	c := s.client
	c.mu.Lock()
	known := c.records
	c.mu.Unlock()
	if known != nil && known.version == version {
		return known, nil
	}
	known = &sensorRecords{version: version}
	var others []sensorRecord // records of other controllers
	r := sdrReader{session: s}
	id := uint16(firstRecord)
	for most := 2*(int(b[1])|int(b[2])<<8) + 16; id != lastRecord && most > 0; most-- {
		next, raw, err := r.record(ctx, id)
		if hasCode(err, 0xCB) {
			break
		}
		if err != nil {
			return nil, err
		}
		if one, ok := parseRecord(raw); ok {
			if one.owner == addressBMC {
				known.sensors = append(known.sensors, one)
			} else {
				others = append(others, one)
			}
		}
		if next == id {
			break
		}
		id = next
	}
	if !slices.ContainsFunc(known.sensors, func(r sensorRecord) bool { return r.analog }) && len(others) > 0 {
		// Some BMCs declare another owner for all sensors (FreeIPMI, workaround
		// assumebmcowner).
		known.sensors = others
		c.workarounds.Record(bmc.Workaround{Topic: topicSensors, Variant: "sensors of other owners count as the BMC's", Nonstandard: true})
	}
	c.mu.Lock()
	c.records = known
	c.mu.Unlock()
	return known, nil
}

// sdrReader reads records in chunks of the size that the BMC permits.
type sdrReader struct {
	session     *session
	chunk       byte // bytes; 0 reads whole records
	reservation [2]byte
}

// record reads one record. It returns the ID of the next.
func (r *sdrReader) record(ctx context.Context, id uint16) (next uint16, raw []byte, err error) {
	const head, smallest, again = 5, 8, 3
	lost := 0
	for {
		if r.chunk == 0 {
			next, raw, err = r.readPart(ctx, id, 0, 0xFF)
			if !hasCode(err, 0xC7, 0xC8, 0xCA, 0xCB, 0xFF) || hasCode(err, 0xCB) && id != firstRecord {
				return next, raw, err
			}
			r.chunk = 32
		}
		next, raw, err = r.readPart(ctx, id, 0, head)
		for err == nil && len(raw) >= head && len(raw) < head+int(raw[4]) {
			var more []byte
			_, more, err = r.readPart(ctx, id, byte(len(raw)), min(r.chunk, byte(head+int(raw[4])-len(raw))))
			raw = append(raw, more...)
		}
		switch {
		case hasCode(err, 0xC5) && lost < again: // another session has made a reservation
			lost++
			err = r.reserve(ctx)
		case hasCode(err, 0xC7, 0xC8, 0xCA) && r.chunk > smallest:
			r.chunk /= 2
			err = nil
		default:
			return next, raw, err
		}
		if err != nil {
			return 0, nil, err
		}
	}
}

func (r *sdrReader) reserve(ctx context.Context) error {
	b, err := r.session.command(ctx, reserveSDR)
	if err != nil {
		return err
	}
	if len(b) < 2 {
		return shortResponse(reserveSDR, b)
	}
	r.reservation = [2]byte(b)
	return nil
}

// readPart reads n bytes of a record. Reads at an offset other than 0 require a
// reservation.
func (r *sdrReader) readPart(ctx context.Context, id uint16, offset, n byte) (uint16, []byte, error) {
	if offset > 0 && r.reservation == [2]byte{} {
		if err := r.reserve(ctx); err != nil {
			return 0, nil, err
		}
	}
	b, err := r.session.command(ctx, readSDR, r.reservation[0], r.reservation[1], byte(id), byte(id>>8), offset, n)
	if err != nil {
		return 0, nil, err
	}
	if len(b) < 3 {
		return 0, nil, shortResponse(readSDR, b)
	}
	return binary.LittleEndian.Uint16(b), slices.Clone(b[2:]), nil
}

// units maps sensor units (§43.17) to UCUM, as in Redfish.
var units = map[byte]string{
	1: "Cel", 2: "[degF]", 3: "K", 4: "V", 5: "A", 6: "W", 7: "J", 17: "[cft_i]/min", 18: "RPM", 19: "Hz", 20: "us", 21: "ms", 22: "s", 23: "min", 24: "h",
}

// parseRecord decodes a sensor record. It returns false for other records.
func parseRecord(b []byte) (sensorRecord, bool) {
	const (
		full, compact         = 0x01, 0x02
		fullName, compactName = 47, 31 // offsets of the type/length byte of the name
	)
	if len(b) < compactName+1 {
		return sensorRecord{}, false
	}
	r := sensorRecord{owner: b[5], number: b[7], lun: b[6] & 3}
	place := compactName
	switch {
	case b[3] == compact:
	case b[3] == full && len(b) > fullName:
		place = fullName
		r.format = b[20] >> 6
		// Some BMCs declare sensors with a unit to be discrete (FreeIPMI,
		// workaround discretereading).
		r.states = b[13] != 0x01
		r.analog = (!r.states || b[21] != 0 || b[20]&1 != 0) && r.format != 3
		r.linear = b[23] & 0x7F
		r.factors = parseFactors(b[24:30])
		switch unit, ok := units[b[21]]; {
		case b[20]&1 != 0:
			r.unit = "%"
		case ok:
			r.unit = unit
		default:
			r.unit = fmt.Sprintf("unit %d", b[21])
		}
	default:
		return sensorRecord{}, false
	}
	kind, n := b[place]>>6, int(b[place]&0x1F)
	r.name = decodeText(kind, b[place+1:min(place+1+n, len(b))])
	return r, r.name != ""
}

const addressBMC = 0x20

// parseFactors decodes the six bytes of factors in a record or in Get Sensor
// Reading Factors.
func parseFactors(b []byte) factors {
	signed := func(n, bits int) int {
		if n >= 1<<(bits-1) {
			n -= 1 << bits
		}
		return n
	}
	return factors{
		m:    signed(int(b[0])|int(b[1]>>6)<<8, 10),
		b:    signed(int(b[2])|int(b[3]>>6)<<8, 10),
		rExp: signed(int(b[5]>>4), 4), bExp: signed(int(b[5]&0x0F), 4),
	}
}

// linearizations maps the linearization functions (Table 43-1).
var linearizations = map[byte]func(float64) float64{
	1: math.Log, 2: math.Log10, 3: math.Log2, 4: math.Exp,
	5: func(x float64) float64 { return math.Pow(10, x) }, 6: math.Exp2, 7: func(x float64) float64 { return 1 / x },
	8: func(x float64) float64 { return x * x }, 9: func(x float64) float64 { return x * x * x }, 10: math.Sqrt, 11: math.Cbrt,
}

// value converts a raw reading.
func (r sensorRecord) value(raw byte, f factors) float64 {
	x := float64(raw)
	switch {
	case r.format == 1 && raw&0x80 != 0:
		x = -float64(^raw)
	case r.format == 2:
		x = float64(int8(raw))
	}
	y := (float64(f.m)*x + float64(f.b)*math.Pow10(f.bExp)) * math.Pow10(f.rExp)
	if bend := linearizations[r.linear]; bend != nil {
		y = bend(y)
	}
	const digits = 1e6 // rounds off the error of the powers of ten
	return math.Round(y*digits) / digits
}

// Sensors reads the threshold sensors that the BMC owns.
func (c *client) Sensors(ctx context.Context) ([]bmc.Sensor, error) {
	var out []bmc.Sensor
	err := c.do(ctx, "sensors", func(s *session) error {
		all, err := s.sdr(ctx)
		if err != nil {
			return unsupported("Sensors", err)
		}
		for _, r := range all.sensors {
			if !r.analog {
				continue
			}
			one, err := s.reading(ctx, r)
			if err != nil {
				return err
			}
			out = append(out, one)
		}
		return nil
	})
	return out, err
}

// reading reads one sensor.
func (s *session) reading(ctx context.Context, r sensorRecord) (bmc.Sensor, error) {
	out := bmc.Sensor{Name: r.name, Unit: r.unit}
	if r.lun != 0 {
		ctx = goipmi.WithCommandContext(ctx, new(goipmi.CommandContext).WithResponderLUN(r.lun))
	}
	b, err := s.command(ctx, getReading, r.number)
	if isRefusal(err) {
		return out, nil // the sensor is absent now
	}
	if err != nil {
		return out, err
	}
	const (
		unavailable, scanning = 0x20, 0x40
		warning, critical     = 0x09, 0x36 // non-critical, and critical or non-recoverable
	)
	if len(b) < 2 {
		return out, shortResponse(getReading, b)
	}
	if b[1]&unavailable != 0 || b[1]&scanning == 0 {
		return out, nil
	}
	f := r.factors
	const byReading = 0x70
	if r.linear >= byReading {
		got, err := s.command(ctx, getFactors, r.number, b[0])
		if err != nil || len(got) < 7 {
			return out, err
		}
		f = parseFactors(got[1:])
	}
	out.Enabled, out.Reading, out.Health = true, r.value(b[0], f), "OK"
	if len(b) > 2 && !r.states {
		switch {
		case b[2]&critical != 0:
			out.Health = "Critical"
		case b[2]&warning != 0:
			out.Health = "Warning"
		}
	}
	return out, nil
}

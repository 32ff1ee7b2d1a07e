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

// records are what the SDR repository tells of the sensors.
type records struct {
	version string // of the repository: changes with it
	sensors []record
}

// record is a sensor's data record: a full one (§43.1), or of a compact one
// (§43.2) the name.
type record struct {
	owner       byte // address
	number, lun byte
	name        string
	analog      bool
	states      bool // it says that it has states: what it tells of them is no comparison
	format      byte // of a reading: 0 unsigned, 1 ones' complement, 2 two's complement
	unit        string
	linear      byte // how the result is bent; 70h and above: factors differ by reading
	factors
}

// factors make a number of a reading (§36.3).
type factors struct {
	m, b       int
	bExp, rExp int
}

// name is the name of a sensor by its number, "" when it is not known.
func (r *records) name(number byte) string {
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

// sdr gives the records, from the client if they are the repository's still.
func (s *session) sdr(ctx context.Context) (*records, error) {
	b, err := s.command(ctx, getSDR)
	if err != nil {
		return nil, err
	}
	if len(b) < 13 {
		return nil, short(getSDR, b)
	}
	version := string(b[1:3]) + string(b[5:13]) // count, and when something came or went
	c := s.client
	c.mu.Lock()
	known := c.records
	c.mu.Unlock()
	if known != nil && known.version == version {
		return known, nil
	}
	known = &records{version: version}
	var others []record // of other controllers, which have sensors of their own
	r := sdrReader{session: s}
	id := uint16(firstRecord)
	for most := 2*(int(b[1])|int(b[2])<<8) + 16; id != lastRecord && most > 0; most-- {
		next, raw, err := r.record(ctx, id)
		if refused(err, 0xCB) {
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
	if !slices.ContainsFunc(known.sensors, func(r record) bool { return r.analog }) && len(others) > 0 {
		// Some BMCs say of all sensors that they are another's (FreeIPMI,
		// workaround assumebmcowner).
		known.sensors = others
		c.lessons.Learn(bmc.Lesson{Topic: aboutSensors, Way: "they are the BMC's, whatever it says", Odd: true})
	}
	c.mu.Lock()
	c.records = known
	c.mu.Unlock()
	return known, nil
}

// sdrReader reads records, as large as the BMC gives them.
type sdrReader struct {
	session     *session
	piece       byte // 0: whole records
	reservation [2]byte
}

// record reads one record, and the ID of the next.
func (r *sdrReader) record(ctx context.Context, id uint16) (next uint16, raw []byte, err error) {
	const head, smallest, again = 5, 8, 3
	lost := 0
	for {
		if r.piece == 0 {
			next, raw, err = r.part(ctx, id, 0, 0xFF)
			if !refused(err, 0xC7, 0xC8, 0xCA, 0xCB, 0xFF) || refused(err, 0xCB) && id != firstRecord {
				return next, raw, err
			}
			r.piece = 32
		}
		next, raw, err = r.part(ctx, id, 0, head)
		for err == nil && len(raw) >= head && len(raw) < head+int(raw[4]) {
			var more []byte
			_, more, err = r.part(ctx, id, byte(len(raw)), min(r.piece, byte(head+int(raw[4])-len(raw))))
			raw = append(raw, more...)
		}
		switch {
		case refused(err, 0xC5) && lost < again: // somebody else has reserved it
			lost++
			err = r.reserve(ctx)
		case refused(err, 0xC7, 0xC8, 0xCA) && r.piece > smallest:
			r.piece /= 2
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
		return short(reserveSDR, b)
	}
	r.reservation = [2]byte(b)
	return nil
}

// part reads a part of a record. From the second on a BMC wants a reservation.
func (r *sdrReader) part(ctx context.Context, id uint16, offset, n byte) (uint16, []byte, error) {
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
		return 0, nil, short(readSDR, b)
	}
	return binary.LittleEndian.Uint16(b), slices.Clone(b[2:]), nil
}

// units are sensor units (§43.17) in UCUM, as Redfish has them.
var units = map[byte]string{
	1: "Cel", 2: "[degF]", 3: "K", 4: "V", 5: "A", 6: "W", 7: "J", 17: "[cft_i]/min", 18: "RPM", 19: "Hz", 20: "us", 21: "ms", 22: "s", 23: "min", 24: "h",
}

// parseRecord reads a sensor's record; false if it is none.
func parseRecord(b []byte) (record, bool) {
	const (
		full, compact         = 0x01, 0x02
		fullName, compactName = 47, 31 // places of type and length of the name
	)
	if len(b) < compactName+1 {
		return record{}, false
	}
	r := record{owner: b[5], number: b[7], lun: b[6] & 3}
	place := compactName
	switch {
	case b[3] == compact:
	case b[3] == full && len(b) > fullName:
		place = fullName
		r.format = b[20] >> 6
		// Some BMCs say of sensors with a unit that they have states (FreeIPMI,
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
		return record{}, false
	}
	kind, n := b[place]>>6, int(b[place]&0x1F)
	r.name = text(kind, b[place+1:min(place+1+n, len(b))])
	return r, r.name != ""
}

const addressBMC = 0x20

// parseFactors reads the six bytes that a record and Get Sensor Reading Factors
// have them in.
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

// bends are the functions of linearised sensors by their number (Table 43-1).
var bends = map[byte]func(float64) float64{
	1: math.Log, 2: math.Log10, 3: math.Log2, 4: math.Exp,
	5: func(x float64) float64 { return math.Pow(10, x) }, 6: math.Exp2, 7: func(x float64) float64 { return 1 / x },
	8: func(x float64) float64 { return x * x }, 9: func(x float64) float64 { return x * x * x }, 10: math.Sqrt, 11: math.Cbrt,
}

// value makes a number of a raw reading.
func (r record) value(raw byte, f factors) float64 {
	x := float64(raw)
	switch {
	case r.format == 1 && raw&0x80 != 0:
		x = -float64(^raw)
	case r.format == 2:
		x = float64(int8(raw))
	}
	y := (float64(f.m)*x + float64(f.b)*math.Pow10(f.bExp)) * math.Pow10(f.rExp)
	if bend := bends[r.linear]; bend != nil {
		y = bend(y)
	}
	const digits = 1e6 // what powers of ten add
	return math.Round(y*digits) / digits
}

// Sensors reads the sensors that are the BMC's own.
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
func (s *session) reading(ctx context.Context, r record) (bmc.Sensor, error) {
	out := bmc.Sensor{Name: r.name, Unit: r.unit}
	if r.lun != 0 {
		ctx = goipmi.WithCommandContext(ctx, new(goipmi.CommandContext).WithResponderLUN(r.lun))
	}
	b, err := s.command(ctx, getReading, r.number)
	if refusedAtAll(err) {
		return out, nil // it is not there now
	}
	if err != nil {
		return out, err
	}
	const (
		unavailable, scanning = 0x20, 0x40
		warning, critical     = 0x09, 0x36 // non-critical, and critical or non-recoverable
	)
	if len(b) < 2 {
		return out, short(getReading, b)
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

package ipmi

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/bougou/go-ipmi/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Commands of the SEL (IPMI v2.0 rev 1.1, §31).
var (
	getSEL     = request{fn: types.NetFnStorageRequest, cmd: 0x40, name: "Get SEL Info"}
	reserveSEL = request{fn: types.NetFnStorageRequest, cmd: 0x42, name: "Reserve SEL"}
	readSEL    = request{fn: types.NetFnStorageRequest, cmd: 0x43, name: "Get SEL Entry"}
	clearSEL   = request{fn: types.NetFnStorageRequest, cmd: 0x47, name: "Clear SEL",
		kinds: map[types.CompletionCode]error{0x81: bmc.ErrUnreachable}}
)

const (
	firstRecord = 0x0000
	lastRecord  = 0xFFFF
	// lateTime is the first timestamp that counts from 1970: lower ones count from
	// the BMC's start (§37.1).
	lateTime = 0x20000000
)

// Log reads the system event log (SEL).
func (c *client) Log(ctx context.Context) ([]bmc.Entry, error) {
	var out []bmc.Entry
	err := c.do(ctx, "log", func(s *session) error {
		b, err := s.command(ctx, getSEL)
		if err != nil {
			return unsupported("Log", err)
		}
		if len(b) < 3 {
			return shortResponse(getSEL, b)
		}
		left := int(b[1]) | int(b[2])<<8
		if left == 0 {
			return nil
		}
		known, err := s.sdr(ctx)
		if err != nil && !isRefusal(err) {
			return err
		}
		// New entries may arrive meanwhile. The limit ends a log whose records
		// form a loop.
		for id, most := uint16(firstRecord), 2*left+16; id != lastRecord && most > 0; most-- {
			b, err := s.command(ctx, readSEL, 0, 0, byte(id), byte(id>>8), 0, 0xFF)
			if hasCode(err, 0xCB) {
				return nil // the log was cleared meanwhile
			}
			if err != nil {
				return err
			}
			const size = 16
			if len(b) < 2+size {
				return shortResponse(readSEL, b)
			}
			out = append(out, parseEntry(b[2:2+size], known))
			next := binary.LittleEndian.Uint16(b)
			if next == id {
				return errors.New("the log does not end")
			}
			id = next
		}
		return nil
	})
	return out, err
}

// parseEntry decodes a SEL record (§32).
func parseEntry(b []byte, known *sensorRecords) bmc.Entry {
	e := bmc.Entry{ID: fmt.Sprint(binary.LittleEndian.Uint16(b))}
	const timed, untimed = 0xC0, 0xE0 // first record types of OEM records
	kind := b[2]
	if kind < untimed {
		if at := binary.LittleEndian.Uint32(b[3:]); at >= lateTime && at != 0xFFFFFFFF {
			e.Time = time.Unix(int64(at), 0).UTC()
		}
	}
	if kind >= timed {
		e.Text = fmt.Sprintf("OEM record %02Xh: %s", kind, hex.EncodeToString(b[3:]))
		return e
	}
	number, event := b[11], b[12]
	e.Sensor = fmt.Sprintf("%s %02Xh", types.SensorType(b[10]), number)
	if name := known.name(number); name != "" {
		e.Sensor = name
	}
	data := types.EventData{EventData1: b[13], EventData2: b[14], EventData3: b[15]}
	reading := types.EventReadingType(event & 0x7F)
	e.Text = reading.EventString(types.SensorType(b[10]), data)
	if e.Text == "" {
		e.Text = "event " + hex.EncodeToString(b[13:16])
	}
	e.Text = types.SensorType(b[10]).String() + ": " + e.Text
	gone := event&0x80 != 0
	if gone {
		e.Text += " (no more)"
	}
	e.Severity = severity(reading.EventSeverity(types.SensorType(b[10]), data, types.EventDir(gone)))
	return e
}

// severity converts go-ipmi's severities to Redfish's.
func severity(s types.EventSeverity) string {
	switch s {
	case types.EventSeverityInfo, types.EventSeverityOK:
		return "OK"
	case types.EventSeverityWarning, types.EventSeverityDegraded:
		return "Warning"
	case types.EventSeverityCritical, types.EventSeverityNonFatal:
		return "Critical"
	}
	return ""
}

// ClearLog erases the SEL and waits until it is erased.
func (c *client) ClearLog(ctx context.Context) error {
	return c.do(ctx, "clear log", func(s *session) error {
		const (
			start, ask = 0xAA, 0x00
			done       = 0x01
			asks       = 20
		)
		reservation, err := s.command(ctx, reserveSEL)
		switch {
		case hasCode(err, 0xC1):
			reservation = []byte{0, 0} // this BMC needs no reservation
		case err != nil:
			return unsupported("ClearLog", err)
		case len(reservation) < 2:
			return shortResponse(reserveSEL, reservation)
		}
		step := byte(start)
		for range asks {
			b, err := s.command(ctx, clearSEL, reservation[0], reservation[1], 'C', 'L', 'R', step)
			switch {
			case err != nil:
				return unsupported("ClearLog", err)
			case len(b) < 1:
				return shortResponse(clearSEL, b)
			case b[0]&0x0F == done:
				return nil
			}
			step = ask
			if err := c.sleep(ctx, busyWait); err != nil {
				return c.stepError(ctx, clearSEL.name, err)
			}
		}
		return errors.New("the log is still being erased")
	})
}

package command

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// alert is the content of an alert.
type alert struct {
	host          Host
	entry         *bmc.Entry // nil: a test alert
	at            time.Time  // BMC time
	event         sel.Event
	severity      byte
	generatorType byte // event source type of the generator; 0: the BMC itself
	text          string
}

// BER tags (ITU-T X.690) that SNMP uses (RFC 1157).
const (
	tagInteger  = 0x02
	tagOctets   = 0x04
	tagOID      = 0x06
	tagSequence = 0x30
	tagAddress  = 0x40
	tagTicks    = 0x43
	tagTrap     = 0xa4
)

// Object identifiers of platform event traps (IPMI Platform Event Trap Format
// v1.0): the enterprise 1.3.6.1.4.1.3183.1.1, and .1 below it for the variable
// binding.
var (
	petEnterprise = []byte{0x2b, 6, 1, 4, 1, 0x98, 0x6f, 1, 1}
	petBinding    = append(petEnterprise[:len(petEnterprise):len(petEnterprise)], 1)
)

const (
	petSpecific  = 6 // generic trap: enterprise-specific
	petBySystem  = 0x20
	petUnknown   = 0xff
	petNoOffset  = 0xffff
	petEnd       = 0xc1 // end of the OEM custom fields
	petText      = 0x80 // a multi-record field
	petASCII     = 1 << 6
	petTextAlert = 1
	petCustom    = 64 // bytes of OEM custom fields, at most
)

// petEpoch is time 0 of a trap's local timestamp.
var petEpoch = time.Date(1998, 1, 1, 0, 0, 0, 0, time.UTC)

// ber returns a BER value with its tag and length.
func ber(tag byte, parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	out := []byte{tag}
	switch {
	case n < 0x80:
		out = append(out, byte(n))
	case n <= math.MaxUint8:
		out = append(out, 0x81, byte(n))
	default:
		out = append(out, 0x82, byte(n>>8), byte(n))
	}
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

// berNumber returns a non-negative BER number.
func berNumber(tag byte, n uint32) []byte {
	b := binary.BigEndian.AppendUint32([]byte{0}, n)
	for len(b) > 1 && b[0] == 0 && b[1] < 0x80 {
		b = b[1:]
	}
	return ber(tag, b)
}

// trap returns the alert as an SNMPv1 trap (§17.16).
func (a *alert) trap(sequence uint16) []byte {
	v := a.host.BMC()
	x := Request{Host: a.host, State: new(State)}
	community := strings.TrimRight(string(lanParameters[16].read(&x, 0)), "\x00")
	specific := uint32(a.event.Sensor)<<16 | uint32(a.event.Type)<<8 | uint32(a.event.Offset())
	if a.event.Gone {
		specific |= 0x80
	}
	agent := []byte{0, 0, 0, 0}
	if all := v.Addresses(); len(all) > 0 && all[0].Is4() {
		agent = all[0].AsSlice()
	}
	up := max(0, a.host.Now().Sub(upSince(v)))
	if upSince(v).IsZero() {
		up = 0
	}
	return ber(tagSequence,
		berNumber(tagInteger, 0), // SNMPv1
		ber(tagOctets, []byte(community)),
		ber(tagTrap,
			ber(tagOID, petEnterprise), ber(tagAddress, agent),
			berNumber(tagInteger, petSpecific), berNumber(tagInteger, specific), berNumber(tagTicks, uint32(up/(10*time.Millisecond))),
			ber(tagSequence, ber(tagSequence, ber(tagOID, petBinding), ber(tagOctets, a.fields(v, sequence)))),
		),
	)
}

// petSeverities are the severities of events that no filter has matched.
var petSeverities = map[event.Severity]byte{event.OK: severityOK, event.Warning: severityNonCritical, event.Critical: severityCritical}

// fields returns the content of the variable binding (table 17-7). Numbers go
// most significant byte first.
func (a *alert) fields(v *bmc.View, sequence uint16) []byte {
	guid := guid(a.host.Machine().Identity.UUID)
	if configured := pefValue(v, pefGUID, 0); configured[0]&1 != 0 {
		guid = [16]byte(configured[1:])
	}
	at := max(0, v.Clock.LocalAsUTC(a.at).Sub(petEpoch))
	offset := uint16(petNoOffset)
	if v.Clock != nil && v.Clock.OffsetSet {
		offset = uint16(v.Clock.UTCOffset)
	}
	source, severity := a.generatorType, a.severity
	if source == 0 {
		source = petBySystem
	}
	if severity == severityUnspecified && a.entry != nil {
		severity = petSeverities[a.entry.Severity()]
	}
	d := a.host.Dialect().IPMI
	out := append([]byte(nil), guid[:]...)
	out = binary.BigEndian.AppendUint16(out, sequence)
	out = binary.BigEndian.AppendUint32(out, uint32(at/time.Second))
	out = binary.BigEndian.AppendUint16(out, offset)
	out = append(out, petBySystem, source, severity, byte(a.event.Generator), a.event.Number, 0, 0) // no entity
	out = append(out, a.event.Data[0], a.event.Data[1], a.event.Data[2], 0, 0, 0, 0, 0)
	out = append(out, petUnknown) // language
	out = binary.BigEndian.AppendUint32(out, d.Manufacturer)
	out = binary.BigEndian.AppendUint16(out, d.Product)
	if a.text != "" {
		text := a.text[:min(len(a.text), petCustom-4)]
		out = append(out, petText, petASCII|byte(len(text)), petTextAlert)
		out = append(out, text...)
	}
	return append(out, petEnd)
}

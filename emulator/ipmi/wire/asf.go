package wire

import "encoding/binary"

// IANA enterprise numbers.
const (
	IANAASF  = 4542
	IANADCMI = 36465
)

const (
	asfPing = 0x80
	asfPong = 0x40
	// pongSize is the data length of a Pong (table 13-7).
	pongSize = 16
)

// Ping is an ASF Presence Ping (§13.2.3), without the RMCP header.
type Ping struct {
	Tag byte // FFh asks for no response
}

// ParsePing parses the data of an ASF message.
func ParsePing(b []byte) (Ping, error) {
	r := reader{b: b}
	p := Ping{Tag: r.asf(asfPing, 0)}
	if err := r.end(); err != nil {
		return Ping{}, wrong("ASF ping", err)
	}
	return p, nil
}

// AppendBinary appends the message.
func (p Ping) AppendBinary(b []byte) ([]byte, error) {
	return appendASF(b, asfPing, p.Tag, 0), nil
}

// Pong is an ASF Presence Pong (§13.2.4). Enterprise IANADCMI means that the
// BMC supports DCMI (DCMI v1.5, §6.4.8); IANAASF means nothing.
type Pong struct {
	Tag          byte // message tag of the ping
	Enterprise   uint32
	OEM          uint32 // enterprise-specific
	Entities     byte   // 81h: IPMI, ASF version 1.0
	Interactions byte   // bit 7: RMCP security, bit 5: DASH
}

// PongIPMI is the Entities value of a BMC with IPMI.
const PongIPMI = 0x81

// AppendBinary appends the message.
func (p Pong) AppendBinary(b []byte) ([]byte, error) {
	b = appendASF(b, asfPong, p.Tag, pongSize)
	b = binary.BigEndian.AppendUint32(b, p.Enterprise)
	b = binary.BigEndian.AppendUint32(b, p.OEM)
	return append(b, p.Entities, p.Interactions, 0, 0, 0, 0, 0, 0), nil
}

// asf reads the header of a message of a type with that data length, and
// returns its tag.
func (r *reader) asf(kind byte, size byte) (tag byte) {
	if r.be32() != IANAASF {
		r.fail(ErrField)
	}
	r.expect(kind)
	tag = r.u8()
	r.skip(1) // reserved
	r.expect(size)
	return tag
}

func appendASF(b []byte, kind, tag, size byte) []byte {
	b = binary.BigEndian.AppendUint32(b, IANAASF)
	return append(b, kind, tag, 0, size)
}

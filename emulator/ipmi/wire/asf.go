package wire

import "encoding/binary"

// Enterprises, by their numbers at IANA.
const (
	IANAASF  = 4542
	IANADCMI = 36465
)

const (
	asfPing = 0x80
	asfPong = 0x40
	// pongSize is the data of a Pong (table 13-7).
	pongSize = 16
)

// Ping is an ASF Presence Ping (§13.2.3), without the RMCP header.
type Ping struct {
	Tag byte // FFh wants no answer
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

// Pong is the answer to a Ping (§13.2.4). That its enterprise is IANADCMI says
// that the BMC speaks DCMI (DCMI v1.5, §6.4.8); IANAASF says nothing.
type Pong struct {
	Tag          byte // of the ping
	Enterprise   uint32
	OEM          uint32 // what the enterprise says
	Entities     byte   // 81h: IPMI, ASF version 1.0
	Interactions byte   // bit 7: RMCP security, bit 5: DASH
}

// PongIPMI is the Entities of whoever speaks IPMI.
const PongIPMI = 0x81

// ParsePong parses the data of an ASF message.
func ParsePong(b []byte) (Pong, error) {
	r := reader{b: b}
	p := Pong{Tag: r.asf(asfPong, pongSize), Enterprise: r.be32(), OEM: r.be32(), Entities: r.u8(), Interactions: r.u8()}
	r.skip(6) // reserved
	if err := r.end(); err != nil {
		return Pong{}, wrong("ASF pong", err)
	}
	return p, nil
}

// AppendBinary appends the message.
func (p Pong) AppendBinary(b []byte) ([]byte, error) {
	b = appendASF(b, asfPong, p.Tag, pongSize)
	b = binary.BigEndian.AppendUint32(b, p.Enterprise)
	b = binary.BigEndian.AppendUint32(b, p.OEM)
	return append(b, p.Entities, p.Interactions, 0, 0, 0, 0, 0, 0), nil
}

// asf takes the header of a message of a kind with data of a size off, and
// returns its tag.
func (r *reader) asf(kind byte, size byte) (tag byte) {
	if r.be32() != IANAASF {
		r.fail(ErrField)
	}
	r.must(kind)
	tag = r.u8()
	r.skip(1) // reserved
	r.must(size)
	return tag
}

func appendASF(b []byte, kind, tag, size byte) []byte {
	b = binary.BigEndian.AppendUint32(b, IANAASF)
	return append(b, kind, tag, 0, size)
}

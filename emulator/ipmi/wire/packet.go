package wire

import "encoding/binary"

// FormatOf tells the two session headers apart by their first byte, without
// reading on: AuthRMCPPlus is a Packet, all else a PacketV15.
func FormatOf(data []byte) (AuthType, bool) {
	if len(data) == 0 {
		return 0, false
	}
	return AuthType(data[0] & 0x0f), true
}

// Packet is what an RMCP+ message of class IPMI holds (table 13-8), header and
// body. What follows the body is the session's trailer, which depends on the
// session.
type Packet struct {
	Type          PayloadType
	Encrypted     bool
	Authenticated bool
	Enterprise    uint32 // of type PayloadOEM
	OEM           uint16 // the enterprise's own type
	Session       uint32 // the receiver's ID; 0 outside of a session
	Sequence      uint32 // 0 outside of a session
	Body          []byte // as it is sent: encrypted when Encrypted
	Trailer       []byte // only when Authenticated
}

// HeaderSize is the bytes before the body of a Packet that is not PayloadOEM.
const HeaderSize = 12

// ParsePacket parses the data of an RMCP message of class IPMI that is RMCP+.
// Body and Trailer are parts of it.
func ParsePacket(data []byte) (p Packet, err error) {
	r := reader{b: data}
	if AuthType(r.u8()&0x0f) != AuthRMCPPlus {
		r.fail(ErrField)
	}
	kind := r.u8()
	p.Type, p.Encrypted, p.Authenticated = PayloadType(kind&0x3f), kind&0x80 != 0, kind&0x40 != 0
	if p.Type == PayloadOEM {
		p.Enterprise, p.OEM = r.u32()&0xffffff, r.u16()
	}
	p.Session, p.Sequence = r.u32(), r.u32()
	p.Body = r.bytes(int(r.u16()))
	if p.Authenticated {
		p.Trailer = r.rest()
	}
	if err := r.end(); err != nil {
		return Packet{}, wrong("RMCP+ packet", err)
	}
	return p, nil
}

// AppendBinary appends header, body and trailer as they are.
func (p Packet) AppendBinary(b []byte) ([]byte, error) {
	if len(p.Body) > 0xffff {
		return b, wrong("RMCP+ packet: Body", ErrLong)
	}
	b = append(p.AppendHeader(b, len(p.Body)), p.Body...)
	return append(b, p.Trailer...), nil
}

// AppendHeader appends the header of a packet whose body will be of a size.
func (p Packet) AppendHeader(b []byte, size int) []byte {
	kind := byte(p.Type) & 0x3f
	if p.Encrypted {
		kind |= 0x80
	}
	if p.Authenticated {
		kind |= 0x40
	}
	b = append(b, byte(AuthRMCPPlus), kind)
	if p.Type == PayloadOEM {
		b = binary.LittleEndian.AppendUint32(b, p.Enterprise&0xffffff)
		b = binary.LittleEndian.AppendUint16(b, p.OEM)
	}
	b = binary.LittleEndian.AppendUint32(b, p.Session)
	b = binary.LittleEndian.AppendUint32(b, p.Sequence)
	return binary.LittleEndian.AppendUint16(b, uint16(size))
}

// Trailer is what follows the body of an authenticated packet: padding to a
// multiple of 4 bytes of what the code covers, and the code.
type Trailer struct {
	Pad  int
	Code []byte
}

const (
	padByte = 0xff
	// nextHeader is reserved, and 07h.
	nextHeader = 0x07
)

// ParseTrailer parses the trailer of a session whose codes are of a size. Code
// is a part of it. The code covers what is before it, from the first byte after
// the RMCP header.
func ParseTrailer(b []byte, size int) (Trailer, error) {
	r := reader{b: b}
	pad := r.bytes(len(b) - size - 2)
	if pad == nil {
		return Trailer{}, wrong("RMCP+ trailer", ErrShort)
	}
	for _, p := range pad {
		if p != padByte {
			r.fail(ErrField)
		}
	}
	r.must(byte(len(pad)))
	r.must(nextHeader)
	t := Trailer{Pad: len(pad), Code: r.bytes(size)}
	if err := r.end(); err != nil || t.Pad > 0xff {
		return Trailer{}, wrong("RMCP+ trailer", err)
	}
	return t, nil
}

// AppendBinary appends the trailer.
func (t Trailer) AppendBinary(b []byte) ([]byte, error) {
	if t.Pad < 0 || t.Pad > 0xff {
		return b, wrong("RMCP+ trailer: Pad", ErrField)
	}
	for range t.Pad {
		b = append(b, padByte)
	}
	return append(append(b, byte(t.Pad), nextHeader), t.Code...), nil
}

// AppendPadding appends the trailer but for the code, for a packet that has its
// header and body from a place in b on.
func AppendPadding(b []byte, from int) []byte {
	pad := -(len(b) - from + 2) & 3
	for range pad {
		b = append(b, padByte)
	}
	return append(b, byte(pad), nextHeader)
}

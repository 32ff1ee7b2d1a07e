package wire

import "encoding/binary"

// FormatOf tells the session header formats apart by their first byte:
// AuthRMCPPlus is a Packet, every other type a PacketV15.
func FormatOf(data []byte) (AuthType, bool) {
	if len(data) == 0 {
		return 0, false
	}
	return AuthType(data[0] & 0x0f), true
}

// Packet is the content of an IPMI-class RMCP+ message (table 13-8): header and
// body. The trailer's format depends on the session.
type Packet struct {
	Type          PayloadType
	Encrypted     bool
	Authenticated bool
	Enterprise    uint32 // with PayloadOEM
	OEM           uint16 // payload type of the enterprise
	Session       uint32 // the receiver's session ID; 0 outside of a session
	Sequence      uint32 // 0 outside of a session
	Body          []byte // as sent: encrypted when Encrypted is set
	Trailer       []byte // when Authenticated is set
}

// HeaderSize is the header length of a Packet other than PayloadOEM.
const HeaderSize = 12

// ParsePacket parses the data of an IPMI-class RMCP+ message. Body and Trailer
// are parts of data.
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

// AppendBinary appends header, body and trailer unchanged.
func (p Packet) AppendBinary(b []byte) ([]byte, error) {
	if len(p.Body) > 0xffff {
		return b, wrong("RMCP+ packet: Body", ErrLong)
	}
	b = append(p.AppendHeader(b, len(p.Body)), p.Body...)
	return append(b, p.Trailer...), nil
}

// AppendHeader appends the header of a packet with a body of that size.
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

// Trailer is the session trailer of an authenticated packet: padding to a
// multiple of 4 bytes, and the AuthCode.
type Trailer struct {
	Pad  int
	Code []byte
}

const (
	padByte = 0xff
	// nextHeader is reserved and always 07h.
	nextHeader = 0x07
)

// ParseTrailer parses the trailer of a session whose AuthCodes have that size.
// Code is a part of b. The AuthCode covers everything before it, from the first
// byte after the RMCP header.
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
	r.expect(byte(len(pad)))
	r.expect(nextHeader)
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

// AppendPadding appends the trailer without the AuthCode, for the packet that
// begins at from in b.
func AppendPadding(b []byte, from int) []byte {
	pad := -(len(b) - from + 2) & 3
	for range pad {
		b = append(b, padByte)
	}
	return append(b, byte(pad), nextHeader)
}

package ipmi

import (
	"encoding/binary"
	"fmt"
)

// Classes of RMCP messages (§13.1.3).
const (
	classASF  = 0x06
	classIPMI = 0x07
	classACK  = 0x80 // bit
)

// rmcp returns the RMCP header of a message that requests no acknowledgement.
func rmcp(class byte) []byte { return []byte{0x06, 0x00, 0xFF, class} }

// packet is an IPMI packet (§13.6).
type packet struct {
	Header
	code    []byte // AuthCode of v1.5; nil: none
	oem     []byte // OEM IANA and payload ID of an OEM payload, 6 bytes
	body    []byte // as it is, perhaps encrypted
	trailer []byte // session trailer of RMCP+; v1.5: a pad of at most one byte
}

// AppendBinary appends the packet. Its length field is the length of body.
func (p packet) AppendBinary(out []byte) ([]byte, error) {
	out = append(out, rmcp(classIPMI)...)
	if p.V15 {
		out = append(out, byte(p.Auth))
		out = binary.LittleEndian.AppendUint32(out, p.Sequence)
		out = binary.LittleEndian.AppendUint32(out, p.Session)
		out = append(out, p.code...)
		if len(p.body) > 0xFF {
			return nil, fmt.Errorf("ipmi: a v1.5 packet holds 255 bytes, not %d", len(p.body))
		}
		out = append(out, byte(len(p.body)))
		out = append(out, p.body...)
		return append(out, p.trailer...), nil
	}
	kind := byte(p.Payload)
	if p.Encrypted {
		kind |= 0x80
	}
	if p.Authenticated {
		kind |= 0x40
	}
	out = append(out, byte(authRMCPPlus), kind)
	out = append(out, p.oem...)
	out = binary.LittleEndian.AppendUint32(out, p.Session)
	out = binary.LittleEndian.AppendUint32(out, p.Sequence)
	if len(p.body) > 0xFFFF {
		return nil, fmt.Errorf("ipmi: an RMCP+ packet holds 65535 bytes, not %d", len(p.body))
	}
	out = binary.LittleEndian.AppendUint16(out, uint16(len(p.body)))
	out = append(out, p.body...)
	return append(out, p.trailer...), nil
}

// parsePacket parses an IPMI packet.
func parsePacket(b []byte) (packet, error) {
	r := reader{b: b}
	var p packet
	if head := r.bytes(4); r.err == nil && [4]byte(head) != [4]byte(rmcp(classIPMI)) {
		return packet{}, fmt.Errorf("%w: RMCP header % X", ErrMalformed, head)
	}
	auth := AuthType(r.u8())
	if auth == authRMCPPlus {
		kind := r.u8()
		p.Payload, p.Encrypted, p.Authenticated = PayloadType(kind&0x3F), kind&0x80 != 0, kind&0x40 != 0
		if p.Payload == PayloadOEM {
			p.oem = r.bytes(6)
		}
		p.Session, p.Sequence = r.u32(), r.u32()
		p.body = r.bytes(int(r.u16()))
		p.trailer = r.rest()
		return p, r.end()
	}
	p.V15, p.Auth = true, auth
	p.Sequence, p.Session = r.u32(), r.u32()
	if auth != AuthNone {
		p.code = r.bytes(16)
	}
	p.body = r.bytes(int(r.u8()))
	p.trailer = r.rest()
	if r.err == nil && len(p.trailer) > 1 {
		return packet{}, fmt.Errorf("%w: %d bytes behind the message", ErrMalformed, len(p.trailer))
	}
	return p, r.end()
}

// checksum returns the byte that makes the sum of b and itself zero (§13.8).
func checksum(b []byte) byte {
	var sum byte
	for _, x := range b {
		sum -= x
	}
	return sum
}

// message is a LAN message (§13.8), or an IPMB message, which has the same
// form. In a response, To is the requester and From the responder.
type message struct {
	To, ToLUN     byte
	NetFn         NetFn
	From, FromLUN byte
	Sequence      byte // 6 bits
	Command       byte
	Data          []byte // data; that of a response begins with the completion code
}

// AppendBinary appends the message with its checksums.
func (m message) AppendBinary(out []byte) ([]byte, error) {
	start := len(out)
	out = append(out, m.To, byte(m.NetFn)<<2|m.ToLUN&3)
	out = append(out, checksum(out[start:]))
	second := len(out)
	out = append(out, m.From, m.Sequence<<2|m.FromLUN&3, m.Command)
	out = append(out, m.Data...)
	return append(out, checksum(out[second:])), nil
}

// parseMessage parses a message and checks its checksums.
func parseMessage(b []byte) (message, error) {
	const least = 7
	if len(b) < least {
		return message{}, fmt.Errorf("%w: a message of %d bytes", ErrMalformed, len(b))
	}
	if checksum(b[:3]) != 0 || checksum(b[3:]) != 0 {
		return message{}, fmt.Errorf("%w: wrong checksum in % X", ErrMalformed, b)
	}
	r := reader{b: b[:len(b)-1]}
	var m message
	m.To = r.u8()
	kind := r.u8()
	m.NetFn, m.ToLUN = NetFn(kind>>2), kind&3
	r.u8()
	m.From = r.u8()
	seq := r.u8()
	m.Sequence, m.FromLUN = seq>>2, seq&3
	m.Command = r.u8()
	m.Data = r.rest()
	return m, r.end()
}

// answers reports whether m is the response to a request. The BMC may respond
// to a bridged request on behalf of the other controller (§6.13.4).
func (m message) answers(r message) bool {
	return m.NetFn == r.NetFn|1 && m.Command == r.Command && m.Sequence == r.Sequence &&
		m.To == r.From && len(m.Data) > 0
}

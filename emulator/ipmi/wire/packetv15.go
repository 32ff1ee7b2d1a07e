package wire

import "encoding/binary"

// PacketV15 is the content of an IPMI-class RMCP message of IPMI 1.5 (table
// 13-8).
type PacketV15 struct {
	Auth     AuthType
	Sequence uint32 // 0 outside of a session
	Session  uint32
	Code     []byte // AuthCode of 16 bytes; nil when Auth is AuthNone
	Body     []byte
	Pad      bool // a legacy pad byte, for network cards that fail at some lengths
}

// CodeSizeV15 is the size of an AuthCode.
const CodeSizeV15 = 16

// ParsePacketV15 parses the data of an IPMI-class RMCP message. Code and Body
// are parts of data.
func ParsePacketV15(data []byte) (p PacketV15, err error) {
	r := reader{b: data}
	p.Auth = AuthType(r.u8() & 0x0f)
	if p.Auth == AuthRMCPPlus {
		r.fail(ErrField)
	}
	p.Sequence, p.Session = r.u32(), r.u32()
	if p.Auth != AuthNone {
		p.Code = r.bytes(CodeSizeV15)
	}
	p.Body = r.bytes(int(r.u8()))
	if len(r.b) > 0 {
		p.Pad = true
		r.skip(1)
	}
	if err := r.end(); err != nil {
		return PacketV15{}, wrong("IPMI 1.5 packet", err)
	}
	return p, nil
}

// AppendBinary appends the packet.
func (p PacketV15) AppendBinary(b []byte) ([]byte, error) {
	if len(p.Body) > 0xff {
		return b, wrong("IPMI 1.5 packet: Body", ErrLong)
	}
	b = append(b, byte(p.Auth))
	b = binary.LittleEndian.AppendUint32(b, p.Sequence)
	b = binary.LittleEndian.AppendUint32(b, p.Session)
	if p.Auth != AuthNone {
		if len(p.Code) != CodeSizeV15 {
			return b, wrong("IPMI 1.5 packet: Code", ErrField)
		}
		b = append(b, p.Code...)
	}
	b = append(append(b, byte(len(p.Body))), p.Body...)
	if p.Pad {
		b = append(b, 0)
	}
	return b, nil
}

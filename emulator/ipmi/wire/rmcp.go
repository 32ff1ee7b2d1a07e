package wire

// Class is the message class of an RMCP message (§13.1.3).
type Class byte

// The supported classes.
const (
	ClassASF  Class = 6
	ClassIPMI Class = 7
)

const (
	rmcpVersion = 0x06
	// noACK is the sequence number that asks for no RMCP acknowledgement. IPMI
	// always uses it (§13.2.2).
	noACK = 0xff
)

// RMCP is the RMCP header (table 13-2), of 4 bytes.
type RMCP struct {
	Sequence byte // FFh asks for no acknowledgement
	ACK      bool // an acknowledgement, without data
	Class    Class
}

// ParseRMCP splits the header off a datagram.
func ParseRMCP(b []byte) (h RMCP, data []byte, err error) {
	r := reader{b: b}
	r.expect(rmcpVersion)
	r.skip(1) // reserved
	h.Sequence = r.u8()
	class := r.u8()
	h.ACK, h.Class = class&0x80 != 0, Class(class&0x1f)
	data = r.rest()
	if r.err != nil {
		return RMCP{}, nil, wrong("RMCP header", r.err)
	}
	return h, data, nil
}

// AppendBinary appends the header.
func (h RMCP) AppendBinary(b []byte) ([]byte, error) {
	class := byte(h.Class) & 0x1f
	if h.ACK {
		class |= 0x80
	}
	return append(b, rmcpVersion, 0, h.Sequence, class), nil
}

// AppendIPMI appends the RMCP header of an IPMI message.
func AppendIPMI(b []byte) []byte {
	return append(b, rmcpVersion, 0, noACK, byte(ClassIPMI))
}

package wire

// SOL is a serial-over-LAN payload (§15.9).
type SOL struct {
	Seq      byte // 1 to 15; 0: acknowledgement only
	Ack      byte // sequence number of the acknowledged packet; 0: none
	Accepted byte // accepted characters of that packet
	Flags    SOLFlags
	Data     []byte
}

// SOLFlags are the operation and status flags; their meaning depends on the
// direction.
type SOLFlags byte

// SOLNack means, in both directions, that not all characters were accepted.
const SOLNack SOLFlags = 1 << 6

// Operations of the console (table 15-2).
const (
	SOLRing          SOLFlags = 1 << 5 // wake on ring
	SOLBreak         SOLFlags = 1 << 4 // send a break
	SOLPause         SOLFlags = 1 << 3 // deassert CTS
	SOLHangUp        SOLFlags = 1 << 2 // deassert DCD and DSR
	SOLFlushInbound  SOLFlags = 1 << 1
	SOLFlushOutbound SOLFlags = 1 << 0
)

// Status flags of the BMC (table 15-2).
const (
	SOLUnavailable   SOLFlags = 1 << 5 // characters cannot be taken now
	SOLDeactivating  SOLFlags = 1 << 4
	SOLOverrun       SOLFlags = 1 << 3 // characters were dropped
	SOLBreakDetected SOLFlags = 1 << 2
)

// ParseSOL parses a payload. Data is a part of b.
func ParseSOL(b []byte) (s SOL, err error) {
	r := reader{b: b}
	s.Seq, s.Ack, s.Accepted, s.Flags = r.u8()&0x0f, r.u8()&0x0f, r.u8(), SOLFlags(r.u8())
	s.Data = r.rest()
	if r.err != nil {
		return SOL{}, wrong("SOL", r.err)
	}
	return s, nil
}

// AppendBinary appends the payload.
func (s SOL) AppendBinary(b []byte) ([]byte, error) {
	return append(append(b, s.Seq&0x0f, s.Ack&0x0f, s.Accepted, byte(s.Flags)), s.Data...), nil
}

package wire

// SOL is the payload of serial over LAN (§15.9).
type SOL struct {
	Seq      byte // 1 to 15; 0: it only acknowledges
	Ack      byte // of the packet that is acknowledged; 0: none
	Accepted byte // characters of that packet
	Flags    SOLFlags
	Data     []byte
}

// SOLFlags say what a side does or wants. Each side's have their own meaning.
type SOLFlags byte

// SOLNack is the same from both sides: not all characters were accepted.
const SOLNack SOLFlags = 1 << 6

// What a client wants (table 15-2, from console to BMC).
const (
	SOLRing          SOLFlags = 1 << 5 // wake on ring
	SOLBreak         SOLFlags = 1 << 4 // send a break
	SOLPause         SOLFlags = 1 << 3 // deassert CTS
	SOLHangUp        SOLFlags = 1 << 2 // deassert DCD and DSR
	SOLFlushInbound  SOLFlags = 1 << 1
	SOLFlushOutbound SOLFlags = 1 << 0
)

// What a BMC tells (table 15-2, from BMC to console).
const (
	SOLUnavailable   SOLFlags = 1 << 5 // no characters can be taken now
	SOLDeactivating  SOLFlags = 1 << 4
	SOLOverrun       SOLFlags = 1 << 3 // characters were lost
	SOLBreakDetected SOLFlags = 1 << 2
)

// ParseSOL parses a payload. Data is a part of it.
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

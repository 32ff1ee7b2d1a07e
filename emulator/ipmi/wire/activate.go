package wire

import "encoding/binary"

// Activation is the data of an Activate Session request (§22.17) on a
// multi-session channel.
type Activation struct {
	Auth      AuthType
	Privilege Privilege
	Challenge [16]byte
	Outbound  uint32 // initial outbound sequence number, of the BMC's packets
}

// ParseActivation parses a request's data.
func ParseActivation(b []byte) (a Activation, err error) {
	r := reader{b: b}
	a.Auth, a.Privilege = AuthType(r.u8()&0x0f), Privilege(r.u8()&0x0f)
	a.Challenge, a.Outbound = r.block(), r.u32()
	if err := r.end(); err != nil {
		return Activation{}, wrong("Activate Session", err)
	}
	return a, nil
}

// AppendBinary appends the data.
func (a Activation) AppendBinary(b []byte) ([]byte, error) {
	b = append(b, byte(a.Auth)&0x0f, byte(a.Privilege)&0x0f)
	b = append(b, a.Challenge[:]...)
	return binary.LittleEndian.AppendUint32(b, a.Outbound), nil
}

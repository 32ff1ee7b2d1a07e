package ipmi

// Tamper corrupts outgoing packets at one layer. The layers around it are
// computed after the change: a wrong session ID still has a valid integrity
// code. A nil field changes nothing.
type Tamper struct {
	// Message changes a payload before it is encrypted, such as its checksums
	// or its sequence number.
	Message func([]byte) []byte
	// Padding changes the bytes that are encrypted: payload, pad, pad length.
	// Their number must stay a multiple of 16.
	Padding func([]byte) []byte
	// Header changes the session header.
	Header func(*Header)
	// Wire gets the finished packet and returns the datagrams to send: none, a
	// damaged one, several, an old one.
	Wire func([]byte) [][]byte
}

// Header is a session header of RMCP+ (§13.6), or of IPMI v1.5 if V15 is set.
type Header struct {
	Payload       PayloadType // RMCP+ only
	Encrypted     bool        // likewise
	Authenticated bool        // likewise
	V15           bool
	Auth          AuthType // v1.5 only
	Session       uint32
	Sequence      uint32
}

// PayloadType is a payload type of RMCP+ (§13.27.3).
type PayloadType byte

// The payload types.
const (
	PayloadIPMI         PayloadType = 0x00
	PayloadSOL          PayloadType = 0x01
	PayloadOEM          PayloadType = 0x02
	PayloadOpenRequest  PayloadType = 0x10
	PayloadOpenResponse PayloadType = 0x11
	PayloadRAKP1        PayloadType = 0x12
	PayloadRAKP2        PayloadType = 0x13
	PayloadRAKP3        PayloadType = 0x14
	PayloadRAKP4        PayloadType = 0x15
)

// AuthType is an authentication type of IPMI v1.5 (§22.13). The value 06h
// marks an RMCP+ packet.
type AuthType byte

// The authentication types.
const (
	AuthNone     AuthType = 0x00
	AuthMD2      AuthType = 0x01
	AuthMD5      AuthType = 0x02
	AuthPassword AuthType = 0x04
	authRMCPPlus AuthType = 0x06
)

func (a AuthType) String() string {
	switch a {
	case AuthNone:
		return "none"
	case AuthMD2:
		return "MD2"
	case AuthMD5:
		return "MD5"
	case AuthPassword:
		return "straight password"
	}
	return "authentication type " + string('0'+byte(a)%10)
}

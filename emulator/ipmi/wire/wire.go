// Package wire encodes and decodes IPMI over LAN: RMCP and its ASF messages,
// the session headers of IPMI 1.5 and 2.0, the handshake (Open Session, RAKP 1
// to 4), IPMI messages in LAN format, and the SOL payload header. It owns the
// numbers in them. It parses and appends complete messages; it verifies no
// AuthCode, holds no session, and knows neither commands nor sockets.
//
// Sections are those of IPMI v2.0 rev 1.1 unless another document is named.
// IPMI sends numbers least significant byte first, RMCP and ASF most
// significant byte first (§13.5.1).
package wire

import (
	"errors"
	"fmt"
)

// Errors of a message.
var (
	ErrShort    = errors.New("it is cut short")
	ErrLong     = errors.New("bytes follow its end")
	ErrField    = errors.New("a field has a value that is not defined")
	ErrChecksum = errors.New("a checksum is wrong")
)

func wrong(what string, err error) error { return fmt.Errorf("wire: %s: %w", what, err) }

// NetFn is a network function (§5.1). A request's is even, its response's one
// higher.
type NetFn byte

// The network functions of requests.
const (
	Chassis     NetFn = 0x00
	Bridge      NetFn = 0x02
	SensorEvent NetFn = 0x04
	App         NetFn = 0x06
	Firmware    NetFn = 0x08
	Storage     NetFn = 0x0a
	Transport   NetFn = 0x0c
	Group       NetFn = 0x2c // the first data byte is the defining body
	OEMGroup    NetFn = 0x2e // the first three data bytes are the enterprise number
	OEM         NetFn = 0x30 // and all even ones above it
)

// IsResponse reports whether the network function is a response's.
func (f NetFn) IsResponse() bool { return f&1 != 0 }

// Privilege is a privilege level (§6.8).
type Privilege byte

// The privilege levels. Zero is none; as a requested maximum it means the
// highest.
const (
	Callback      Privilege = 1
	User          Privilege = 2
	Operator      Privilege = 3
	Administrator Privilege = 4
	OEMPrivilege  Privilege = 5
)

// PayloadType is the payload type of an RMCP+ packet (table 13-16).
type PayloadType byte

// The payload types.
const (
	PayloadIPMI         PayloadType = 0x00
	PayloadSOL          PayloadType = 0x01
	PayloadOEM          PayloadType = 0x02 // the header names the enterprise
	PayloadOpenRequest  PayloadType = 0x10
	PayloadOpenResponse PayloadType = 0x11
	PayloadRAKP1        PayloadType = 0x12
	PayloadRAKP2        PayloadType = 0x13
	PayloadRAKP3        PayloadType = 0x14
	PayloadRAKP4        PayloadType = 0x15
)

// Status is an RMCP+ status code (table 13-15).
type Status byte

// The status codes.
const (
	StatusOK                     Status = 0x00
	StatusNoResources            Status = 0x01
	StatusInvalidSession         Status = 0x02
	StatusInvalidPayload         Status = 0x03
	StatusInvalidAuthentication  Status = 0x04
	StatusInvalidIntegrity       Status = 0x05
	StatusNoAuthentication       Status = 0x06 // none proposed
	StatusNoIntegrity            Status = 0x07
	StatusInactiveSession        Status = 0x08
	StatusInvalidRole            Status = 0x09
	StatusUnauthorizedRole       Status = 0x0a
	StatusNoResourcesAtRole      Status = 0x0b
	StatusInvalidNameLength      Status = 0x0c
	StatusUnauthorizedName       Status = 0x0d
	StatusUnauthorizedGUID       Status = 0x0e
	StatusInvalidCode            Status = 0x0f
	StatusInvalidConfidentiality Status = 0x10
	StatusNoSuite                Status = 0x11
	StatusIllegalParameter       Status = 0x12
)

// AuthType is the authentication type of an IPMI 1.5 packet, or the mark of an
// RMCP+ packet (§13.6).
type AuthType byte

// The authentication types.
const (
	AuthNone     AuthType = 0x00
	AuthMD2      AuthType = 0x01
	AuthMD5      AuthType = 0x02
	AuthPassword AuthType = 0x04
	AuthOEM      AuthType = 0x05
	AuthRMCPPlus AuthType = 0x06
)

// AuthTypes is a set of authentication types, one bit each, as Get Channel
// Authentication Capabilities answers it (§22.13).
type AuthTypes byte

// Has reports whether a type is in the set.
func (s AuthTypes) Has(a AuthType) bool { return a < 8 && s&(1<<a) != 0 }

// With returns the set with these types added.
func (s AuthTypes) With(types ...AuthType) AuthTypes {
	for _, a := range types {
		s |= 1 << a
	}
	return s
}

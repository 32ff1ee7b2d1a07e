// Package ipmi is a raw client for IPMI over LAN, with checks that a BMC, real or
// emulated, implements RMCP, IPMI v1.5 sessions and RMCP+ as IPMI v2.0 rev 1.1
// specifies them. The client can do what others do not: use every cipher suite
// and K_g, and send corrupt and repeated packets. It shares no codec with the
// emulator, since a common mistake would be invisible. It knows only the commands
// that the checks need.
package ipmi

import (
	"errors"
	"fmt"
)

// NetFn is the network function of a request (IPMI v2.0 rev 1.1, §5.1). The
// response has the next number.
type NetFn byte

// The network functions.
const (
	Chassis     NetFn = 0x00
	Bridge      NetFn = 0x02
	SensorEvent NetFn = 0x04
	App         NetFn = 0x06
	Firmware    NetFn = 0x08
	Storage     NetFn = 0x0A
	Transport   NetFn = 0x0C
	Group       NetFn = 0x2C
)

// Privilege is a privilege level (§6.8).
type Privilege byte

// The privilege levels. The zero Privilege asks for the highest that there is,
// or for no change.
const (
	Callback      Privilege = 1
	User          Privilege = 2
	Operator      Privilege = 3
	Administrator Privilege = 4
)

func (p Privilege) String() string {
	names := [...]string{"no level", "CALLBACK", "USER", "OPERATOR", "ADMINISTRATOR", "OEM"}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("privilege %d", byte(p))
}

// Addresses of LAN messages (§5.5, §13.8).
const (
	addressBMC     = 0x20
	addressConsole = 0x81 // software ID of a remote console
)

// Code is a completion code (§5.2). As an error it is never 00h.
type Code byte

// Completion codes that checks ask for.
const (
	OK               Code = 0x00
	InvalidSession   Code = 0x87 // completion code of Close Session
	InvalidCommand   Code = 0xC1
	WrongLength      Code = 0xC7
	InvalidField     Code = 0xCC
	NoPrivilege      Code = 0xD4
	LevelExceeds     Code = 0x81 // completion code of Set Session Privilege Level
	LevelUnavailable Code = 0x80 // likewise
)

var codeNames = map[Code]string{
	0xC0: "node busy", 0xC1: "invalid command", 0xC2: "invalid command for LUN", 0xC3: "time-out",
	0xC4: "out of space", 0xC5: "reservation cancelled", 0xC6: "request truncated", 0xC7: "wrong length",
	0xC8: "field too long", 0xC9: "parameter out of range", 0xCA: "too many bytes asked for",
	0xCB: "not present", 0xCC: "invalid field", 0xCD: "illegal for this sensor or record", 0xCE: "no response",
	0xCF: "duplicated request", 0xD0: "SDR repository in update", 0xD1: "firmware in update",
	0xD2: "initialisation in progress", 0xD3: "destination unavailable", 0xD4: "insufficient privilege",
	0xD5: "not in present state", 0xD6: "disabled", 0xFF: "unspecified error",
}

func (c Code) Error() string {
	if name, ok := codeNames[c]; ok {
		return fmt.Sprintf("completion code %02Xh (%s)", byte(c), name)
	}
	return fmt.Sprintf("completion code %02Xh", byte(c))
}

// Status is an RMCP+ status code (§13.24). As an error it is never 00h.
type Status byte

// The statuses.
const (
	NoResources      Status = 0x01
	InvalidSessionID Status = 0x02
	InvalidPayload   Status = 0x03
	InvalidAuth      Status = 0x04
	InvalidIntegrity Status = 0x05
	NoAuthMatch      Status = 0x06
	NoIntegrityMatch Status = 0x07
	InactiveSession  Status = 0x08
	InvalidRole      Status = 0x09
	UnauthorizedRole Status = 0x0A
	InvalidNameSize  Status = 0x0C
	UnknownName      Status = 0x0D
	InvalidICV       Status = 0x0F
	InvalidCrypt     Status = 0x10
	NoSuite          Status = 0x11
	IllegalParameter Status = 0x12
)

var statusNames = map[Status]string{
	NoResources: "insufficient resources", InvalidSessionID: "invalid session ID",
	InvalidPayload: "invalid payload type", InvalidAuth: "invalid authentication algorithm",
	InvalidIntegrity: "invalid integrity algorithm", NoAuthMatch: "no matching authentication payload",
	NoIntegrityMatch: "no matching integrity payload", InactiveSession: "inactive session ID",
	InvalidRole: "invalid role", UnauthorizedRole: "unauthorized role", 0x0B: "insufficient resources at that role",
	InvalidNameSize: "invalid name length", UnknownName: "unauthorized name", 0x0E: "unauthorized GUID",
	InvalidICV: "invalid integrity check value", InvalidCrypt: "invalid confidentiality algorithm",
	NoSuite: "no matching cipher suite", IllegalParameter: "illegal parameter",
}

func (s Status) Error() string {
	if name, ok := statusNames[s]; ok {
		return fmt.Sprintf("status %02Xh (%s)", byte(s), name)
	}
	return fmt.Sprintf("status %02Xh", byte(s))
}

// Errors of an exchange that brought neither a Code nor a Status.
var (
	ErrNoAnswer  = errors.New("no answer")
	ErrMalformed = errors.New("malformed answer")
	ErrPassword  = errors.New("the BMC does not know the password") // RAKP 2 has a code of another one
	ErrKey       = errors.New("the BMC has another K_g")            // RAKP 4 has a code of another one
)

// Error is the failure of a step such as "RAKP 1" or "App 01h". Err is a Code
// or a Status, or wraps one of the errors above.
type Error struct {
	Step string
	Err  error
}

func (e *Error) Error() string { return "ipmi: " + e.Step + ": " + e.Err.Error() }

func (e *Error) Unwrap() error { return e.Err }

// Request is an IPMI command.
type Request struct {
	NetFn   NetFn
	Command byte
	Data    []byte
	LUN     byte
	Name    string // for errors; "" is numbers
}

func (r Request) String() string {
	if r.Name != "" {
		return fmt.Sprintf("%s (%02Xh/%02Xh)", r.Name, byte(r.NetFn), r.Command)
	}
	return fmt.Sprintf("command %02Xh/%02Xh", byte(r.NetFn), r.Command)
}

// Requests without data that are asked often.
var (
	GetDeviceID      = Request{NetFn: App, Command: 0x01, Name: "Get Device ID"}
	GetSystemGUID    = Request{NetFn: App, Command: 0x37, Name: "Get System GUID"}
	GetChassisStatus = Request{NetFn: Chassis, Command: 0x01, Name: "Get Chassis Status"}
)

// with returns the request with data.
func (r Request) with(data ...byte) Request {
	r.Data = data
	return r
}

package event

// Part is a kind of part of a server. Values are stored.
type Part string

// The parts.
const (
	System     Part = "system"
	Chassis    Part = "chassis"
	BMC        Part = "bmc"
	Drive      Part = "drive"
	Volume     Part = "volume"
	Controller Part = "controller"
	Sensor     Part = "sensor"
	Fan        Part = "fan"
	Supply     Part = "supply"
	NIC        Part = "nic"
	Component  Part = "component" // of firmware
	Media      Part = "media"
	Account    Part = "account"
	Session    Part = "session"
	Job        Part = "job"
)

// Kind is a kind of thing that happens. Values are stored; protocols map them
// to messages and records of their own.
type Kind string

// The kinds. Each has a row in Kinds.
const (
	PowerOn  Kind = "power.on"
	PowerOff Kind = "power.off"
)

// Kinds says how bad each kind is, and what happened, for people.
var Kinds = map[Kind]struct {
	Severity Severity
	Text     string // %1, %2: the arguments
}{
	PowerOn:  {OK, "The system was switched on."},
	PowerOff: {OK, "The system was switched off."},
}

package ipmi

import (
	"context"
	"errors"
	"fmt"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/firmware"
	"github.com/metalab-dev/metalab/emulator/machine/storage"
	"github.com/metalab-dev/metalab/emulator/machine/thermal"
)

// Code is a completion code (IPMI v2.0 rev 1.1, §5.2). Those from 80h to BEh
// mean something else with each command. As an error it is what a command
// answers instead of what was asked for.
type Code byte

// The codes that mean the same everywhere.
const (
	Done         Code = 0x00
	Busy         Code = 0xc0
	Unknown      Code = 0xc1 // the command
	UnknownAtLUN Code = 0xc2
	Timeout      Code = 0xc3
	NoSpace      Code = 0xc4
	NoReserved   Code = 0xc5 // the reservation is over, or there is none
	Cut          Code = 0xc6 // the request's data
	BadLength    Code = 0xc7 // of the request's data
	TooMuch      Code = 0xc8 // data asked for
	OutOfRange   Code = 0xc9
	CannotReturn Code = 0xca // so many bytes
	NotPresent   Code = 0xcb // sensor, record
	BadField     Code = 0xcc
	Illegal      Code = 0xcd // for that sensor or record type
	NoAnswer     Code = 0xce
	Duplicate    Code = 0xcf
	Updating     Code = 0xd0 // SDR repository
	UpdatingBMC  Code = 0xd1
	Starting     Code = 0xd2
	NoRoute      Code = 0xd3
	Forbidden    Code = 0xd4 // by privilege or firewall
	WrongState   Code = 0xd5
	Disabled     Code = 0xd6 // part of the command
	Unspecified  Code = 0xff
)

// Error implements error.
func (c Code) Error() string { return fmt.Sprintf("ipmi: completion code %02Xh", byte(c)) }

// beside is a completion code that is answered beside data, rather than in their
// place.
type beside Code

// Error implements error.
func (c beside) Error() string { return Code(c).Error() }

// codes says how an error of the model is answered; the first that fits.
var codes = []struct {
	err  error
	code Code
}{
	{machine.ErrPower, WrongState},
	{machine.ErrStale, WrongState},
	{machine.ErrConflict, WrongState},
	{machine.ErrUnknown, BadField},
	{thermal.ErrUnknown, OutOfRange},
	{firmware.ErrBusy, Busy},
	{storage.ErrBusy, Busy},
	{bmc.ErrInUse, Busy},
	{bmc.ErrDown, Busy},
	{bmc.ErrFollows, WrongState},
	{bmc.ErrDisabled, WrongState},
	{bmc.ErrFull, NoSpace},
	{bmc.ErrNotFound, NotPresent},
	{bmc.ErrAddress, BadField},
	{bmc.ErrPort, BadField},
	{bmc.ErrSOL, BadField},
	{context.Canceled, Busy},
	{context.DeadlineExceeded, Timeout},
}

// codeOf is what an error is answered with; Unspecified for one that nobody
// knows.
func codeOf(err error) Code {
	if err == nil {
		return Done
	}
	var c Code
	var b beside
	switch {
	case errors.As(err, &c):
		return c
	case errors.As(err, &b):
		return Code(b)
	}
	var f *bmc.FieldError
	if errors.As(err, &f) {
		return BadField
	}
	for _, row := range codes {
		if errors.Is(err, row.err) {
			return row.code
		}
	}
	return Unspecified
}

package command

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

// Code is a completion code (IPMI v2.0 rev 1.1, §5.2). Codes 80h to BEh are
// command-specific. As an error, it is the response to a command that fails.
type Code byte

// The generic completion codes (table 5-2).
const (
	Completed              Code = 0x00
	NodeBusy               Code = 0xc0
	InvalidCommand         Code = 0xc1 // the command
	InvalidForLUN          Code = 0xc2
	Timeout                Code = 0xc3
	OutOfSpace             Code = 0xc4
	ReservationCanceled    Code = 0xc5 // reservation canceled, or invalid reservation ID
	DataTruncated          Code = 0xc6 // the request's data
	DataLengthInvalid      Code = 0xc7 // the request's data has the wrong length
	DataLengthExceeded     Code = 0xc8 // more data requested than the field holds
	ParameterOutOfRange    Code = 0xc9
	CannotReturnBytes      Code = 0xca // the number of requested data bytes
	NotPresent             Code = 0xcb // sensor, data or record
	InvalidDataField       Code = 0xcc
	IllegalForRecord       Code = 0xcd // for that sensor or record type
	ResponseUnavailable    Code = 0xce
	DuplicateRequest       Code = 0xcf
	SDRUpdateMode          Code = 0xd0 // SDR repository
	FirmwareUpdateMode     Code = 0xd1
	Initializing           Code = 0xd2
	DestinationUnavailable Code = 0xd3
	InsufficientPrivilege  Code = 0xd4 // by privilege or firewall
	NotSupportedInState    Code = 0xd5
	SubFunctionDisabled    Code = 0xd6 // part of the command
	Unspecified            Code = 0xff
)

// Error implements error.
func (c Code) Error() string { return fmt.Sprintf("ipmi: completion code %02Xh", byte(c)) }

// codeWithData is a completion code whose response carries data all the same.
type codeWithData Code

// Error implements error.
func (c codeWithData) Error() string { return Code(c).Error() }

// codes maps the model's errors to completion codes; the first match counts.
var codes = []struct {
	err  error
	code Code
}{
	{machine.ErrPower, NotSupportedInState},
	{machine.ErrStale, NotSupportedInState},
	{machine.ErrConflict, NotSupportedInState},
	{machine.ErrUnknown, InvalidDataField},
	{thermal.ErrUnknown, ParameterOutOfRange},
	{firmware.ErrBusy, NodeBusy},
	{storage.ErrBusy, NodeBusy},
	{bmc.ErrInUse, NodeBusy},
	{bmc.ErrDown, NodeBusy},
	{bmc.ErrFollows, NotSupportedInState},
	{bmc.ErrDisabled, NotSupportedInState},
	{bmc.ErrFull, OutOfSpace},
	{bmc.ErrStorageFull, OutOfSpace},
	{bmc.ErrNotFound, NotPresent},
	{bmc.ErrAddress, InvalidDataField},
	{bmc.ErrPort, InvalidDataField},
	{bmc.ErrSOL, InvalidDataField},
	{context.Canceled, NodeBusy},
	{context.DeadlineExceeded, Timeout},
}

// codeOf returns the completion code for an error; Unspecified when codes has
// none.
func codeOf(err error) Code {
	if err == nil {
		return Completed
	}
	var c Code
	var b codeWithData
	switch {
	case errors.As(err, &c):
		return c
	case errors.As(err, &b):
		return Code(b)
	}
	var f *bmc.FieldError
	if errors.As(err, &f) {
		return InvalidDataField
	}
	for _, row := range codes {
		if errors.Is(err, row.err) {
			return row.code
		}
	}
	return Unspecified
}

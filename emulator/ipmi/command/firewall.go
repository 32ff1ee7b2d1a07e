package command

import (
	"bytes"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// firewallCommands are the command discovery part of the firmware firewall
// (§21). No command can be disabled: Set Command Enables and its sibling
// (§21.7, §21.9) do not exist here.
var firewallCommands = []Row{
	{fn: wire.App, cmd: 0x09, name: "Get NetFn Support", privilege: wire.User, least: 1, most: 1, run: getNetFnSupport},
	{fn: wire.App, cmd: 0x0a, name: "Get Command Support", privilege: wire.User, least: 3, most: 6, run: getCommandSupport},
	{fn: wire.App, cmd: 0x0b, name: "Get Command Sub-function Support", privilege: wire.User, least: 4, most: 7, run: getSubFunctionSupport},
	{fn: wire.App, cmd: 0x0c, name: "Get Configurable Commands", privilege: wire.User, least: 3, most: 6, run: getConfigurableCommands},
	{fn: wire.App, cmd: 0x0d, name: "Get Configurable Command Sub-functions", privilege: wire.User, least: 4, most: 7, run: getConfigurableSubFunctions},
	{fn: wire.App, cmd: 0x61, name: "Get Command Enables", privilege: wire.User, least: 3, most: 6, run: getCommandEnables},
	{fn: wire.App, cmd: 0x63, name: "Get Command Sub-function Enables", privilege: wire.User, least: 4, most: 7, run: getConfigurableSubFunctions},
}

// getNetFnSupport handles Get NetFn Support (§21.2): one bit for each pair of
// network functions, by LUN. All commands are on LUN 0.
func getNetFnSupport(x *Request) error {
	if !x.isCommandChannel(x.data[0]) {
		return InvalidDataField
	}
	const asSpecified = 0x01
	var bits [16]byte
	for at := range x.State.Commands.all(x.Host) {
		pair := at.fn >> 1
		bits[pair/8] |= 1 << (pair % 8)
	}
	x.put(asSpecified)
	x.put(bits[:]...)
	return nil
}

// isCommandChannel reports whether a channel field means a channel that
// commands come on.
func (x *Request) isCommandChannel(channel byte) bool {
	n, known := x.resolveChannel(channel)
	return known && n != ipmbChannel && channel&0xf0 == 0
}

// scope is the set of commands that a firewall command asks about: a network
// function, a LUN and, for group functions, the defining body.
type scope struct {
	fn           wire.NetFn
	lun          byte
	definingBody []byte // nil: any defining body
}

// parseScope reads the scope of a request; prefix is the number of bytes in front
// of the defining body.
func (x *Request) parseScope(prefix int) (scope, error) {
	s := scope{fn: wire.NetFn(x.data[1] & 0x3e), lun: x.data[2], definingBody: x.data[prefix:]}
	switch {
	case !x.isCommandChannel(x.data[0]) || s.lun > 3:
		return s, InvalidDataField
	case len(s.definingBody) == 0:
		s.definingBody = nil
	case len(s.definingBody) != definingBodySize[s.fn]:
		return s, DataLengthInvalid
	}
	return s, nil
}

// has reports whether a command is in the scope.
func (s scope) has(at commandKey, row *Row) bool {
	if at.fn != s.fn || s.lun != 0 {
		return false
	}
	return s.definingBody == nil || bytes.Equal(row.definingBody(), s.definingBody)
}

// commandRange reads which half of the command numbers is meant.
func (x *Request) commandRange() (from byte, err error) {
	switch x.data[1] >> 6 {
	case 0:
		return 0x00, nil
	case 1:
		return 0x80, nil
	}
	return 0, InvalidDataField
}

// supportedCommands returns a bit mask of the commands that exist in the
// requested half.
func (x *Request) supportedCommands() (bits [16]byte, err error) {
	s, err := x.parseScope(3)
	if err != nil {
		return bits, err
	}
	from, err := x.commandRange()
	if err != nil {
		return bits, err
	}
	for at, row := range x.State.Commands.all(x.Host) {
		if n := at.cmd - from; s.has(at, row) && n < 0x80 {
			bits[n/8] |= 1 << (n % 8)
		}
	}
	return bits, nil
}

// getCommandSupport handles Get Command Support (§21.3); a set bit means that
// the command does not exist.
func getCommandSupport(x *Request) error {
	bits, err := x.supportedCommands()
	if err != nil {
		return err
	}
	for _, b := range bits {
		x.put(^b)
	}
	return nil
}

// getCommandEnables handles Get Command Enables (§21.8): every command that
// exists is enabled.
func getCommandEnables(x *Request) error {
	bits, err := x.supportedCommands()
	if err != nil {
		return err
	}
	x.put(bits[:]...)
	return nil
}

// getConfigurableCommands handles Get Configurable Commands (§21.5).
func getConfigurableCommands(x *Request) error {
	if _, err := x.supportedCommands(); err != nil {
		return err
	}
	x.put(make([]byte, 16)...)
	return nil
}

// checkSubFunctionCommand checks that the command whose sub-functions are asked
// for exists.
func (x *Request) checkSubFunctionCommand() error {
	s, err := x.parseScope(4)
	if err != nil {
		return err
	}
	if x.data[1]&0xc0 != 0 {
		return InvalidDataField
	}
	for at, row := range x.State.Commands.all(x.Host) {
		if s.has(at, row) && at.cmd == x.data[3] {
			return nil
		}
	}
	return InvalidDataField
}

// getSubFunctionSupport handles Get Command Sub-function Support (§21.4): the
// specification that defines the command; no mandatory sub-function is missing.
// Commands of vendors follow no specification.
func getSubFunctionSupport(x *Request) error {
	if err := x.checkSubFunctionCommand(); err != nil {
		return err
	}
	const ipmiErrata7 = 0x07
	if wire.NetFn(x.data[1]&0x3e) >= wire.OEMGroup {
		x.put(0, 0, 0)
	} else {
		x.put(ipmiErrata7, 0x20, 0x11)
	}
	x.put32(0)
	return nil
}

// getConfigurableSubFunctions handles Get Configurable Command Sub-functions
// (§21.6) and Get Command Sub-function Enables (§21.10).
func getConfigurableSubFunctions(x *Request) error {
	if err := x.checkSubFunctionCommand(); err != nil {
		return err
	}
	x.put32(0)
	return nil
}

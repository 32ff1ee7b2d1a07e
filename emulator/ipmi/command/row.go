package command

import (
	"iter"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// Row is a row of the command table: who may send a command, how long its data
// is and what handles it.
type Row struct {
	fn        wire.NetFn
	cmd       byte
	group     byte           // defining body of a Group command (§5.1); DCMI is DCh
	prefix    []byte         // bytes that requests of a vendor's command begin with
	name      string         // name in IPMI v2.0 rev 1.1, appendix G
	privilege wire.Privilege // lowest privilege level (appendix G); 0: allowed outside of a session
	inBand    bool           // system interface only (appendix G: s)
	// Length of the request's data in bytes, without the defining body; most -1
	// means that any length from least up is accepted.
	least, most int
	// mutates marks a command that changes stored state and may therefore take
	// long: other requests to the same BMC wait for it, those to other BMCs do
	// not.
	mutates bool
	// supported reports whether a BMC has the command; nil: all have it.
	supported func(d *dialect.Record) bool
	// run answers with x.put, or returns an error: a Code, or an error of the
	// model.
	run func(x *Request) error
}

// Name returns the command's name in IPMI v2.0 rev 1.1, appendix G.
func (r *Row) Name() string { return r.name }

// Mutates reports whether the command changes stored state and may therefore
// take long.
func (r *Row) Mutates() bool { return r.mutates }

// Handshake reports whether the command is part of setting up a session: it
// needs none.
func (r *Row) Handshake() bool { return r.privilege == 0 }

// commandKey identifies a command in the command table.
type commandKey struct {
	fn         wire.NetFn
	cmd, group byte
}

// keyOf returns the key of the command that a request names.
func keyOf(req *wire.Request) commandKey {
	at := commandKey{fn: req.NetFn, cmd: req.Cmd}
	if req.NetFn == wire.Group && len(req.Data) > 0 {
		at.group = req.Data[0]
	}
	return at
}

// Table is the command table: the standard's commands and DCMI's. A vendor's
// OEM commands are data in its dialect record: see oemCommand.
type Table map[commandKey]*Row

// NewTable returns the command table.
func NewTable() Table {
	t := Table{}
	for _, row := range commands() {
		t[commandKey{row.fn, row.cmd, row.group}] = &row
	}
	return t
}

// Lookup returns the row of the command that a request names, the vendor's OEM
// commands included; nil when the host's BMC does not have the command.
func (t Table) Lookup(h Host, req *wire.Request) *Row {
	if row := t.lookup(h, keyOf(req)); row != nil {
		return row
	}
	return oemCommand(h, req)
}

// lookup returns the row of a command that a host's BMC has; nil when it does
// not have it.
func (t Table) lookup(h Host, at commandKey) *Row {
	row := t[at]
	if row != nil && row.supported != nil && !row.supported(h.Dialect()) {
		return nil
	}
	return row
}

// all returns the commands that a host's BMC has, with their rows: the standard's and
// the vendor's, as Lookup finds them. Commands of a vendor with one number and several
// prefixes occur once for each.
func (t Table) all(h Host) iter.Seq2[commandKey, *Row] {
	return func(yield func(commandKey, *Row) bool) {
		for at := range t {
			if row := t.lookup(h, at); row != nil && !yield(at, row) {
				return
			}
		}
		for i := range h.Dialect().IPMI.OEMCommands {
			row := oemRow(&h.Dialect().IPMI.OEMCommands[i])
			if !yield(commandKey{fn: row.fn, cmd: row.cmd}, row) {
				return
			}
		}
	}
}

// definingBody returns the defining body of the command (§5.1), or nil.
func (r *Row) definingBody() []byte {
	if r.fn == wire.Group {
		return []byte{r.group}
	}
	n := definingBodySize[r.fn]
	return r.prefix[:min(n, len(r.prefix))]
}

// commands returns the rows of all groups of commands.
func commands() []Row {
	var all []Row
	for _, rows := range [][]Row{
		sessionCommands, chassisCommands, watchdogCommands, appCommands, userCommands, channelCommands, lanCommands,
		sensorCommands, sdrCommands, fruCommands, selCommands, eventCommands, pefCommands, solCommands, dcmiCommands,
		bridgeCommands, firewallCommands, hostInterfaceCommands,
	} {
		all = append(all, rows...)
	}
	return all
}

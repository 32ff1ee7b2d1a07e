package ipmi

import (
	"context"
	"net/netip"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// command is a row of the command table: who may send it, how long its data is
// and who handles it.
type command struct {
	fn        wire.NetFn
	cmd       byte
	group     byte           // defining body of a Group command (§5.1); DCMI is DCh
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
	run func(x *request) error
}

// request is one command in execution and its response. run has the BMC's state
// to itself.
type request struct {
	ctx     context.Context
	service *Service
	host    Host
	state   *bmcState
	session *session.Session // nil outside of a session
	from    netip.AddrPort   // address of the client
	local   netip.AddrPort   // address that the client has reached
	socket  Socket
	now     time.Time // lab time
	fn      wire.NetFn
	cmd     byte
	lun     byte // responder LUN
	// source and sourceLUN are the requester's address on its channel.
	source, sourceLUN byte
	inBand            bool // it came over the server's system interface
	data              []byte
	out               []byte        // response data, without completion code and defining body
	message           []byte        // the full request message as received
	frame             session.Frame // how the message was wrapped
	noResponse        bool          // no response is sent
	followUps         [][]byte      // messages to send after the response
	after             func()        // called after the response was sent; nil: nothing to do
}

func (x *request) machine() *machine.View { return x.host.Machine() }

func (x *request) bmc() *bmc.View { return x.host.BMC() }

// clock returns the BMC's own time, which its log uses.
func (x *request) clock() time.Time { return x.now.Add(x.bmc().Clock.Skew()) }

// put appends bytes to the response.
func (x *request) put(b ...byte) { x.out = append(x.out, b...) }

// Multi-byte numbers go least significant byte first (§2.2).
func (x *request) put16(n uint16) { x.put(byte(n), byte(n>>8)) }

func (x *request) put24(n uint32) { x.put(byte(n), byte(n>>8), byte(n>>16)) }

func (x *request) put32(n uint32) { x.put(byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) }

// le16 and le32 read such numbers; the command table has checked the length.
func le16(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }

func le32(b []byte) uint32 { return uint32(le16(b)) | uint32(le16(b[2:]))<<16 }

// applyMachine applies machine commands as one transaction.
func (x *request) applyMachine(cs ...machine.Command) error {
	if len(cs) == 1 {
		return x.host.Apply(x.ctx, cs[0])
	}
	return x.host.Apply(x.ctx, machine.Transaction(cs))
}

// applyBMC applies a command to the BMC.
func (x *request) applyBMC(c bmc.Command) ([]bmc.Event, error) { return x.host.ApplyBMC(x.ctx, c) }

// commands returns the standard's commands and DCMI's. A vendor's OEM commands
// are data in its dialect record: see oemCommand.
func commands() []command {
	var all []command
	for _, rows := range [][]command{
		sessionCommands, chassisCommands, watchdogCommands, appCommands, userCommands, channelCommands, lanCommands,
		sensorCommands, sdrCommands, fruCommands, selCommands, eventCommands, pefCommands, solCommands, dcmiCommands,
		bridgeCommands, firewallCommands, hostInterfaceCommands,
	} {
		all = append(all, rows...)
	}
	return all
}

// commandKey identifies a command in the command table.
type commandKey struct {
	fn         wire.NetFn
	cmd, group byte
}

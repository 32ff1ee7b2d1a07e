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

// command is a row of the command table.
type command struct {
	fn        wire.NetFn
	cmd       byte
	group     byte           // of fn Group: the body that defines the command (§5.1); DCMI is DCh
	name      string         // as in IPMI v2.0 rev 1.1, appendix G
	privilege wire.Privilege // least (appendix G); 0: none, and no session either
	inBand    bool           // only over the system interface (appendix G: s)
	// Bytes of the request's data, without the group: most is -1 where any
	// number above least is taken.
	least, most int
	// acts says that it changes what is stored, which may take its time: others
	// of the same BMC wait meanwhile, those of other BMCs do not.
	mutates bool
	// when says which BMCs know the command; nil: all of them.
	supported func(d *dialect.Record) bool
	// run answers by x.put, or with an error: a Code, or one of the model's.
	run func(x *request) error
}

// request is one request and its answer. run has the side to itself.
type request struct {
	ctx     context.Context
	service *Service
	host    Host
	state   *bmcState
	session *session.Session // nil: outside of any
	from    netip.AddrPort   // the client
	local   netip.AddrPort   // that it has reached
	socket  Socket
	now     time.Time // of the lab
	fn      wire.NetFn
	cmd     byte
	lun     byte // that the request is for
	// source is the address of who asks, on its channel.
	source, sourceLUN byte
	inBand            bool // it comes from the server's system interface
	data              []byte
	out               []byte        // answer's data, without completion code and group
	message           []byte        // the request whole, as it came
	frame             session.Frame // that it came in
	noResponse        bool          // there is no answer
	followUps         [][]byte      // messages that follow the answer
	after             func()        // called when the answer was sent; nil: nothing
}

func (x *request) machine() *machine.View { return x.host.Machine() }

func (x *request) bmc() *bmc.View { return x.host.BMC() }

// clock is the time as the BMC has it: of its log, say.
func (x *request) clock() time.Time { return x.now.Add(x.bmc().Clock.Skew()) }

// put appends bytes to the answer.
func (x *request) put(b ...byte) { x.out = append(x.out, b...) }

// Numbers of several bytes go least byte first (§2.2).
func (x *request) put16(n uint16) { x.put(byte(n), byte(n>>8)) }

func (x *request) put24(n uint32) { x.put(byte(n), byte(n>>8), byte(n>>16)) }

func (x *request) put32(n uint32) { x.put(byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) }

// le16 and le32 read such numbers; the table has seen to the length.
func le16(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }

func le32(b []byte) uint32 { return uint32(le16(b)) | uint32(le16(b[2:]))<<16 }

// applyMachine carries out commands to the machine, as one.
func (x *request) applyMachine(cs ...machine.Command) error {
	if len(cs) == 1 {
		return x.host.Apply(x.ctx, cs[0])
	}
	return x.host.Apply(x.ctx, machine.Transaction(cs))
}

// applyBMC carries out a command to the BMC.
func (x *request) applyBMC(c bmc.Command) ([]bmc.Event, error) { return x.host.ApplyBMC(x.ctx, c) }

// commands are all of them. Those of a vendor are in its record.
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

// commandKey is where a command is looked up.
type commandKey struct {
	fn         wire.NetFn
	cmd, group byte
}

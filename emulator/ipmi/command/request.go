package command

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// Request is one command in execution and its response. Its handler has the
// BMC's state to itself. A server sets Session, Client, Message and Frame of a
// request that came over LAN, and reads NoResponse, FollowUps and After once
// the request is executed.
type Request struct {
	Host    Host
	State   *State
	Session *session.Session // nil outside of a session
	Client  Client           // not set of a request in band
	Now     time.Time        // lab time
	Message []byte           // the full request message as received
	Frame   session.Frame    // how the message was wrapped

	NoResponse bool     // no response is sent
	FollowUps  [][]byte // messages to send after the response
	After      func()   // called after the response was sent; nil: nothing to do

	ctx  context.Context
	wire wire.Request // the request as parsed
	fn   wire.NetFn
	cmd  byte
	lun  byte // responder LUN
	// source and sourceLUN are the requester's address on its channel.
	source, sourceLUN byte
	inBand            bool // it came over the server's system interface
	data              []byte
	out               []byte // response data, without completion code and defining body
}

// New returns a request to the BMC whose state is st.
func New(ctx context.Context, st *State, now time.Time, req wire.Request) *Request {
	return &Request{
		Host: st.Host, State: st, Now: now, ctx: ctx, wire: req, fn: req.NetFn, cmd: req.Cmd, lun: req.ToLUN, source: req.From, sourceLUN: req.FromLUN,
		data: req.Data,
	}
}

// systemSoftware is the software ID of system software: 41h (table 5-4).
const systemSoftware = 0x41

// NewInBand returns a request that the server's own software sends over the
// system interface (KCS, §9), which needs no authentication: it has every right.
// data of a group extension begins with the defining body.
func NewInBand(ctx context.Context, st *State, lun byte, fn wire.NetFn, cmd byte, data []byte) *Request {
	req := wire.Request{To: bmcAddress, ToLUN: lun & 3, NetFn: fn, From: systemSoftware, FromLUN: softwareLUN, Cmd: cmd, Data: data}
	x := New(ctx, st, st.Host.Now(), req)
	x.inBand, x.Session = true, systemSession()
	return x
}

// systemSession returns the stand-in for the session that in-band requests do
// not have; it has every right.
func systemSession() *session.Session {
	u := session.User{Limit: wire.Administrator}
	return &session.Session{User: u, Limit: wire.Administrator, Privilege: wire.Administrator}
}

// Clone replaces the request's buffers, which belong to whoever received it, by
// copies.
func (x *Request) Clone() {
	x.Message = slices.Clone(x.Message)
	x.wire.Data = slices.Clone(x.wire.Data)
	x.data = x.wire.Data
}

// Row returns the command table row of the request; nil when the BMC does not
// have the command.
func (x *Request) Row() *Row { return x.State.Commands.Lookup(x.Host, &x.wire) }

// NetFn returns the network function of the command.
func (x *Request) NetFn() wire.NetFn { return x.fn }

// Cmd returns the number of the command.
func (x *Request) Cmd() byte { return x.cmd }

// Response returns the response message with a completion code.
func (x *Request) Response(code Code) []byte {
	return x.wire.AppendResponse(nil, byte(code), x.ResponseData())
}

// ResponseData returns the response's data with the request's defining body
// before it, even an unknown one.
func (x *Request) ResponseData() []byte { return withDefiningBody(&x.wire, x.out) }

// ClearResponse drops the response's data.
func (x *Request) ClearResponse() { x.out = nil }

// definingBodySize is the length of the defining body in requests and
// responses, by network function (§5.1).
var definingBodySize = map[wire.NetFn]int{wire.Group: 1, wire.OEMGroup: 3}

// withDefiningBody returns response data preceded by the request's defining
// body, even an unknown one.
func withDefiningBody(req *wire.Request, data []byte) []byte {
	n := definingBodySize[req.NetFn]
	if n == 0 || len(req.Data) < n {
		return data
	}
	return slices.Concat(req.Data[:n], data)
}

// Execute checks privilege, length and firewall, and runs a command; row is nil
// when there is no such command. An error is answered without data, unless it
// is a codeWithData.
func (x *Request) Execute(row *Row) Code {
	if x.lun != 0 {
		return x.executeOtherLUN()
	}
	if row == nil {
		if x.Session == nil && !x.inBand {
			return InsufficientPrivilege // a client without a session does not learn which commands exist
		}
		return InvalidCommand
	}
	if !x.inBand && (row.inBand || row.privilege > 0 && (x.Session == nil || x.Session.Privilege < row.privilege)) {
		return InsufficientPrivilege
	}
	if row.group != 0 {
		x.data = x.data[1:]
	}
	if len(x.data) < row.least || row.most >= 0 && len(x.data) > row.most {
		return DataLengthInvalid
	}
	if !row.mutates {
		return x.run(row)
	}
	if x.dropsWrite(row) {
		return codeOf(nil)
	}
	record := bmc.AuditRecord{Method: "IPMI", Target: row.name}
	if x.Client.Addr.IsValid() { // otherwise it is the server's own software
		record.From = x.Client.Addr.Addr().Unmap().String()
	}
	if x.Session != nil {
		record.Account, record.User = x.Session.User.Account, x.Session.User.Name
	}
	x.ctx = bmc.WithAudit(x.ctx, &bmc.AuditContext{Record: record})
	return x.run(row)
}

func (x *Request) run(row *Row) Code {
	err := row.run(x)
	if with := codeWithData(0); err != nil && !errors.As(err, &with) {
		x.out = nil
	}
	return codeOf(err)
}

func (x *Request) machine() *machine.View { return x.Host.Machine() }

func (x *Request) bmc() *bmc.View { return x.Host.BMC() }

// clock returns the BMC's own time, which its log uses.
func (x *Request) clock() time.Time { return x.Now.Add(x.bmc().Clock.Skew()) }

// put appends bytes to the response.
func (x *Request) put(b ...byte) { x.out = append(x.out, b...) }

// put16, put24 and put32 append a number of 2, 3 or 4 bytes to the response,
// least significant byte first (§2.2).
func (x *Request) put16(n uint16) { x.put(byte(n), byte(n>>8)) }

func (x *Request) put24(n uint32) { x.put(byte(n), byte(n>>8), byte(n>>16)) }

func (x *Request) put32(n uint32) { x.put(byte(n), byte(n>>8), byte(n>>16), byte(n>>24)) }

// le16 and le32 read such numbers; the command table has checked the length.
func le16(b []byte) uint16 { return uint16(b[0]) | uint16(b[1])<<8 }

func le32(b []byte) uint32 { return uint32(le16(b)) | uint32(le16(b[2:]))<<16 }

// applyMachine applies machine commands as one transaction.
func (x *Request) applyMachine(cs ...machine.Command) error {
	if len(cs) == 1 {
		return x.Host.Apply(x.ctx, cs[0])
	}
	return x.Host.Apply(x.ctx, machine.Transaction(cs))
}

// applyBMC applies a command to the BMC.
func (x *Request) applyBMC(c bmc.Command) ([]bmc.Event, error) { return x.Host.ApplyBMC(x.ctx, c) }

package ipmi

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

const (
	// maxDatagram is more than any client sends: session header and trailer,
	// and a payload of at most 255 bytes (§13.8).
	maxDatagram = 2048
	// maxQueued bounds the datagrams that wait for one BMC. Further ones are
	// dropped, as by a congested network: clients retry.
	maxQueued = 64
)

// Socket carries datagrams for many local addresses.
type Socket interface {
	// Receive reads the next datagram; at is its destination address.
	Receive(b []byte) (n int, from, at netip.AddrPort, err error)
	// Send sends a datagram from the local address that the client has reached.
	Send(b []byte, to, from netip.AddrPort) error
}

// packet is a queued datagram, or a call that needs exclusive use of the BMC's
// state.
type packet struct {
	data        []byte
	from, local netip.AddrPort
	socket      Socket
	call        func() // call runs instead of a datagram
}

// Serve answers the datagrams of a socket until the socket is closed. It may
// run for several sockets at once.
func (s *Service) Serve(sock Socket) error {
	buf := make([]byte, maxDatagram)
	for {
		n, from, at, err := sock.Receive(buf)
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil:
			return err
		}
		host, ok := s.c.Rack.IPMIAt(at)
		if !ok {
			continue // no BMC at that address
		}
		st := s.state(host)
		s.injectDatagramFault(st, fault.In, buf[:n], func(data []byte) { s.handleDatagram(st, packet{data: data, from: from, local: at, socket: sock}) })
	}
}

// Wait ends the SOL connections, and returns after all work in progress has
// ended. No Serve may be running.
func (s *Service) Wait() {
	s.mu.Lock()
	s.ended = true
	all := slices.Collect(maps.Values(s.states))
	s.mu.Unlock()
	for _, st := range all {
		s.exclusively(st, func() {
			if a := st.sol.link; a != nil {
				a.cancel()
			}
		})
	}
	s.mutations.Wait()
}

// responseBuffers pools buffers for responses.
var responseBuffers = sync.Pool{New: func() any { return new(make([]byte, 0, maxDatagram)) }}

// handleDatagram handles one datagram. It may return before the datagram's
// command has ended.
func (s *Service) handleDatagram(st *bmcState, p packet) {
	// A delayed datagram comes in a goroutine of its own, so buffers cannot be
	// shared with the reader's.
	own := responseBuffers.Get().(*[]byte)
	defer responseBuffers.Put(own)
	out := *own
	leave := func() {}
	if s.c.Enter != nil {
		leave = s.c.Enter()
	}
	st.mu.Lock()
	if st.busy {
		if len(st.queued) < maxQueued {
			p.data = slices.Clone(p.data)
			st.queued = append(st.queued, p)
		}
		st.mu.Unlock()
		leave()
		return
	}
	act := s.process(st, p, out)
	if act == nil {
		st.mu.Unlock()
		leave()
		return
	}
	st.busy = true
	st.mu.Unlock()
	s.mutations.Go(func() {
		defer leave()
		act()
		s.drainWaiting(st)
	})
}

// drainWaiting handles the packets that were queued while a mutating command
// ran.
func (s *Service) drainWaiting(st *bmcState) {
	out := make([]byte, 0, maxDatagram)
	for {
		st.mu.Lock()
		if len(st.queued) == 0 {
			st.busy, st.queued = false, nil
			st.mu.Unlock()
			return
		}
		p := st.queued[0]
		st.queued = st.queued[1:]
		act := p.call
		if act == nil {
			act = s.process(st, p, out)
		}
		st.mu.Unlock()
		if act != nil {
			act()
		}
	}
}

// process handles a datagram, or returns the rest of the work, which the caller
// runs without st.mu; st.busy is set until then. The buffers are the caller's
// afterwards.
func (s *Service) process(st *bmcState, p packet, out []byte) (act func()) {
	st.invalidateSessions(s.c.Rand)
	now := st.host.Now()
	s.keepSOLSessionAlive(st, now)
	st.table.Advance(now)
	got := st.table.Receive(now, p.from, p.data, out[:0], &st.auth)
	saturatingInc(&st.lan.traffic.received)
	if got.Reply != nil || got.Body != nil {
		saturatingInc(&st.lan.traffic.valid)
	}
	if a := st.sol.link; a != nil && a.session == got.Session {
		a.probed = false
	}
	if got.Reply != nil {
		s.send(st, p, got.Reply)
		return nil
	}
	if got.Body != nil && got.Payload == wire.PayloadSOL {
		return s.receiveSOL(st, got)
	}
	if got.Body == nil || got.Payload != wire.PayloadIPMI {
		return nil
	}
	req, err := wire.ParseRequest(got.Body)
	if err != nil {
		return nil // dropped, like a bad checksum (§13.8)
	}
	if got.Session != nil {
		if again, ok := got.Session.Repeat(got.Body); ok {
			s.send(st, p, st.table.Wrap(now, out[:0], got.Frame, wire.PayloadIPMI, again))
			return nil
		}
	}
	row := s.lookup(st, &req)
	x := &request{
		ctx: context.Background(), service: s, host: st.host, state: st, session: got.Session, from: p.from, local: p.local, socket: p.socket, now: now,
		fn: req.NetFn, cmd: req.Cmd, lun: req.ToLUN, data: req.Data,
		source: req.From, sourceLUN: req.FromLUN, message: got.Body, frame: got.Frame,
	}
	if row == nil || !row.mutates {
		s.finish(st, p, x, row, got, req, out)
		return nil
	}
	// The datagram's buffer belongs to the reader.
	got.Body = slices.Clone(got.Body)
	if req, err = wire.ParseRequest(got.Body); err != nil {
		return nil
	}
	x.data = req.Data
	p.data = nil
	return func() { s.finish(st, p, x, row, got, req, make([]byte, 0, maxDatagram)) }
}

// lookup returns the command table row of a request; nil when the BMC does not
// have the command.
func (s *Service) lookup(st *bmcState, req *wire.Request) *command {
	at := commandKey{fn: req.NetFn, cmd: req.Cmd}
	if req.NetFn == wire.Group && len(req.Data) > 0 {
		at.group = req.Data[0]
	}
	if row := s.lookupForHost(st.host, at); row != nil {
		return row
	}
	return oemCommand(st.host, req)
}

// lookupForHost returns the row of a command that a host's BMC has; nil when it
// does not have it.
func (s *Service) lookupForHost(h Host, at commandKey) *command {
	row := s.commands[at]
	if row != nil && row.supported != nil && !row.supported(h.Dialect()) {
		return nil
	}
	return row
}

// finish executes a request and sends its response.
func (s *Service) finish(st *bmcState, p packet, x *request, row *command, got session.Received, req wire.Request, out []byte) {
	code := s.execute(x, row)
	if x.noResponse {
		return
	}
	body := req.AppendResponse(nil, byte(code), withDefiningBody(&req, x.out))
	if got.Session != nil && x.host.Dialect().IPMI.Faults.BadChecksum {
		body[len(body)-1]++
	}
	if got.Session != nil && x.followUps == nil { // a repeated request gets only the response, without its follow-ups
		got.Session.Remember(got.Body, body)
	}
	s.send(st, p, st.table.Wrap(x.now, out[:0], got.Frame, wire.PayloadIPMI, body))
	for _, m := range x.followUps {
		s.send(st, p, st.table.Wrap(x.now, out[:0], got.Frame, wire.PayloadIPMI, m))
	}
	if x.after != nil {
		x.after()
	}
	if s.c.Journal != nil {
		e := Entry{At: x.host.Now(), Host: x.host, From: p.from, NetFn: byte(req.NetFn), Cmd: req.Cmd, Code: code}
		e.Took = e.At.Sub(x.now)
		if row != nil {
			e.Command, e.Mutates, e.Handshake = row.name, row.mutates, row.privilege == 0
		}
		if x.session != nil {
			e.User, e.Session = x.session.User.Name, x.session.Number
		}
		s.c.Journal(e)
	}
}

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

// execute executes a command, unless a fault is injected.
func (s *Service) execute(x *request, row *command) Code {
	if s.c.CommandFault == nil || x.session == nil {
		return x.execute(row)
	}
	d := s.c.CommandFault(x.host, byte(x.fn), x.cmd)
	if d.Code == 0 {
		return x.execute(row)
	}
	if d.Performed {
		_ = x.execute(row) // the result is replaced by the fault's completion code
		x.out = nil
	}
	return Code(d.Code)
}

// execute checks privilege, length and firewall, and runs a command. An error
// is answered without data, unless it is a codeWithData.
func (x *request) execute(row *command) Code {
	if x.lun != 0 {
		return x.executeOtherLUN()
	}
	if row == nil {
		if x.session == nil && !x.inBand {
			return InsufficientPrivilege // without a session, which commands exist is not told
		}
		return InvalidCommand
	}
	if !x.inBand && (row.inBand || row.privilege > 0 && (x.session == nil || x.session.Privilege < row.privilege)) {
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
	act := bmc.AuditRecord{Method: "IPMI", Target: row.name}
	if x.from.IsValid() { // otherwise it is the server's own software
		act.From = x.from.Addr().Unmap().String()
	}
	if x.session != nil {
		act.Account, act.User = x.session.User.Account, x.session.User.Name
	}
	x.ctx = bmc.WithAudit(x.ctx, &bmc.AuditContext{Record: act})
	return x.run(row)
}

func (x *request) run(row *command) Code {
	err := row.run(x)
	if with := codeWithData(0); err != nil && !errors.As(err, &with) {
		x.out = nil
	}
	return codeOf(err)
}

// send sends a datagram to the client.
func (s *Service) send(st *bmcState, p packet, b []byte) {
	if len(b) == 0 {
		return
	}
	saturatingInc(&st.lan.traffic.sent)
	s.injectDatagramFault(st, fault.Out, b, func(b []byte) {
		if err := p.socket.Send(b, p.from, p.local); err != nil && !errors.Is(err, net.ErrClosed) {
			s.c.Log.Debug("datagram not sent", "bmc", st.host.Name(), "to", p.from.String(), "err", err)
		}
	})
}

package ipmi

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/ipmi/command"
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
	data   []byte
	client command.Client
	call   func() // call runs instead of a datagram
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
		s.injectDatagramFault(st, fault.In, buf[:n], func(data []byte) {
			s.handleDatagram(st, packet{data: data, client: command.Client{Addr: from, Local: at, Socket: sock}})
		})
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
			if a := st.sol; a != nil {
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
	buf := responseBuffers.Get().(*[]byte)
	defer responseBuffers.Put(buf)
	out := *buf
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
	st.InvalidateSessions(s.c.Rand)
	now, client := st.Host.Now(), st.Host.ClientNow()
	s.keepSOLSessionAlive(st, client)
	st.Sessions.Advance(client)
	got := st.Sessions.Receive(client, p.client.Addr, p.data, out[:0], st.Authenticator())
	st.Traffic().CountReceived(got.Reply != nil || got.Body != nil)
	if a := st.sol; a != nil && a.session == got.Session {
		a.probed = false
	}
	if got.Reply != nil {
		s.send(st, p.client, got.Reply)
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
			s.send(st, p.client, st.Sessions.Wrap(out[:0], got.Frame, wire.PayloadIPMI, again))
			return nil
		}
	}
	x := command.New(context.Background(), &st.State, now, req)
	x.Session, x.Client, x.Message, x.Frame = got.Session, p.client, got.Body, got.Frame
	row := x.Row()
	if row == nil || !row.Mutates() {
		s.finish(st, x, row, out)
		return nil
	}
	x.Clone() // the datagram's buffer belongs to the reader
	return func() { s.finish(st, x, row, make([]byte, 0, maxDatagram)) }
}

// finish executes a request and sends its response.
func (s *Service) finish(st *bmcState, x *command.Request, row *command.Row, out []byte) {
	code := s.execute(x, row)
	if x.NoResponse {
		return
	}
	body := x.Response(code)
	if x.Session != nil && st.Host.Dialect().IPMI.Faults.BadChecksum {
		body[len(body)-1]++
	}
	if x.Session != nil && x.FollowUps == nil { // a repeated request gets only the response, without its follow-ups
		x.Session.Remember(x.Message, body)
	}
	s.send(st, x.Client, st.Sessions.Wrap(out[:0], x.Frame, wire.PayloadIPMI, body))
	for _, m := range x.FollowUps {
		s.send(st, x.Client, st.Sessions.Wrap(out[:0], x.Frame, wire.PayloadIPMI, m))
	}
	if x.After != nil {
		x.After()
	}
	if s.c.Journal != nil {
		s.c.Journal(entryOf(x, row, code))
	}
}

// entryOf describes a request that was answered with a completion code.
func entryOf(x *command.Request, row *command.Row, code command.Code) Entry {
	e := Entry{At: x.Host.Now(), Host: x.Host, From: x.Client.Addr, NetFn: byte(x.NetFn()), Cmd: x.Cmd(), Code: code}
	e.Took = e.At.Sub(x.Now)
	if row != nil {
		e.Command, e.Mutates, e.Handshake = row.Name(), row.Mutates(), row.Handshake()
	}
	if x.Session != nil {
		e.User, e.Session = x.Session.User.Name, x.Session.Number
	}
	return e
}

// execute executes a command, unless a fault is injected.
func (s *Service) execute(x *command.Request, row *command.Row) command.Code {
	if s.c.CommandFault == nil || x.Session == nil {
		return x.Execute(row)
	}
	d := s.c.CommandFault(x.Host, byte(x.NetFn()), x.Cmd())
	if d.Code == 0 {
		return x.Execute(row)
	}
	if d.Performed {
		_ = x.Execute(row) // the result is replaced by the fault's completion code
		x.ClearResponse()
	}
	return command.Code(d.Code)
}

// Send implements command.Server.
func (st *bmcState) Send(to command.Client, b []byte) { st.service.send(st, to, b) }

// send sends a datagram to the client.
func (s *Service) send(st *bmcState, to command.Client, b []byte) {
	if len(b) == 0 {
		return
	}
	st.Traffic().CountSent()
	s.injectDatagramFault(st, fault.Out, b, func(b []byte) {
		if err := to.Socket.Send(b, to.Addr, to.Local); err != nil && !errors.Is(err, net.ErrClosed) {
			s.c.Log.Debug("datagram not sent", "bmc", st.Host.Name(), "to", to.Addr.String(), "err", err)
		}
	})
}

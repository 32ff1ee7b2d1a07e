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
	// and a payload of 255 bytes at most (§13.8).
	maxDatagram = 2048
	// maxWaiting bounds the datagrams that wait for one BMC. What comes beyond
	// is lost, as on a network that is full: clients ask again.
	maxWaiting = 64
)

// Socket carries the datagrams of many addresses.
type Socket interface {
	// Receive takes the next datagram. at is the address that it was sent to.
	Receive(b []byte) (n int, from, at netip.AddrPort, err error)
	// Send answers from the address that was reached.
	Send(b []byte, to, from netip.AddrPort) error
}

// parcel is a datagram that waits, or a call that wants the side for itself.
type parcel struct {
	packet   []byte
	from, at netip.AddrPort
	socket   Socket
	call     func() // instead of a datagram
}

// Serve answers what comes on a socket until that is closed. It may run for
// several at once.
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
			continue // nobody is there
		}
		sd := s.side(host)
		s.astray(sd, fault.In, buf[:n], func(packet []byte) { s.arrived(sd, parcel{packet: packet, from: from, at: at, socket: sock}) })
	}
}

// Wait ends what goes on by itself, and returns when nothing is in work any
// more. No Serve may be running.
func (s *Service) Wait() {
	s.mu.Lock()
	s.ended = true
	all := slices.Collect(maps.Values(s.sides))
	s.mu.Unlock()
	for _, sd := range all {
		s.alone(sd, func() {
			if a := sd.serial.link; a != nil {
				a.end()
			}
		})
	}
	s.acts.Wait()
}

// replies are buffers for what is answered.
var replies = sync.Pool{New: func() any { return new(make([]byte, 0, maxDatagram)) }}

// arrived sees to one datagram. It may still be in work when arrived returns.
func (s *Service) arrived(sd *side, p parcel) {
	// A datagram that was late comes beside the reader: none has the other's.
	own := replies.Get().(*[]byte)
	defer replies.Put(own)
	out := *own
	leave := func() {}
	if s.c.Enter != nil {
		leave = s.c.Enter()
	}
	sd.mu.Lock()
	if sd.busy {
		if len(sd.waiting) < maxWaiting {
			p.packet = slices.Clone(p.packet)
			sd.waiting = append(sd.waiting, p)
		}
		sd.mu.Unlock()
		leave()
		return
	}
	act := s.take(sd, p, out)
	if act == nil {
		sd.mu.Unlock()
		leave()
		return
	}
	sd.busy = true
	sd.mu.Unlock()
	s.acts.Go(func() {
		defer leave()
		act()
		s.catchUp(sd)
	})
}

// catchUp sees to what has come while a command had the side.
func (s *Service) catchUp(sd *side) {
	out := make([]byte, 0, maxDatagram)
	for {
		sd.mu.Lock()
		if len(sd.waiting) == 0 {
			sd.busy, sd.waiting = false, nil
			sd.mu.Unlock()
			return
		}
		p := sd.waiting[0]
		sd.waiting = sd.waiting[1:]
		act := p.call
		if act == nil {
			act = s.take(sd, p, out)
		}
		sd.mu.Unlock()
		if act != nil {
			act()
		}
	}
}

// take answers a datagram, or returns what is to be done for it without sd.mu:
// sd.busy keeps others away then. The buffers are the caller's after it.
func (s *Service) take(sd *side, p parcel, out []byte) (act func()) {
	sd.heed(s.c.Rand)
	now := sd.host.Now()
	s.attend(sd, now)
	sd.table.Advance(now)
	got := sd.table.Receive(now, p.from, p.packet, out[:0], &sd.realm)
	count(&sd.lan.traffic.received)
	if got.Reply != nil || got.Body != nil {
		count(&sd.lan.traffic.valid)
	}
	if a := sd.serial.link; a != nil && a.session == got.Session {
		a.probed = false
	}
	if got.Reply != nil {
		s.send(sd, p, got.Reply)
		return nil
	}
	if got.Body != nil && got.Payload == wire.PayloadSOL {
		return s.typed(sd, got)
	}
	if got.Body == nil || got.Payload != wire.PayloadIPMI {
		return nil
	}
	req, err := wire.ParseRequest(got.Body)
	if err != nil {
		return nil // silent, as a bad checksum is (§13.8)
	}
	if got.Session != nil {
		if again, ok := got.Session.Repeat(got.Body); ok {
			s.send(sd, p, sd.table.Seal(now, out[:0], got.Frame, wire.PayloadIPMI, again))
			return nil
		}
	}
	row := s.find(sd, &req)
	x := &exchange{
		ctx: context.Background(), service: s, host: sd.host, side: sd, session: got.Session, from: p.from, at: p.at, socket: p.socket, now: now,
		fn: req.NetFn, cmd: req.Cmd, lun: req.ToLUN, data: req.Data,
		source: req.From, sourceLUN: req.FromLUN, message: got.Body, frame: got.Frame,
	}
	if row == nil || !row.acts {
		s.finish(sd, p, x, row, got, req, out)
		return nil
	}
	// The packet's buffer is the reader's.
	got.Body = slices.Clone(got.Body)
	if req, err = wire.ParseRequest(got.Body); err != nil {
		return nil
	}
	x.data = req.Data
	p.packet = nil
	return func() { s.finish(sd, p, x, row, got, req, make([]byte, 0, maxDatagram)) }
}

// find is the row of a request; nil when the BMC does not know the command.
func (s *Service) find(sd *side, req *wire.Request) *command {
	at := place{fn: req.NetFn, cmd: req.Cmd}
	if req.NetFn == wire.Group && len(req.Data) > 0 {
		at.group = req.Data[0]
	}
	if row := s.known(sd.host, at); row != nil {
		return row
	}
	return oemCommand(sd.host, req)
}

// known is the row of a command that the BMC of a host knows; nil if it does
// not.
func (s *Service) known(h Host, at place) *command {
	row := s.commands[at]
	if row != nil && row.when != nil && !row.when(h.Dialect()) {
		return nil
	}
	return row
}

// finish carries out a request and answers it.
func (s *Service) finish(sd *side, p parcel, x *exchange, row *command, got session.Received, req wire.Request, out []byte) {
	code := s.carryOut(x, row)
	if x.silent {
		return
	}
	body := req.AppendResponse(nil, byte(code), named(&req, x.out))
	if got.Session != nil && x.host.Dialect().IPMI.Faults.BadChecksum {
		body[len(body)-1]++
	}
	if got.Session != nil && x.more == nil { // what follows would be missed
		got.Session.Remember(got.Body, body)
	}
	s.send(sd, p, sd.table.Seal(x.now, out[:0], got.Frame, wire.PayloadIPMI, body))
	for _, m := range x.more {
		s.send(sd, p, sd.table.Seal(x.now, out[:0], got.Frame, wire.PayloadIPMI, m))
	}
	if x.after != nil {
		x.after()
	}
	if s.c.Journal != nil {
		e := Entry{At: x.host.Now(), Host: x.host, From: p.from, NetFn: byte(req.NetFn), Cmd: req.Cmd, Code: code}
		e.Took = e.At.Sub(x.now)
		if row != nil {
			e.Command, e.Acts, e.Handshake = row.name, row.acts, row.needs == 0
		}
		if x.session != nil {
			e.User, e.Session = x.session.User.Name, x.session.Number
		}
		s.c.Journal(e)
	}
}

// definers is how many bytes of requests and of answers say who defines the
// command, by network function (§5.1).
var definers = map[wire.NetFn]int{wire.Group: 1, wire.OEMGroup: 3}

// named is the data of an answer: who defines the command is told again, even if
// nobody here knows it.
func named(req *wire.Request, data []byte) []byte {
	n := definers[req.NetFn]
	if n == 0 || len(req.Data) < n {
		return data
	}
	return slices.Concat(req.Data[:n], data)
}

// carryOut carries out a command, unless something goes wrong on purpose.
func (s *Service) carryOut(x *exchange, row *command) Code {
	if s.c.Trouble == nil || x.session == nil {
		return x.carryOut(row)
	}
	d := s.c.Trouble(x.host, byte(x.fn), x.cmd)
	if d.Code == 0 {
		return x.carryOut(row)
	}
	if d.Performed {
		_ = x.carryOut(row) // whatever came of it, the client is told something else
		x.out = nil
	}
	return Code(d.Code)
}

// carryOut runs a command, or says why not. What went wrong is answered without
// data, unless the command wants them beside.
func (x *exchange) carryOut(row *command) Code {
	if x.lun != 0 {
		return x.elsewhere()
	}
	if row == nil {
		if x.session == nil && !x.inBand {
			return Forbidden // who is nobody is not told what there is
		}
		return Unknown
	}
	if !x.inBand && (row.inBand || row.needs > 0 && (x.session == nil || x.session.Privilege < row.needs)) {
		return Forbidden
	}
	if row.group != 0 {
		x.data = x.data[1:]
	}
	if len(x.data) < row.least || row.most >= 0 && len(x.data) > row.most {
		return BadLength
	}
	if !row.acts {
		return x.run(row)
	}
	if x.lost(row) {
		return codeOf(nil)
	}
	act := bmc.Act{Method: "IPMI", Target: row.name}
	if x.from.IsValid() { // else it is the server's own software
		act.From = x.from.Addr().Unmap().String()
	}
	if x.session != nil {
		act.Account, act.User = x.session.User.Account, x.session.User.Name
	}
	x.ctx = bmc.WithTrail(x.ctx, &bmc.Trail{Act: act})
	return x.run(row)
}

func (x *exchange) run(row *command) Code {
	err := row.run(x)
	if with := beside(0); err != nil && !errors.As(err, &with) {
		x.out = nil
	}
	return codeOf(err)
}

// send sends an answer.
func (s *Service) send(sd *side, p parcel, b []byte) {
	if len(b) == 0 {
		return
	}
	count(&sd.lan.traffic.sent)
	s.astray(sd, fault.Out, b, func(b []byte) {
		if err := p.socket.Send(b, p.from, p.at); err != nil && !errors.Is(err, net.ErrClosed) {
			s.c.Log.Debug("datagram not sent", "bmc", sd.host.Name(), "to", p.from.String(), "err", err)
		}
	})
}

package ipmi

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/ipmi/command"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/sol"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/console"
)

// A SOL connection's timers use real time, like everything that goes over a
// network: the other end has no other clock. Client time would not do, because it
// stands still in a lab whose time does, and the console shows output there, too.
// While it is active, a connection has one goroutine, which sends what the machine
// prints.

// solCheckInterval is the longest time between two checks that a connection's
// session still exists.
const solCheckInterval = 5 * time.Second

// solIdle is the client time without a packet after which a console is probed.
// Sessions time out after 60 s.
const solIdle = 45 * time.Second

// solConnection is the SOL payload that a session has activated.
type solConnection struct {
	session *session.Session
	link    *sol.Link
	output  *backlog
	socket  command.Sender
	local   netip.AddrPort // address that the client has reached
	wake    chan struct{}
	cancel  context.CancelFunc
	probed  bool // the console was probed
}

// activeSOL returns the active SOL connection; nil when there is none. It ends
// a connection whose session is gone.
func (st *bmcState) activeSOL() *solConnection {
	a := st.sol
	if a != nil && st.Sessions.Find(a.session.ID) != a.session {
		a.cancel()
		st.sol, a = nil, nil
	}
	return a
}

// solConfig returns the link's configuration from the SOL parameters.
func solConfig(s *bmc.SOL) sol.Config {
	return sol.Config{
		Size: command.PayloadSize, Accumulate: time.Duration(s.Accumulate) * 5 * time.Millisecond, Threshold: int(s.Threshold),
		Retries: int(s.Retries), Interval: time.Duration(s.Interval) * 10 * time.Millisecond,
	}
}

// SOLSession implements command.Server.
func (st *bmcState) SOLSession() *session.Session {
	if a := st.activeSOL(); a != nil {
		return a.session
	}
	return nil
}

// ActivateSOL implements command.Server.
func (st *bmcState) ActivateSOL(sess *session.Session, c command.Client) {
	st.service.activateSOL(st, sess, c)
}

// DeactivateSOL implements command.Server.
func (st *bmcState) DeactivateSOL(sess *session.Session, notify bool) {
	if a := st.sol; a != nil && a.session == sess {
		st.service.deactivateSOL(st, a, notify)
	}
}

// ConfigureSOL implements command.Server.
func (st *bmcState) ConfigureSOL(parameters *bmc.SOL) {
	if a := st.activeSOL(); a != nil {
		a.link.Set(solConfig(parameters))
	}
}

// activateSOL activates SOL for a session, and ends the connection that was
// active. The console's output is sent from the start of its current line.
func (s *Service) activateSOL(st *bmcState, sess *session.Session, c command.Client) {
	if was := st.activeSOL(); was != nil {
		was.cancel()
	}
	s.mu.RLock()
	ended := s.ended
	s.mu.RUnlock()
	if ended {
		return
	}
	v := st.Host.Machine()
	ctx, end := context.WithCancel(context.Background())
	from := v.Console.LineStart()
	a := &solConnection{
		session: sess, link: sol.New(solConfig(st.Host.BMC().SOL()), from, command.SerialAvailable(v)), output: newBacklog(v.Console, from),
		socket: c.Socket, local: c.Local, wake: make(chan struct{}, 1), cancel: end,
	}
	st.sol = a
	stop := func() {}
	if s.c.WatchConsole != nil {
		stop = s.c.WatchConsole(st.Host, func() {
			a.output.add(st.console)
			a.notify()
		})
	}
	s.mutations.Go(func() {
		defer stop()
		s.runSOL(ctx, st, a)
	})
}

// keepSOLSessionAlive keeps a SOL session from timing out while its console
// responds. Sessions time out after a minute of client time (§6.12.15), so the
// console is probed before that.
func (s *Service) keepSOLSessionAlive(st *bmcState, client time.Time) {
	a := st.sol
	if a == nil || st.activeSOL() != a {
		return
	}
	idle := client.Sub(a.session.LastUsed) >= solIdle
	switch {
	case a.probed && a.link.Unresponsive():
		a.cancel()
		st.sol = nil
		st.Sessions.Close(a.session.ID)
	case idle:
		a.probed = true
		a.session.LastUsed = client
		s.sendSOLPayload(st, a, a.link.Probe(clock.Wall()))
		a.notify()
	}
}

// console returns the console of the machine as it is now.
func (st *bmcState) console() *console.Console { return st.Host.Machine().Console }

// notify makes the connection check for changes. It does not block.
func (a *solConnection) notify() {
	select {
	case a.wake <- struct{}{}:
	default: // a check is already due
	}
}

// deactivateSOL ends a connection, and tells its console when notify is set.
func (s *Service) deactivateSOL(st *bmcState, a *solConnection, notify bool) {
	if notify {
		s.sendSOLPayload(st, a, a.link.Deactivating())
	}
	a.cancel()
	st.sol = nil
}

// runSOL sends what the link has to send, until ctx ends.
func (s *Service) runSOL(ctx context.Context, st *bmcState, a *solConnection) {
	for {
		wait := solCheckInterval
		s.exclusively(st, func() {
			client := st.Host.ClientNow()
			st.InvalidateSessions(s.c.Rand)
			if !st.Host.BMC().Life.Serves() { // a BMC that is down sends nothing
				st.Sessions.Reset()
			}
			s.keepSOLSessionAlive(st, client)
			st.Sessions.Advance(client)
			if st.activeSOL() != a {
				a.cancel()
				return
			}
			wall := clock.Wall()
			s.sendSOL(st, a, wall)
			if at, ok := a.link.Deadline(); ok {
				wait = min(wait, max(0, at.Sub(wall)))
			}
		})
		if ctx.Err() != nil {
			return
		}
		moment, cancel := context.WithTimeout(ctx, wait)
		select {
		case <-a.wake:
		case <-moment.Done():
		}
		cancel()
	}
}

// sendSOL sends what the link has to send now.
func (s *Service) sendSOL(st *bmcState, a *solConnection, now time.Time) {
	v := st.Host.Machine()
	a.output.add(st.console)
	for _, p := range a.link.Send(now, a.output, command.SerialAvailable(v)) {
		s.sendSOLPayload(st, a, p)
	}
	a.output.forget(a.link.Next())
}

// sendSOLPayload sends one payload of a link.
func (s *Service) sendSOLPayload(st *bmcState, a *solConnection, payload []byte) {
	if payload == nil {
		return
	}
	to := command.Client{Addr: a.session.From, Local: a.local, Socket: a.socket}
	s.send(st, to, st.Sessions.Wrap(nil, session.SOLFrame(a.session), wire.PayloadSOL, payload))
}

// exclusively calls f while nothing else uses the BMC's state, and returns
// after f has.
func (s *Service) exclusively(st *bmcState, f func()) {
	st.mu.Lock()
	if !st.busy {
		defer st.mu.Unlock()
		f()
		return
	}
	done := make(chan struct{})
	st.queued = append(st.queued, packet{call: func() {
		defer close(done)
		f()
	}})
	st.mu.Unlock()
	<-done
}

// receiveSOL handles a SOL payload. It returns a function that changes the
// machine when characters were typed; the caller runs it without the lock.
func (s *Service) receiveSOL(st *bmcState, got session.Received) (act func()) {
	a := st.activeSOL()
	if a == nil || a.session != got.Session {
		return nil // SOL is not active for this session
	}
	p, err := wire.ParseSOL(got.Body)
	if err != nil {
		return nil
	}
	now, v := clock.Wall(), st.Host.Machine()
	a.output.add(st.console)
	in := a.link.Receive(now, p, a.output)
	if in.Text == nil && !in.Break {
		s.sendSOLPayload(st, a, a.link.Answer(p, 0, command.SerialAvailable(v)))
		s.sendSOL(st, a, now)
		a.notify() // its deadline has changed
		return nil
	}
	p.Data, in.Text = slices.Clone(p.Data), slices.Clone(in.Text)
	return func() {
		accepted := s.typeCharacters(st, in)
		v := st.Host.Machine()
		s.sendSOLPayload(st, a, a.link.Answer(p, accepted, command.SerialAvailable(v)))
		s.sendSOL(st, a, clock.Wall())
		a.notify()
	}
}

// typeCharacters types at the machine's console and returns how many characters
// were accepted. A machine that is off accepts and drops them, like a wire that
// nobody listens to (table 15-2, note 1): if they were refused, FreeIPMI 1.6
// would retry without a pause.
func (s *Service) typeCharacters(st *bmcState, in sol.Input) int {
	if !command.SerialAvailable(st.Host.Machine()) {
		return len(in.Text)
	}
	var all machine.Transaction
	if in.Break {
		all = append(all, machine.Break{})
	}
	if in.Text != nil {
		all = append(all, machine.TypeText{Text: in.Text})
	}
	if err := st.Host.Apply(context.Background(), all); err != nil {
		s.c.Log.Warn("nothing typed", "bmc", st.Host.Name(), "err", err)
		return 0
	}
	return len(in.Text)
}

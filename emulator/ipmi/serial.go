package ipmi

import (
	"bytes"
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/clock"
	"github.com/metalab-dev/metalab/emulator/ipmi/session"
	"github.com/metalab-dev/metalab/emulator/ipmi/sol"
	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
	"github.com/metalab-dev/metalab/emulator/machine"
)

// The times of a link are real ones, as those of all that goes over a network:
// its other end has no other clock. A link has a goroutine as long as it is
// activated, which sends what the machine shows.

// solPatience is for how long a link looks away, at most, before it looks
// whether its session is still there.
const solPatience = 5 * time.Second

// solIdle is after which time without a packet, of the lab, a console is asked
// whether it is there. Sessions last for 60 s.
const solIdle = 45 * time.Second

// serial is what a BMC remembers of SOL until it restarts.
type serial struct {
	link    *attached
	setting byte // whether somebody sets parameters
	rate    byte // that holds until a restart; 0: as it is set
}

// attached is SOL that a session has activated.
type attached struct {
	session *session.Session
	link    *sol.Link
	socket  Socket
	at      netip.AddrPort // that the client has reached
	wake    chan struct{}
	end     context.CancelFunc
	probed  bool // the console was asked whether it is there
}

// attached is the session's SOL that is activated; nil when none is. One whose
// session is gone is freed by this.
func (sd *side) attached() *attached {
	a := sd.serial.link
	if a != nil && sd.table.Find(a.session.ID) != a.session {
		a.end()
		sd.serial.link, a = nil, nil
	}
	return a
}

// linkConfig is how a link behaves.
func linkConfig(s *bmc.SOL) sol.Config {
	return sol.Config{
		Size: payloadSize, Accumulate: time.Duration(s.Accumulate) * 5 * time.Millisecond, Threshold: int(s.Threshold),
		Retries: int(s.Retries), Interval: time.Duration(s.Interval) * 10 * time.Millisecond,
	}
}

// attach activates SOL for a session, instead of what it had. The screen is
// shown from the beginning of the line that it is in.
func (s *Service) attach(sd *side, sess *session.Session, sock Socket, at netip.AddrPort) {
	if was := sd.attached(); was != nil {
		was.end()
	}
	s.mu.RLock()
	ended := s.ended
	s.mu.RUnlock()
	if ended {
		return
	}
	v := sd.host.Machine()
	ctx, end := context.WithCancel(context.Background())
	a := &attached{
		session: sess, link: sol.New(linkConfig(sd.host.BMC().SOL()), lineStart(v.Console), open(v)),
		socket: sock, at: at, wake: make(chan struct{}, 1), end: end,
	}
	sd.serial.link = a
	stop := func() {}
	if s.c.Watch != nil {
		stop = s.c.Watch(sd.host, a.look)
	}
	s.acts.Go(func() {
		defer stop()
		s.follow(ctx, sd, a)
	})
}

// attend lets a session that has SOL live on while its console is there. By the
// lab's time sessions end that nothing was heard of for a minute (§6.12.15),
// and the lab's time may fly; so the console is asked before.
func (s *Service) attend(sd *side, now time.Time) {
	a := sd.serial.link
	if a == nil || sd.attached() != a {
		return
	}
	idle := now.Sub(a.session.Used) >= solIdle
	switch {
	case a.probed && a.link.Gone():
		a.end()
		sd.serial.link = nil
		sd.table.Close(a.session.ID)
	case idle:
		a.probed = true
		a.session.Used = now
		s.emit(sd, a, a.link.Probe(clock.Wall()))
		a.look()
	}
}

// look lets the link see what has changed. It does not wait.
func (a *attached) look() {
	select {
	case a.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// lineStart is where the line begins that a console is in.
func lineStart(c *machine.Console) uint64 {
	text, at := c.Since(0)
	return at + uint64(bytes.LastIndexByte(text, '\n')+1)
}

// detach ends a link, and tells its console if told is set.
func (s *Service) detach(sd *side, a *attached, told bool) {
	if sd.serial.link != a {
		return
	}
	if told {
		s.emit(sd, a, a.link.Farewell())
	}
	a.end()
	sd.serial.link = nil
}

// follow sends what the link has to send, until it is ended.
func (s *Service) follow(ctx context.Context, sd *side, a *attached) {
	for {
		wait := solPatience
		s.alone(sd, func() {
			now := sd.host.Now()
			sd.heed(s.c.Rand)
			if !sd.host.BMC().Life.Serves() { // a BMC that is down sends nothing
				sd.table.Reset()
			}
			s.attend(sd, now)
			sd.table.Advance(now)
			if sd.attached() != a {
				a.end()
				return
			}
			wall := clock.Wall()
			s.show(sd, a, wall)
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

// show sends what a link has to send now.
func (s *Service) show(sd *side, a *attached, now time.Time) {
	v := sd.host.Machine()
	for _, p := range a.link.Send(now, v.Console, open(v)) {
		s.emit(sd, a, p)
	}
}

// emit sends a payload of a link.
func (s *Service) emit(sd *side, a *attached, payload []byte) {
	if payload == nil {
		return
	}
	p := parcel{from: a.session.From, at: a.at, socket: a.socket}
	s.send(sd, p, sd.table.Seal(sd.host.Now(), nil, session.SOLFrame(a.session), wire.PayloadSOL, payload))
}

// alone calls f when nobody else has the side, and returns when that is done.
func (s *Service) alone(sd *side, f func()) {
	sd.mu.Lock()
	if !sd.busy {
		defer sd.mu.Unlock()
		f()
		return
	}
	done := make(chan struct{})
	sd.waiting = append(sd.waiting, parcel{call: func() {
		defer close(done)
		f()
	}})
	sd.mu.Unlock()
	<-done
}

// typed takes a payload of SOL. What is typed changes the machine, which act
// does.
func (s *Service) typed(sd *side, got session.Received) (act func()) {
	a := sd.attached()
	if a == nil || a.session != got.Session {
		return nil // nobody has activated it there
	}
	p, err := wire.ParseSOL(got.Body)
	if err != nil {
		return nil
	}
	now, v := clock.Wall(), sd.host.Machine()
	in := a.link.Receive(now, p, v.Console)
	if in.Text == nil && !in.Break {
		s.emit(sd, a, a.link.Answer(p, 0, open(v)))
		s.show(sd, a, now)
		a.look() // its deadline is another one now
		return nil
	}
	p.Data, in.Text = slices.Clone(p.Data), slices.Clone(in.Text)
	return func() {
		accepted := s.press(sd, in)
		v := sd.host.Machine()
		s.emit(sd, a, a.link.Answer(p, accepted, open(v)))
		s.show(sd, a, clock.Wall())
		a.look()
	}
}

// press types, and returns how many characters need not come again. To a machine
// that is off they go as over a wire that nobody listens to (table 15-2, note
// 1): were they refused, FreeIPMI 1.6 would send them again without a pause.
func (s *Service) press(sd *side, in sol.Input) int {
	if !open(sd.host.Machine()) {
		return len(in.Text)
	}
	var all machine.Together
	if in.Break {
		all = append(all, machine.Break{})
	}
	if in.Text != nil {
		all = append(all, machine.Type{Text: in.Text})
	}
	if err := sd.host.Apply(context.Background(), all); err != nil {
		s.c.Log.Warn("nothing typed", "bmc", sd.host.Name(), "err", err)
		return 0
	}
	return len(in.Text)
}

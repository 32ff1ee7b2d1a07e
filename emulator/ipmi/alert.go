package ipmi

import (
	"context"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// Trap is an alert on its way, as an SNMP trap in UDP.
type Trap struct {
	To       netip.Addr // at the port of traps
	Packet   []byte
	Sequence uint16        // by which it is acknowledged
	Awaits   bool          // it has come when that was said; else when it is sent
	Times    int           // that it is sent, or sent at most
	Every    time.Duration // of the lab, between them
	Told     func(came bool)
}

// sending is how an alert went that somebody asked for.
type sending struct{ state atomic.Uint32 }

// States of an alert (§30.7).
const (
	sendingNone = 0x00
	sendingDone = 0x01
	sendingLost = 0x03
	sendingNow  = 0xff
)

func (s *sending) status() byte {
	if s == nil {
		return sendingNone
	}
	if is := byte(s.state.Load()); is != 0 {
		return is
	}
	return sendingNow
}

func (s *sending) ended(came bool) {
	if came {
		s.state.Store(sendingDone)
	} else {
		s.state.Store(sendingLost)
	}
}

// recipient is one that alerts go to (table 23-4, parameters 18 and 19).
type recipient struct {
	to     netip.Addr
	awaits bool
	times  int
	every  time.Duration
}

// recipient is one by its number; 0 is that of the side alone.
func (x *exchange) recipient(n byte) recipient {
	kind, at := lanParameters[18].read(x, n), lanParameters[19].read(x, n)
	r := recipient{awaits: kind[0]&0x80 != 0, every: time.Duration(kind[1]+1) * time.Second, times: int(kind[2]&7) + 1}
	switch {
	case kind[0]&7 != 0: // something else than a trap
	case at[0]>>4 == 0 && len(at) >= 6:
		r.to = netip.AddrFrom4([4]byte(at[2:6]))
	case at[0]>>4 == 1 && len(at) >= 17:
		r.to = netip.AddrFrom16([16]byte(at[1:17]))
	}
	return r
}

// alert sends one, and tells what became of it.
func (s *Service) alert(a *alert, r recipient, told func(came bool)) {
	if s.c.Alert == nil || !r.to.IsValid() || r.to.IsUnspecified() || a.host.BMC().Channel.Mute {
		told(false)
		return
	}
	sequence := uint16(s.traps.Add(1))
	s.c.Alert(a.host, Trap{
		To: r.to, Packet: a.trap(sequence), Sequence: sequence, Awaits: r.awaits, Times: r.times, Every: r.every, Told: told,
	})
}

// deed is what filters make of one event.
type deed struct {
	entry    *bmc.Entry
	event    sel.Event
	acts     byte
	policy   byte
	severity byte
	filter   byte // the first that alerts by the policy, counted from 1
}

// Tell has a BMC act on what its log was told. It is called after each step of
// the host that has told anything, and only looks: what is to be done follows
// later.
func (s *Service) Tell(h Host, now time.Time, evs []bmc.Event) {
	if s.c.Later == nil || len(evs) == 0 {
		return
	}
	v := h.BMC()
	control := pefValue(v, pefControl, 0)[0]
	if control&pefOn == 0 || !v.Life.Serves() {
		return
	}
	for _, ev := range evs {
		switch ev := ev.(type) {
		case bmc.Logged:
			if !v.Alerting.Waits(ev.Entry.ID) {
				s.filter(h, now, control, &ev.Entry)
			}
		case bmc.Unattended:
			for e := range v.Log.Entries() {
				if e.ID >= ev.First {
					s.filter(h, now, control, e)
				}
			}
		}
	}
}

// filter acts on an entry as the filters say (§17.6, §17.13).
func (s *Service) filter(h Host, now time.Time, control byte, e *bmc.Entry) {
	r, v := recordOf(h, e), h.BMC()
	is, ok := sel.Parse(r[:])
	if !ok {
		return
	}
	d := deed{entry: e, event: is}
	enabled := pefValue(v, pefActions, 0)[0]
	for set := byte(1); set <= filterCount; set++ {
		f := filter(pefValue(v, pefFilters, set))
		if !f.matches(is) {
			continue
		}
		acts := f[filterAction] & enabled
		d.acts |= acts
		policy := f[filterPolicy] & 0x0f
		switch {
		case acts&actAlert == 0 || policy == 0:
		case d.policy == 0 || policy < d.policy:
			d.policy, d.severity, d.filter = policy, f[filterBad], set
		case policy == d.policy:
			d.severity = max(d.severity, f[filterBad])
		}
	}
	if d.acts == 0 {
		return
	}
	power, alerts := delays(v, h.Machine(), now, control)
	if d.acts&^actAlert != 0 {
		s.c.Later(power, func(ctx context.Context) { s.act(ctx, h, &d) })
	}
	if d.policy != 0 {
		s.c.Later(alerts, func(context.Context) { s.alertOn(h, &d, 1, false) })
	}
	if control&pefLogs != 0 && !(is.Sensor == sel.System && is.Offset() == pefAction) {
		s.c.Later(0, func(ctx context.Context) { s.note(ctx, h, d.acts) })
	}
}

// delays are how long actions and alerts wait after the system was started
// (§17.4).
func delays(v *bmc.View, m *machine.View, now time.Time, control byte) (power, alerts time.Duration) {
	if m.Reset == nil {
		return 0, 0
	}
	left := func(bit, param byte) time.Duration {
		if control&bit == 0 {
			return 0
		}
		return max(0, m.Reset.At.Add(time.Duration(pefValue(v, param, 0)[0])*time.Second).Sub(now))
	}
	return left(pefDelays, pefStartDelay), left(pefWaitsAlert, pefAlertDelay)
}

// acting are the resets that actions are, the first that is wanted alone
// (table 17-1).
var acting = []struct {
	bit  byte
	kind machine.ResetKind
}{
	{actPowerOff, machine.ForceOff}, {actCycle, machine.PowerCycle}, {actReset, machine.ForceRestart}, {actInterrupt, machine.Nmi},
}

// act does to the machine what filters want, unless that was switched off
// meanwhile. An action that finds the power otherwise has no effect.
func (s *Service) act(ctx context.Context, h Host, d *deed) {
	v := h.BMC()
	if pefValue(v, pefControl, 0)[0]&pefOn == 0 {
		return
	}
	enabled := pefValue(v, pefActions, 0)[0]
	for _, a := range acting {
		if d.acts&enabled&a.bit == 0 {
			continue
		}
		if err := h.Apply(ctx, machine.Reset{Kind: a.kind, Filter: true}); err != nil {
			s.c.Log.Debug("no action on an event", "bmc", h.Name(), "reset", string(a.kind), "err", err)
		}
		return
	}
}

// pefAction is the offset of an action of PEF, of a system event sensor.
const pefAction = 0x04

// note logs that filters have acted (table 30-6, PEF control).
func (s *Service) note(ctx context.Context, h Host, acts byte) {
	e := sel.Event{Generator: sel.BMC, Sensor: sel.System, Type: sel.Specific, Data: [3]byte{0xc0 | pefAction, acts, sel.Unspecified}}
	r := e.Record()
	c := bmc.AddRecord{Record: r[:], Severity: e.Severity(), Subject: systemSubject, Event: true}
	if _, err := h.ApplyBMC(ctx, c); err != nil {
		s.c.Log.Debug("action on an event not logged", "bmc", h.Name(), "err", err)
	}
}

// alertOn alerts as a policy says, from an entry of the table on. came tells
// whether the last alert did.
func (s *Service) alertOn(h Host, d *deed, from byte, came bool) {
	v := h.BMC()
	if pefValue(v, pefControl, 0)[0]&pefOn == 0 {
		return
	}
	const enabled, always, skip = 0x08, 0, 1
	for n := from; n <= policyCount; n++ {
		p := pefValue(v, pefPolicies, n)
		if p[0]>>4 != d.policy || p[0]&enabled == 0 {
			continue
		}
		switch rule := p[0] & 7; {
		case rule == always || !came:
		case rule == skip:
			continue
		default: // to nobody else: all are on one channel, and of one type
			return
		}
		if !onLAN(p[1] >> 4) {
			came = false
			continue
		}
		x := exchange{host: h, side: new(side)}
		a := alert{host: h, entry: d.entry, at: d.entry.At, event: d.event, severity: d.severity, text: d.text(v, p[2])}
		s.alert(&a, x.recipient(p[1]&0x0f), func(came bool) {
			s.c.Later(0, func(context.Context) { s.alertOn(h, d, n+1, came) })
		})
		return
	}
}

// text is the string that a policy's entry asks for by its key (table 17-4).
func (d *deed) text(v *bmc.View, key byte) string {
	set := key & 0x7f
	switch {
	case set == 0:
		return ""
	case key&0x80 == 0:
		if set > stringCount {
			return ""
		}
		return text(pefValue(v, pefStrings, set))
	}
	for n := byte(1); n <= stringCount; n++ {
		if k := pefValue(v, pefKeys, n); k[0]&0x7f == d.filter && k[1]&0x7f == set {
			return text(pefValue(v, pefStrings, n))
		}
	}
	return ""
}

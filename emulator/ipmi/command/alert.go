package command

import (
	"context"
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/metalab-dev/metalab/emulator/bmc"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/machine/event/sel"
)

// Trap is an alert to be sent as an SNMP trap over UDP.
type Trap struct {
	To           netip.Addr // destination; the port is SNMP's trap port
	Packet       []byte
	Sequence     uint16        // number by which PET Acknowledge refers to the trap
	Acknowledged bool          // delivered when acknowledged; otherwise when sent
	Attempts     int           // sendings in all; at most, when Acknowledged is set
	Interval     time.Duration // lab time between two attempts
	Done         func(delivered bool)
}

// alertStatus is the state of the alert that Alert Immediate sends.
type alertStatus struct{ state atomic.Uint32 }

// States of an alert, as Alert Immediate answers them (§30.7).
const (
	alertNone       = 0x00
	alertDelivered  = 0x01
	alertFailed     = 0x03
	alertInProgress = 0xff
)

func (s *alertStatus) code() byte {
	if s == nil {
		return alertNone
	}
	if is := byte(s.state.Load()); is != 0 {
		return is
	}
	return alertInProgress
}

func (s *alertStatus) finish(delivered bool) {
	if delivered {
		s.state.Store(alertDelivered)
	} else {
		s.state.Store(alertFailed)
	}
}

// alertDestination is a LAN alert destination (table 23-4, parameters 18 and
// 19).
type alertDestination struct {
	to           netip.Addr
	acknowledged bool
	attempts     int
	interval     time.Duration
}

// alertDestination returns the destination with a number; number 0 is volatile
// and lives in State.
func (x *Request) alertDestination(n byte) alertDestination {
	kind, at := lanParameters[18].read(x, n), lanParameters[19].read(x, n)
	r := alertDestination{acknowledged: kind[0]&0x80 != 0, interval: time.Duration(kind[1]+1) * time.Second, attempts: int(kind[2]&7) + 1}
	switch {
	case kind[0]&7 != 0: // not a PET trap
	case at[0]>>4 == 0 && len(at) >= 6:
		r.to = netip.AddrFrom4([4]byte(at[2:6]))
	case at[0]>>4 == 1 && len(at) >= 17:
		r.to = netip.AddrFrom16([16]byte(at[1:17]))
	}
	return r
}

// Alerter filters the platform events of all BMCs of a rack, and sends their
// alerts.
type Alerter struct {
	Log *slog.Logger
	// SendTrap, when not nil, sends a trap without blocking.
	SendTrap func(h Host, t Trap)
	// Acknowledged, when not nil, is called when a trap's destination has
	// acknowledged it.
	Acknowledged func(h Host, sequence uint16)
	// AfterFunc, when not nil, calls do after some lab time, and never before
	// AfterFunc has returned.
	AfterFunc func(after time.Duration, do func(context.Context))

	sequence atomic.Uint32 // traps made so far, for their sequence numbers
}

// send sends an alert and calls done with whether it was delivered.
func (al *Alerter) send(a *alert, r alertDestination, done func(delivered bool)) {
	if al.SendTrap == nil || !r.to.IsValid() || r.to.IsUnspecified() || a.host.BMC().Channel.AlertsDisabled {
		done(false)
		return
	}
	sequence := uint16(al.sequence.Add(1))
	al.SendTrap(a.host, Trap{
		To: r.to, Packet: a.trap(sequence), Sequence: sequence, Acknowledged: r.acknowledged, Attempts: r.attempts, Interval: r.interval, Done: done,
	})
}

// filterResult is what the event filters decided for one event.
type filterResult struct {
	entry    *bmc.Entry
	event    sel.Event
	actions  byte
	policy   byte
	severity byte
	filter   byte // number, from 1, of the first filter that alerts by the policy
}

// FilterEvents passes the log entries among evs to platform event filtering.
// Call it after each step of the host that returned events. It does not act
// itself: actions and alerts follow later, through AfterFunc.
func (al *Alerter) FilterEvents(h Host, now time.Time, evs []bmc.Event) {
	if al.AfterFunc == nil || len(evs) == 0 {
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
			if !v.PEF.Postponed(ev.Entry.ID) {
				al.filterEntry(h, now, control, &ev.Entry)
			}
		case bmc.PostponeExpired:
			for e := range v.Log.Entries() {
				if e.ID >= ev.First {
					al.filterEntry(h, now, control, e)
				}
			}
		}
	}
}

// filterEntry matches an entry against the event filters and starts their
// actions (§17.6, §17.13).
func (al *Alerter) filterEntry(h Host, now time.Time, control byte, e *bmc.Entry) {
	r, v := recordOf(h, e), h.BMC()
	is, ok := sel.Parse(r[:])
	if !ok {
		return
	}
	d := filterResult{entry: e, event: is}
	enabled := pefValue(v, pefActions, 0)[0]
	for set := byte(1); set <= filterCount; set++ {
		f := filter(pefValue(v, pefFilters, set))
		if !f.matches(is) {
			continue
		}
		acts := f[filterAction] & enabled
		d.actions |= acts
		policy := f[filterPolicy] & 0x0f
		switch {
		case acts&actAlert == 0 || policy == 0:
		case d.policy == 0 || policy < d.policy:
			d.policy, d.severity, d.filter = policy, f[filterSeverity], set
		case policy == d.policy:
			d.severity = max(d.severity, f[filterSeverity])
		}
	}
	if d.actions == 0 {
		return
	}
	power, alerts := pefDelays(v, h.Machine(), now, control)
	if d.actions&^actAlert != 0 {
		al.AfterFunc(power, func(ctx context.Context) { al.applyAction(ctx, h, &d) })
	}
	if d.policy != 0 {
		al.AfterFunc(alerts, func(context.Context) { al.alertByPolicy(h, &d, 1, false) })
	}
	if control&pefLogsActions != 0 && !(is.Sensor == sel.System && is.Offset() == pefActionOffset) {
		al.AfterFunc(0, func(ctx context.Context) { al.logActions(ctx, h, d.actions) })
	}
}

// pefDelays returns how long actions and alerts wait after a start of the
// system (§17.4).
func pefDelays(v *bmc.View, m *machine.View, now time.Time, control byte) (power, alerts time.Duration) {
	if m.Reset == nil {
		return 0, 0
	}
	left := func(bit, param byte) time.Duration {
		if control&bit == 0 {
			return 0
		}
		return max(0, m.Reset.At.Add(time.Duration(pefValue(v, param, 0)[0])*time.Second).Sub(now))
	}
	return left(pefDelaysOn, pefStartDelay), left(pefAlertDelayOn, pefAlertDelay)
}

// pefResets are the filter actions that reset the machine, by priority: only
// the first one that is wanted happens (table 17-1).
var pefResets = []struct {
	bit  byte
	kind machine.ResetKind
}{
	{actPowerOff, machine.ForceOff}, {actCycle, machine.PowerCycle}, {actReset, machine.ForceRestart}, {actInterrupt, machine.Nmi},
}

// applyAction resets the machine as the filters want, unless the action was
// disabled in the meantime. An action that finds the power in another state has
// no effect.
func (al *Alerter) applyAction(ctx context.Context, h Host, d *filterResult) {
	v := h.BMC()
	if pefValue(v, pefControl, 0)[0]&pefOn == 0 {
		return
	}
	enabled := pefValue(v, pefActions, 0)[0]
	for _, a := range pefResets {
		if d.actions&enabled&a.bit == 0 {
			continue
		}
		if err := h.Apply(ctx, machine.Reset{Kind: a.kind, ByPEF: true}); err != nil {
			al.Log.Debug("no action on an event", "bmc", h.Name(), "reset", string(a.kind), "err", err)
		}
		return
	}
}

// pefActionOffset is the sensor-specific offset "PEF Action" of a system event
// sensor.
const pefActionOffset = 0x04

// logActions writes a log entry for the actions that filters have taken (table
// 30-6, PEF control).
func (al *Alerter) logActions(ctx context.Context, h Host, acts byte) {
	e := sel.Event{Generator: sel.BMC, Sensor: sel.System, Type: sel.Specific, Data: [3]byte{0xc0 | pefActionOffset, acts, sel.Unspecified}}
	r := e.Record()
	c := bmc.AddSELRecord{Record: r[:], Severity: e.Severity(), Subject: systemSubject, Event: true}
	if _, err := h.ApplyBMC(ctx, c); err != nil {
		al.Log.Debug("action on an event not logged", "bmc", h.Name(), "err", err)
	}
}

// alertByPolicy sends the alerts of a policy, beginning at an entry of the
// alert policy table. delivered says whether the previous alert was delivered.
func (al *Alerter) alertByPolicy(h Host, d *filterResult, from byte, delivered bool) {
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
		case rule == always || !delivered:
		case rule == skip:
			continue
		default: // any other destination: skipped, since all are on one channel and of one type
			return
		}
		if !onLAN(p[1] >> 4) {
			delivered = false
			continue
		}
		x := Request{Host: h, State: new(State)}
		a := alert{host: h, entry: d.entry, at: d.entry.At, event: d.event, severity: d.severity, text: d.alertString(v, p[2])}
		al.send(&a, x.alertDestination(p[1]&0x0f), func(delivered bool) {
			al.AfterFunc(0, func(context.Context) { al.alertByPolicy(h, d, n+1, delivered) })
		})
		return
	}
}

// alertString returns the alert string that a policy entry selects by its key
// (table 17-4).
func (d *filterResult) alertString(v *bmc.View, key byte) string {
	set := key & 0x7f
	switch {
	case set == 0:
		return ""
	case key&0x80 == 0:
		if set > stringCount {
			return ""
		}
		return alertStringText(pefValue(v, pefStrings, set))
	}
	for n := byte(1); n <= stringCount; n++ {
		if k := pefValue(v, pefKeys, n); k[0]&0x7f == d.filter && k[1]&0x7f == set {
			return alertStringText(pefValue(v, pefStrings, n))
		}
	}
	return ""
}

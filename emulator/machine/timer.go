package machine

import "time"

// timers are what makes a machine change by itself. Each tells when it is due,
// and does what is due then, after which it is due later or no more. Of those
// that are due at the same time the first is first.
var timers = []struct {
	due  func(m *Machine) (time.Time, bool)
	fire func(m *Machine, at time.Time) []Event
}{
	{
		due: func(m *Machine) (time.Time, bool) { _, at, ok := m.nextStep(); return at, ok },
		fire: func(m *Machine, at time.Time) []Event {
			next, _, _ := m.nextStep()
			m.main().reach(next, at)
			m.posting(next)
			return nil
		},
	},
	{ // before the end of POST, which waits for it
		due:  func(m *Machine) (time.Time, bool) { return m.fw.Deadline() },
		fire: func(m *Machine, at time.Time) []Event { return m.heard(at, m.fw.Advance(at)) },
	},
	{
		due:  func(m *Machine) (time.Time, bool) { return m.disks.Deadline() },
		fire: func(m *Machine, at time.Time) []Event { return m.stored(m.disks.Advance(at)) },
	},
	{
		due:  func(m *Machine) (time.Time, bool) { return m.heat.Deadline() },
		fire: func(m *Machine, at time.Time) []Event { return m.heated(at, m.heat.Advance(at)) },
	},
	{
		due:  func(m *Machine) (time.Time, bool) { return m.st.Deadline, !m.st.Deadline.IsZero() },
		fire: func(m *Machine, at time.Time) []Event { return m.step(at, elapsed) },
	},
	{
		due: func(m *Machine) (time.Time, bool) {
			if m.st.PendingReset == nil {
				return time.Time{}, false
			}
			return m.st.PendingReset.Until, true
		},
		fire: (*Machine).unheard,
	},
	{due: (*Machine).telemetryDue, fire: (*Machine).reportsDue},
	{due: (*Machine).watchdogDue, fire: (*Machine).watchdogFires},
	{
		due:  func(m *Machine) (time.Time, bool) { at := m.asset().IndicatorUntil; return at, !at.IsZero() },
		fire: func(m *Machine, _ time.Time) []Event { m.darken(); return nil },
	},
	{
		due:  func(m *Machine) (time.Time, bool) { at := m.bootInfo().Until; return at, !at.IsZero() },
		fire: func(m *Machine, _ time.Time) []Event { m.invalidate(); return nil },
	},
}

// next is the timer that is due first.
func (m *Machine) next() (timer int, at time.Time, ok bool) {
	for i := range timers {
		if t, is := timers[i].due(m); is && (!ok || t.Before(at)) {
			timer, at, ok = i, t, true
		}
	}
	return timer, at, ok
}

// Deadline is when the machine next changes by itself; false when it waits for
// a command.
func (m *Machine) Deadline() (time.Time, bool) {
	_, at, ok := m.next()
	return at, ok
}

// Advance moves the machine to now.
func (m *Machine) Advance(now time.Time) []Event {
	var evs []Event
	for {
		i, at, ok := m.next()
		if !ok || now.Before(at) {
			return evs
		}
		evs = append(evs, timers[i].fire(m, at)...)
	}
}

package machine

import "time"

// timers holds everything that changes a machine as time passes. due returns
// the next time, fire does what is due, after which due is later or false. Of
// timers with the same time the first one fires first.
var timers = []struct {
	due  func(m *Machine) (time.Time, bool)
	fire func(m *Machine, at time.Time) []Event
}{
	{
		due: func(m *Machine) (time.Time, bool) { _, at, ok := m.nextStep(); return at, ok },
		fire: func(m *Machine, at time.Time) []Event {
			next, _, _ := m.nextStep()
			m.main().setProgress(next, at)
			m.printPOSTStep(next)
			return nil
		},
	},
	{ // before the end of POST, which waits for it
		due:  func(m *Machine) (time.Time, bool) { return m.fw.Deadline() },
		fire: func(m *Machine, at time.Time) []Event { return m.firmwareEvents(at, m.fw.Advance(at)) },
	},
	{
		due:  func(m *Machine) (time.Time, bool) { return m.disks.Deadline() },
		fire: func(m *Machine, at time.Time) []Event { return m.storageEvents(m.disks.Advance(at)) },
	},
	{
		due:  func(m *Machine) (time.Time, bool) { return m.heat.Deadline() },
		fire: func(m *Machine, at time.Time) []Event { return m.thermalEvents(at, m.heat.Advance(at)) },
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
		fire: (*Machine).pendingResetExpired,
	},
	{due: (*Machine).telemetryDue, fire: (*Machine).makePeriodicReports},
	{due: (*Machine).watchdogDue, fire: (*Machine).fireWatchdog},
	{
		due:  func(m *Machine) (time.Time, bool) { at := m.asset().IndicatorUntil; return at, !at.IsZero() },
		fire: func(m *Machine, _ time.Time) []Event { m.endIdentify(); return nil },
	},
}

// nextTimer returns the timer that is due first.
func (m *Machine) nextTimer() (timer int, at time.Time, ok bool) {
	for i := range timers {
		if t, is := timers[i].due(m); is && (!ok || t.Before(at)) {
			timer, at, ok = i, t, true
		}
	}
	return timer, at, ok
}

// Deadline returns the lab time at which the machine next changes without a
// command; false when there is none.
func (m *Machine) Deadline() (time.Time, bool) {
	_, at, ok := m.nextTimer()
	return at, ok
}

// ClientDeadline returns the client time at which a boot override expires that no boot
// has used, as Deadline does for lab time.
func (m *Machine) ClientDeadline() (time.Time, bool) {
	at := m.systemBootOptions().Until
	return at, !at.IsZero()
}

// SetClientTime sets the client time (see package clock) to which the machine is
// advanced next, and at which the commands until then are applied. A machine that
// has never got one takes lab time for client time.
func (m *Machine) SetClientTime(client time.Time) { m.client = client }

// clientTime returns the client time of a step at a lab time.
func (m *Machine) clientTime(now time.Time) time.Time {
	if m.client.IsZero() {
		return now
	}
	return m.client
}

// Advance moves the machine to now, and to the client time that was set.
func (m *Machine) Advance(now time.Time) []Event {
	var evs []Event
	for {
		i, at, ok := m.nextTimer()
		if !ok || now.Before(at) {
			break
		}
		evs = append(evs, timers[i].fire(m, at)...)
	}
	if at, ok := m.ClientDeadline(); ok && !m.clientTime(now).Before(at) {
		m.invalidateBootOptions()
	}
	return evs
}

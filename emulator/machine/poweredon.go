package machine

import "time"

// isPowered reports whether a machine is in ACPI S0 in a phase, which power-on
// hours count (IPMI v2.0 rev 1.1, §28.14).
func isPowered(p Phase) bool { return storagePowered(p) }

// countPoweredOn updates the power-on time at a change of phase.
func (s *Main) countPoweredOn(now time.Time) {
	switch on := isPowered(s.Phase); {
	case on && s.OnSince.IsZero():
		s.OnSince = now
	case !on && !s.OnSince.IsZero():
		s.PoweredFor.Duration += now.Sub(s.OnSince)
		s.OnSince = time.Time{}
	}
}

// PoweredOn returns the total time that the machine was on.
func (s *Main) PoweredOn(now time.Time) time.Duration {
	if s.OnSince.IsZero() {
		return s.PoweredFor.Duration
	}
	return s.PoweredFor.Duration + max(0, now.Sub(s.OnSince))
}

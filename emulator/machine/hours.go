package machine

import "time"

// operational are the phases in which a machine is in S0: what it runs on is
// counted then (IPMI v2.0 rev 1.1, §28.14).
func operational(p Phase) bool { return powersDisks(p) }

// countHours notes, with a move, for how long the machine has been on.
func (own *Main) countHours(now time.Time) {
	switch on := operational(own.Phase); {
	case on && own.OnSince.IsZero():
		own.OnSince = now
	case !on && !own.OnSince.IsZero():
		own.PoweredFor.Duration += now.Sub(own.OnSince)
		own.OnSince = time.Time{}
	}
}

// PoweredOn is for how long the machine was on since it was made.
func (own *Main) PoweredOn(now time.Time) time.Duration {
	if own.OnSince.IsZero() {
		return own.PoweredFor.Duration
	}
	return own.PoweredFor.Duration + max(0, now.Sub(own.OnSince))
}

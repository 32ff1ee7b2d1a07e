package bmc

import "time"

// Caps are what somebody has set by a face of the BMC that lets settings be
// made first and put into force later, or that nothing else has a word for.
type Caps struct {
	Power     PowerCap  `json:"power"`
	Discovery Discovery `json:"discovery"`
}

// PowerCap is a power limit as it was asked for. Whether there is one in force
// is the machine's.
type PowerCap struct {
	Watts    int           `json:"watts,omitempty"` // 0: never asked for
	Action   byte          `json:"action,omitempty"`
	Correct  time.Duration `json:"correct"`  // that the machine may take to keep to it
	Sampling time.Duration `json:"sampling"` // over which power is averaged
}

// Discovery is how the BMC is to make itself known by DHCP (DCMI 1.5, §6.1.3).
// Its servers are not part of a lab.
type Discovery struct {
	Options byte          `json:"options,omitempty"` // that it sends
	First   time.Duration `json:"first"`             // until it asks a second time
	Contact time.Duration `json:"contact"`           // until it gives up
	Retry   time.Duration `json:"retry"`             // until it begins anew
}

// noCaps is what holds where nobody has set anything.
var noCaps = &Caps{
	Power:     PowerCap{Correct: 6 * time.Second, Sampling: time.Minute},
	Discovery: Discovery{First: 4 * time.Second, Contact: 2 * time.Minute, Retry: 64 * time.Second},
}

func (b *BMC) caps() *Caps {
	if b.st.Caps == nil {
		return noCaps
	}
	return b.st.Caps
}

// SetCaps sets them, whole.
type SetCaps struct{ Caps }

func (c SetCaps) apply(b *BMC, _ time.Time) ([]Event, error) {
	if *b.caps() != c.Caps {
		b.st.Caps = &c.Caps
	}
	return nil, nil
}

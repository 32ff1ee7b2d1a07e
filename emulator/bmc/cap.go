package bmc

import "time"

// DCMISettings are what somebody has set by a face of the BMC that lets settings be
// made first and put into force later, or that nothing else has a word for.
type DCMISettings struct {
	Power     PowerLimit `json:"power"`
	Discovery Discovery  `json:"discovery"`
}

// PowerLimit is a power limit as it was asked for. Whether there is one in force
// is the machine's.
type PowerLimit struct {
	Watts          int           `json:"watts,omitempty"` // 0: never asked for
	Action         byte          `json:"action,omitempty"`
	CorrectionTime time.Duration `json:"correct"`  // that the machine may take to keep to it
	SamplingPeriod time.Duration `json:"sampling"` // over which power is averaged
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
var noCaps = &DCMISettings{
	Power:     PowerLimit{CorrectionTime: 6 * time.Second, SamplingPeriod: time.Minute},
	Discovery: Discovery{First: 4 * time.Second, Contact: 2 * time.Minute, Retry: 64 * time.Second},
}

func (b *BMC) caps() *DCMISettings {
	if b.st.DCMI == nil {
		return noCaps
	}
	return b.st.DCMI
}

// SetDCMISettings sets them, whole.
type SetDCMISettings struct{ DCMISettings }

func (c SetDCMISettings) apply(b *BMC, _ time.Time) ([]Event, error) {
	if *b.caps() != c.DCMISettings {
		b.st.DCMI = &c.DCMISettings
	}
	return nil, nil
}

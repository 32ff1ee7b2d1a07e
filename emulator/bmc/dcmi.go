package bmc

import "time"

// DCMISettings holds settings of DCMI that are stored before they take effect,
// or that no other part holds.
type DCMISettings struct {
	Power     PowerLimit `json:"power"`
	Discovery Discovery  `json:"discovery"`
}

// PowerLimit is the power limit that a client has set. Whether one is active is
// part of the machine's state.
type PowerLimit struct {
	Watts          int           `json:"watts,omitempty"` // 0: never set
	Action         byte          `json:"action,omitempty"`
	CorrectionTime time.Duration `json:"correct"`  // time to get below the limit
	SamplingPeriod time.Duration `json:"sampling"` // averaging period
}

// Discovery holds the settings of DHCP discovery (DCMI 1.5, §6.1.3). The rack has no
// DHCP server for BMCs.
type Discovery struct {
	Options byte          `json:"options,omitempty"` // options to send
	First   time.Duration `json:"first"`             // initial timeout
	Contact time.Duration `json:"contact"`           // server contact timeout
	Retry   time.Duration `json:"retry"`             // server contact retry interval
}

// defaultDCMI holds the defaults.
var defaultDCMI = &DCMISettings{
	Power:     PowerLimit{CorrectionTime: 6 * time.Second, SamplingPeriod: time.Minute},
	Discovery: Discovery{First: 4 * time.Second, Contact: 2 * time.Minute, Retry: 64 * time.Second},
}

func (b *BMC) dcmi() *DCMISettings {
	if b.st.DCMI == nil {
		return defaultDCMI
	}
	return b.st.DCMI
}

// SetDCMISettings replaces the DCMI settings.
type SetDCMISettings struct{ DCMISettings }

func (c SetDCMISettings) apply(b *BMC, _ time.Time) ([]Event, error) {
	if *b.dcmi() != c.DCMISettings {
		b.st.DCMI = &c.DCMISettings
	}
	return nil, nil
}

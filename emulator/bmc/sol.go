package bmc

import (
	"errors"
	"fmt"
	"time"
)

// ErrSOL means that a SOL parameter has an invalid value.
var ErrSOL = errors.New("bmc: setting of SOL")

// SOL holds the SOL configuration parameters (IPMI v2.0 rev 1.1, table 26-5),
// in IPMI's encoding.
type SOL struct {
	Off           bool   `json:"off,omitempty"`
	Privilege     byte   `json:"privilege"`               // lowest level: 2 User, 3 Operator, 4 Administrator, 5 OEM
	Encrypted     bool   `json:"encrypted,omitempty"`     // force encryption
	Authenticated bool   `json:"authenticated,omitempty"` // force authentication
	Accumulate    byte   `json:"accumulate"`              // in 5 ms units, not 0
	Threshold     byte   `json:"threshold"`               // characters, not 0
	Retries       byte   `json:"retries"`                 // 0 to 7
	Interval      byte   `json:"interval"`                // in 10 ms units
	BitRate       byte   `json:"bitRate"`                 // 6 to 10: 9600 to 115200 bits/s
	Port          uint16 `json:"port,omitempty"`          // port told to clients; 0: the one that they have reached
}

// defaultSOL holds the defaults.
var defaultSOL = &SOL{
	Privilege: 3, Encrypted: true, Authenticated: true, Accumulate: 12, Threshold: 96, Retries: 7, Interval: 50, BitRate: 10,
}

// SOL returns the SOL parameters, which must not be changed.
func (v *View) SOL() *SOL { return v.Serial.orDefault() }

func (s *SOL) orDefault() *SOL {
	if s == nil {
		return defaultSOL
	}
	return s
}

// SetSOL replaces the SOL parameters.
type SetSOL struct{ SOL }

func (c SetSOL) apply(b *BMC, _ time.Time) ([]Event, error) {
	s := c.SOL
	switch {
	case s.Privilege < 2 || s.Privilege > 5:
		return nil, fmt.Errorf("%w: privilege %d: must be 2 to 5", ErrSOL, s.Privilege)
	case s.Accumulate == 0:
		return nil, fmt.Errorf("%w: accumulate interval: must not be 0", ErrSOL)
	case s.Threshold == 0:
		return nil, fmt.Errorf("%w: send threshold: must not be 0", ErrSOL)
	case s.Retries > 7:
		return nil, fmt.Errorf("%w: retries %d: must be 0 to 7", ErrSOL, s.Retries)
	case s.BitRate < 6 || s.BitRate > 10:
		return nil, fmt.Errorf("%w: bit rate %d: must be 6 to 10", ErrSOL, s.BitRate)
	}
	if s != *b.st.Serial.orDefault() {
		b.st.Serial = &s
	}
	return nil, nil
}

package machine

import (
	"fmt"
	"slices"
	"time"
)

// Asset is what people write on a machine.
type Asset struct {
	Tag          string       `json:"tag,omitempty"`
	ChassisTag   string       `json:"chassisTag,omitempty"`
	HostName     string       `json:"hostName,omitempty"`
	IndicatorLED IndicatorLED `json:"light,omitempty"` // that shows where the machine stands; "": off
	// Until is when the light goes out by itself; zero: it stays as it is.
	IndicatorUntil time.Time `json:"until,omitzero"`
}

// IndicatorLED is what an indicator does; the values are Redfish's (DSP2046,
// Resource.IndicatorLED).
type IndicatorLED string

// The values of Light.
const (
	IndicatorLit      IndicatorLED = "Lit"
	IndicatorBlinking IndicatorLED = "Blinking"
	IndicatorOff      IndicatorLED = "Off"
)

// IndicatorLEDs are all of them.
var IndicatorLEDs = []IndicatorLED{IndicatorLit, IndicatorBlinking, IndicatorOff}

// maxWritten bounds what people write, in bytes: SMBIOS strings are that long.
const maxWritten = 255

// ValidText says whether a text can be written on a machine.
func ValidText(text string) bool { return len(text) <= maxWritten }

// noAsset is what is written on a machine on which nobody wrote.
var noAsset = &Asset{IndicatorLED: IndicatorOff}

// asset is what is written on the machine.
func (m *Machine) asset() *Asset {
	if m.st.Asset == nil {
		return noAsset
	}
	return m.st.Asset
}

// SetAsset sets what people write on a machine, whole.
type SetAsset struct{ Asset }

func (c SetAsset) apply(m *Machine, _ time.Time) ([]Event, error) {
	if c.IndicatorLED == "" {
		c.IndicatorLED = IndicatorOff
	}
	if !slices.Contains(IndicatorLEDs, c.IndicatorLED) {
		return nil, fmt.Errorf("machine: indicator %q: %w", c.IndicatorLED, ErrUnknown)
	}
	for _, text := range []string{c.Tag, c.ChassisTag, c.HostName} {
		if !ValidText(text) {
			return nil, fmt.Errorf("machine: %.16q…: must be at most %d bytes: %w", text, maxWritten, ErrUnknown)
		}
	}
	if c.IndicatorLED == IndicatorOff {
		c.IndicatorUntil = time.Time{}
	}
	m.setAsset(c.Asset)
	return nil, nil
}

func (m *Machine) setAsset(a Asset) {
	if *m.asset() != a {
		m.st.Asset = &a
	}
}

// Identify has the machine show where it stands: for a time, or until it is
// told otherwise (IPMI v2.0 rev 1.1, §28.5).
type Identify struct {
	Interval time.Duration // 0: no more
	ForceOn  bool          // whatever For says
}

func (c Identify) apply(m *Machine, now time.Time) ([]Event, error) {
	if c.Interval < 0 {
		return nil, fmt.Errorf("machine: identify for %v: must not be negative: %w", c.Interval, ErrUnknown)
	}
	a := *m.asset()
	a.IndicatorLED, a.IndicatorUntil = IndicatorBlinking, time.Time{}
	switch {
	case c.ForceOn:
	case c.Interval == 0:
		a.IndicatorLED = IndicatorOff
	default:
		a.IndicatorUntil = now.Add(c.Interval)
	}
	m.setAsset(a)
	return nil, nil
}

// darken ends what Identify has begun.
func (m *Machine) darken() {
	if a := *m.asset(); !a.IndicatorUntil.IsZero() {
		a.IndicatorLED, a.IndicatorUntil = IndicatorOff, time.Time{}
		m.setAsset(a)
	}
}

package machine

import (
	"fmt"
	"slices"
	"time"
)

// Asset holds what operators write on a machine, and its identify light.
type Asset struct {
	Tag          string       `json:"tag,omitempty"`
	ChassisTag   string       `json:"chassisTag,omitempty"`
	HostName     string       `json:"hostName,omitempty"`
	IndicatorLED IndicatorLED `json:"light,omitempty"` // indicator of the chassis; "": off
	// IndicatorUntil is when the indicator goes off again; zero: it stays.
	IndicatorUntil time.Time `json:"until,omitzero"`
}

// IndicatorLED is the state of an indicator; the values are Redfish's (DSP2046,
// Resource.IndicatorLED).
type IndicatorLED string

// The states of an indicator.
const (
	IndicatorLit      IndicatorLED = "Lit"
	IndicatorBlinking IndicatorLED = "Blinking"
	IndicatorOff      IndicatorLED = "Off"
)

// IndicatorLEDs lists all indicator states.
var IndicatorLEDs = []IndicatorLED{IndicatorLit, IndicatorBlinking, IndicatorOff}

// maxText is the longest text of an Asset in bytes, as SMBIOS allows.
const maxText = 255

// ValidText reports whether a text can be stored in an Asset.
func ValidText(text string) bool { return len(text) <= maxText }

// defaultAsset is the Asset of a machine on which nothing was written.
var defaultAsset = &Asset{IndicatorLED: IndicatorOff}

// asset returns the machine's Asset.
func (m *Machine) asset() *Asset {
	if m.st.Asset == nil {
		return defaultAsset
	}
	return m.st.Asset
}

// SetAsset replaces the machine's Asset.
type SetAsset struct{ Asset }

func (c SetAsset) apply(m *Machine, _ time.Time) ([]Event, error) {
	if c.IndicatorLED == "" {
		c.IndicatorLED = IndicatorOff
	}
	if !slices.Contains(IndicatorLEDs, c.IndicatorLED) {
		return nil, fmt.Errorf("indicator %q: %w", c.IndicatorLED, ErrUnknown)
	}
	for _, text := range []string{c.Tag, c.ChassisTag, c.HostName} {
		if !ValidText(text) {
			return nil, fmt.Errorf("%.16q…: must be at most %d bytes: %w", text, maxText, ErrUnknown)
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

// Identify blinks the indicator for a time or until further notice (IPMI v2.0
// rev 1.1, §28.5).
type Identify struct {
	Interval time.Duration // 0: stop identifying
	ForceOn  bool          // no time limit; Interval is ignored
}

func (c Identify) apply(m *Machine, now time.Time) ([]Event, error) {
	if c.Interval < 0 {
		return nil, fmt.Errorf("identify for %v: must not be negative: %w", c.Interval, ErrUnknown)
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

// endIdentify turns the indicator off after Identify.
func (m *Machine) endIdentify() {
	if a := *m.asset(); !a.IndicatorUntil.IsZero() {
		a.IndicatorLED, a.IndicatorUntil = IndicatorOff, time.Time{}
		m.setAsset(a)
	}
}

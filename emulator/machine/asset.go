package machine

import (
	"fmt"
	"slices"
	"time"
)

// Asset is what people write on a machine.
type Asset struct {
	Tag        string `json:"tag,omitempty"`
	ChassisTag string `json:"chassisTag,omitempty"`
	HostName   string `json:"hostName,omitempty"`
	Light      Light  `json:"light,omitempty"` // that shows where the machine stands; "": off
	// Until is when the light goes out by itself; zero: it stays as it is.
	Until time.Time `json:"until,omitzero"`
}

// Light is what an indicator does; the values are Redfish's (DSP2046,
// Resource.IndicatorLED).
type Light string

// The values of Light.
const (
	Lit      Light = "Lit"
	Blinking Light = "Blinking"
	Dark     Light = "Off"
)

// Lights are all of them.
var Lights = []Light{Lit, Blinking, Dark}

// maxWritten bounds what people write, in bytes: SMBIOS strings are that long.
const maxWritten = 255

// Writable says whether a text can be written on a machine.
func Writable(text string) bool { return len(text) <= maxWritten }

// noAsset is what is written on a machine on which nobody wrote.
var noAsset = &Asset{Light: Dark}

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
	if c.Light == "" {
		c.Light = Dark
	}
	if !slices.Contains(Lights, c.Light) {
		return nil, fmt.Errorf("machine: indicator %q: %w", c.Light, ErrUnknown)
	}
	for _, text := range []string{c.Tag, c.ChassisTag, c.HostName} {
		if !Writable(text) {
			return nil, fmt.Errorf("machine: %.16q…: must be at most %d bytes: %w", text, maxWritten, ErrUnknown)
		}
	}
	if c.Light == Dark {
		c.Until = time.Time{}
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
	For     time.Duration // 0: no more
	Forever bool          // whatever For says
}

func (c Identify) apply(m *Machine, now time.Time) ([]Event, error) {
	if c.For < 0 {
		return nil, fmt.Errorf("machine: identify for %v: must not be negative: %w", c.For, ErrUnknown)
	}
	a := *m.asset()
	a.Light, a.Until = Blinking, time.Time{}
	switch {
	case c.Forever:
	case c.For == 0:
		a.Light = Dark
	default:
		a.Until = now.Add(c.For)
	}
	m.setAsset(a)
	return nil, nil
}

// darken ends what Identify has begun.
func (m *Machine) darken() {
	if a := *m.asset(); !a.Until.IsZero() {
		a.Light, a.Until = Dark, time.Time{}
		m.setAsset(a)
	}
}

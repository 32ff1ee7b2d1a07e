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
	if *m.asset() != c.Asset {
		m.st.Asset = &c.Asset
	}
	return nil, nil
}

package bmc

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// Updates holds the update service's settings. The zero value is the default.
type Updates struct {
	Disabled        bool          `json:"disabled,omitempty"`
	Unverified      bool          `json:"unverified,omitempty"` // do not verify certificates of image servers
	Push            firmware.When `json:"push,omitzero"`        // apply time of pushed images without their own; zero: at once
	Force           bool          `json:"force,omitempty"`      // ForceUpdate of pushed images without their own
	Targets         []string      `json:"targets,omitempty"`    // targets of pushed images without their own, as the protocol names them
	Reserved        bool          `json:"reserved,omitempty"`   // a client has reserved Push and Force
	TargetsReserved bool          `json:"aimed,omitempty"`      // a client has reserved Targets
}

// defaultUpdates holds the defaults.
var defaultUpdates = new(Updates)

// updates returns the settings.
func (b *BMC) updates() *Updates {
	if b.st.Updates == nil {
		return defaultUpdates
	}
	return b.st.Updates
}

// SetUpdates replaces the settings.
type SetUpdates struct{ Updates }

func (c SetUpdates) apply(b *BMC, _ time.Time) ([]Event, error) {
	u := c.Updates
	u.Targets = slices.Clone(u.Targets)
	b.st.Updates = &u
	return nil, nil
}

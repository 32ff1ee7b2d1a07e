package bmc

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// Updates is how a BMC takes firmware images. The zero value is as it comes.
type Updates struct {
	Disabled   bool          `json:"disabled,omitempty"`
	Unverified bool          `json:"unverified,omitempty"` // servers of images need no certificate that holds
	Push       firmware.When `json:"push,omitzero"`        // of images that are pushed without saying; no Apply: at once
	Force      bool          `json:"force,omitempty"`      // likewise
	Targets    []string      `json:"targets,omitempty"`    // likewise; as the protocol names them
	Reserved   bool          `json:"reserved,omitempty"`   // a client has taken Push and Force for itself
	Aimed      bool          `json:"aimed,omitempty"`      // a client has taken Targets for itself
}

// asItComes is what a BMC that nobody has told otherwise does.
var asItComes = new(Updates)

// updates is how images are taken.
func (b *BMC) updates() *Updates {
	if b.st.Updates == nil {
		return asItComes
	}
	return b.st.Updates
}

// SetUpdates sets how images are taken, whole.
type SetUpdates struct{ Updates }

func (c SetUpdates) apply(b *BMC, _ time.Time) ([]Event, error) {
	u := c.Updates
	u.Targets = slices.Clone(u.Targets)
	b.st.Updates = &u
	return nil, nil
}

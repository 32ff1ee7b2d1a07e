package firmware

import (
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Kind is a kind of component. Values are written into images.
type Kind string

// The kinds of components.
const (
	KindBIOS    Kind = "bios"    // BIOS of the system
	KindBMC     Kind = "bmc"     // firmware of the BMC
	KindNIC     Kind = "nic"     // network adapter
	KindStorage Kind = "storage" // storage controller
	KindDrive   Kind = "drive"   // drive
	KindSupply  Kind = "psu"     // power supply
	KindCPLD    Kind = "cpld"    // programmable logic of the board
	KindTPM     Kind = "tpm"     // trusted platform module
)

// Kinds lists all kinds of components.
var Kinds = []Kind{KindBIOS, KindBMC, KindNIC, KindStorage, KindDrive, KindSupply, KindCPLD, KindTPM}

// Activation is what makes a component run a new image.
type Activation string

// The activations.
const (
	BySelf Activation = "self" // it restarts by itself
	ByHost Activation = "host" // a reset of the host
	ByBMC  Activation = "bmc"  // a restart of the BMC, which is unreachable meanwhile
)

// Component is a part of a server with updatable firmware.
type Component struct {
	ID         string // "BIOS", "NIC.1"
	Kind       Kind
	Name       string        // for display
	Vendor     string        // signer of its images
	Model      string        // model that images must be for
	Version    string        // factory version
	Lowest     string        // lowest version that it accepts
	Released   string        // release date of Version: 2025-03-14; "" when unknown
	Backup     string        // version in the second slot; "" without one
	Subject    event.Subject // the part that it belongs to
	Fixed      bool          // not updatable
	Activation Activation
	HostPower  bool // has power only while the host is on
	Timings    Timings
}

// Timings are the durations of the steps of an update.
type Timings struct {
	Transfer time.Duration // transfer of the image to the component
	Verify   time.Duration // verification of the image
	Apply    time.Duration // writing the image
	Restart  time.Duration // restart of the component
}

// Release is a firmware image in a component's slot.
type Release struct {
	Version  string    `json:"version"`
	Lowest   string    `json:"lowest,omitempty"`
	Released string    `json:"released,omitempty"`
	Size     int64     `json:"size,omitempty"`   // payload, in bytes
	SHA256   string    `json:"sha256,omitempty"` // digest of the payload
	At       time.Time `json:"at,omitzero"`      // when it was written
}

// Slots holds a component's images, where they differ from the factory ones.
type Slots struct {
	ID     string   `json:"id"`
	Active *Release `json:"active,omitempty"` // nil: the factory one
	Backup *Release `json:"backup,omitempty"` // nil: the factory one
	Staged *Release `json:"staged,omitempty"` // written, not running yet
	Broken bool     `json:"broken,omitempty"` // Active does not run; Backup does, if there is one
}

// Inventory is the state of a component.
type Inventory struct {
	*Component
	Active Release
	Backup *Release // nil: no second slot
	Staged *Release
	Broken bool   // no slot runs
	Saved  bool   // it runs the backup, because Active is broken
	Update string // ID of its update in progress; "": none
}

// alike reports whether two components take the same images.
func (c *Component) alike(o *Component) bool {
	return c.Kind == o.Kind && c.Vendor == o.Vendor && c.Model == o.Model
}

// component returns a component by ID, or nil.
func (m *Model) component(id string) *Component {
	for i := range m.Components {
		if m.Components[i].ID == id {
			return &m.Components[i]
		}
	}
	return nil
}

// slots returns a component's slots, read-only.
func (s *State) slots(id string) Slots {
	if s != nil {
		for _, x := range s.Slots {
			if x.ID == id {
				return x
			}
		}
	}
	return Slots{ID: id}
}

// set replaces a component's slots in a state that is being edited.
func (s *State) set(x Slots) {
	all := slices.DeleteFunc(slices.Clone(s.Slots), func(o Slots) bool { return o.ID == x.ID })
	if x != (Slots{ID: x.ID}) {
		all = append(all, x)
	}
	if s.Slots = all; len(all) == 0 {
		s.Slots = nil
	}
}

// Components returns the state of all components.
func (v View) Components() []Inventory {
	out := make([]Inventory, 0, len(v.Model.Components))
	for i := range v.Model.Components {
		out = append(out, v.inventory(&v.Model.Components[i]))
	}
	return out
}

// Component returns the state of one component; false when it does not exist.
func (v View) Component(id string) (Inventory, bool) {
	c := v.Model.component(id)
	if c == nil {
		return Inventory{}, false
	}
	return v.inventory(c), true
}

func (v View) inventory(c *Component) Inventory {
	s := v.st.slots(c.ID)
	x := Inventory{Component: c, Staged: s.Staged}
	x.Active = Release{Version: c.Version, Lowest: c.Lowest, Released: c.Released}
	if s.Active != nil {
		x.Active = *s.Active
	}
	if c.Backup != "" {
		x.Backup = &Release{Version: c.Backup, Lowest: c.Lowest}
		if s.Backup != nil {
			x.Backup = s.Backup
		}
	}
	if x.Broken = s.Broken; s.Broken && x.Backup != nil {
		x.Active, x.Broken, x.Saved = *x.Backup, false, true
	}
	if v.st != nil {
		for i := range v.st.Updates {
			if u := &v.st.Updates[i]; u.has(c.ID) {
				x.Update = u.ID
			}
		}
	}
	return x
}

// Version returns the running version of a component; "" when it does not run
// or does not exist.
func (v View) Version(id string) string {
	x, ok := v.Component(id)
	if !ok || x.Broken {
		return ""
	}
	return x.Active.Version
}

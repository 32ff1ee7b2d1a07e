package firmware

import (
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Kind is a kind of component. Values are written into images.
type Kind string

// The kinds of components.
const (
	KindBIOS    Kind = "bios"
	KindBMC     Kind = "bmc"
	KindNIC     Kind = "nic"
	KindStorage Kind = "storage"
	KindDrive   Kind = "drive"
	KindSupply  Kind = "psu"
	KindCPLD    Kind = "cpld"
	KindTPM     Kind = "tpm"
)

// Kinds are all kinds of components.
var Kinds = []Kind{KindBIOS, KindBMC, KindNIC, KindStorage, KindDrive, KindSupply, KindCPLD, KindTPM}

// Activation is what makes a component run an image that was written to it.
type Activation string

// The activations.
const (
	BySelf Activation = "self" // it restarts by itself
	ByHost Activation = "host" // a reset of the host
	ByBMC  Activation = "bmc"  // the BMC restarts; nobody reaches it meanwhile
)

// Component is a part of a server that runs firmware of its own.
type Component struct {
	ID         string // "BIOS", "NIC.1"
	Kind       Kind
	Name       string        // for people
	Vendor     string        // who signs its images
	Model      string        // that images must be for
	Version    string        // that it came with
	Lowest     string        // below which it refuses images
	Released   string        // date of Version: 2025-03-14; "" when nobody knows
	Backup     string        // version in its second slot; "" when it has only one
	Subject    event.Subject // what it is a part of
	Fixed      bool          // it cannot be updated
	Activation Activation
	HostPower  bool // it has power only while the host has
	Timings    Timings
}

// Timings are how long the steps of an update take.
type Timings struct {
	Transfer time.Duration // of the image to the component
	Verify   time.Duration // of the image there
	Apply    time.Duration // writing it
	Restart  time.Duration // of the component
}

// Release is one firmware that a component holds.
type Release struct {
	Version  string    `json:"version"`
	Lowest   string    `json:"lowest,omitempty"`
	Released string    `json:"released,omitempty"`
	Size     int64     `json:"size,omitempty"`   // of its payload, in bytes
	SHA256   string    `json:"sha256,omitempty"` // of its payload
	At       time.Time `json:"at,omitzero"`      // when it was written
}

// Slots are what a component holds, where that is not what it came with.
type Slots struct {
	ID     string   `json:"id"`
	Active *Release `json:"active,omitempty"` // nil: that which it came with
	Backup *Release `json:"backup,omitempty"` // nil: likewise
	Staged *Release `json:"staged,omitempty"` // written and not running yet
	Broken bool     `json:"broken,omitempty"` // Active cannot run; Backup does, where there is one
}

// Inventory is a component as it stands.
type Inventory struct {
	*Component
	Active Release
	Backup *Release // nil: it has no second slot
	Staged *Release
	Broken bool   // it cannot run at all
	Saved  bool   // it runs its backup, because Active was broken
	Update string // ID of the update that is under way; ""
}

// compare compares two versions: runs of digits by value, all else by
// characters, and what ends first is less.
func compare(a, b string) int {
	for a != "" && b != "" {
		x, restA := word(a)
		y, restB := word(b)
		if digit(x[0]) && digit(y[0]) {
			x, y = strings.TrimLeft(x, "0"), strings.TrimLeft(y, "0")
			if len(x) != len(y) {
				return len(x) - len(y)
			}
		}
		if n := strings.Compare(x, y); n != 0 {
			return n
		}
		a, b = restA, restB
	}
	return len(a) - len(b)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// word cuts off the run of digits, or of other characters, that s begins with.
func word(s string) (first, rest string) {
	i := 1
	for i < len(s) && digit(s[i]) == digit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}

// alike tells whether images for one component are images for another.
func (c *Component) alike(o *Component) bool {
	return c.Kind == o.Kind && c.Vendor == o.Vendor && c.Model == o.Model
}

// component finds a component by its ID, or nil.
func (m *Model) component(id string) *Component {
	for i := range m.Components {
		if m.Components[i].ID == id {
			return &m.Components[i]
		}
	}
	return nil
}

// slots is what a component holds, to be read.
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

// set replaces what a component holds. s is being edited.
func (s *State) set(x Slots) {
	all := slices.DeleteFunc(slices.Clone(s.Slots), func(o Slots) bool { return o.ID == x.ID })
	if x != (Slots{ID: x.ID}) {
		all = append(all, x)
	}
	if s.Slots = all; len(all) == 0 {
		s.Slots = nil
	}
}

// Components are all components as they stand.
func (v View) Components() []Inventory {
	out := make([]Inventory, 0, len(v.Model.Components))
	for i := range v.Model.Components {
		out = append(out, v.inventory(&v.Model.Components[i]))
	}
	return out
}

// Component is one component as it stands; false when there is none.
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

// Version is what a component runs; "" when it cannot run, or is not there.
func (v View) Version(id string) string {
	x, ok := v.Component(id)
	if !ok || x.Broken {
		return ""
	}
	return x.Active.Version
}

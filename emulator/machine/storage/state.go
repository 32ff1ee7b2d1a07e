package storage

import (
	"slices"
	"time"
)

// State is how a server's storage differs from its profile. What it leads to is
// never changed once it was handed out.
type State struct {
	Bays        []Bay      `json:"bays,omitempty"` // that differ, in the order of the profile
	Shelf       []Loose    `json:"shelf,omitempty"`
	Arrays      []Array    `json:"volumes,omitempty"`
	Ops         []Op       `json:"work,omitempty"`
	Pending     []Pending  `json:"pending,omitempty"` // for the next start of the server
	Controllers []Settings `json:"controllers,omitempty"`
	Made        int        `json:"made,omitempty"` // drives and volumes so far: no two are alike
}

// Bay is a place for a drive.
type Bay struct {
	ID     string `json:"id"`
	Unit   *Unit  `json:"drive,omitempty"` // nil: it is empty
	Locate bool   `json:"locate,omitempty"`
}

// Unit is one drive, wherever it is.
type Unit struct {
	Model     *Model    `json:"model,omitempty"` // nil: the one that the profile has in its bay
	Serial    string    `json:"serial"`
	WWN       string    `json:"wwn"`
	Failed    bool      `json:"failed,omitempty"`
	Predicted bool      `json:"predicted,omitempty"` // says that it will fail
	SMART     []Reading `json:"smart,omitempty"`     // that were set; the others follow from the serial number
	Spare     SpareKind `json:"spare,omitempty"`
	For       []string  `json:"for,omitempty"` // WWNs of the volumes that a dedicated spare is for
	// Config is what a drive tells of the volumes that it belongs to, to a
	// controller that does not know of them. It is nil of drives in their own
	// server, where State.Arrays has it.
	Config  []Array `json:"config,omitempty"`
	Foreign bool    `json:"foreign,omitempty"` // the controller was asked and does not want Config
	New     bool    `json:"new,omitempty"`     // the controller has not looked at it yet
}

// Loose is a drive that was pulled out and lies on a shelf.
type Loose struct {
	Unit
	From string `json:"from"` // bay
}

// SpareKind says for whom a drive stands by; the values are Redfish's (DSP2046,
// Drive.HotspareType).
type SpareKind string

// The kinds of hot spares. Values are stored; "" is none.
const (
	GlobalSpare    SpareKind = "Global"
	DedicatedSpare SpareKind = "Dedicated"
)

// Array is a volume as its controller knows it.
type Array struct {
	Controller string `json:"controller"`
	ID         string `json:"id"` // unique in its controller: "1"
	Name       string `json:"name"`
	WWN        string `json:"wwn"` // NAA, 32 hex digits in lower case, no prefix
	Geometry
	Extent
	BlockSize int         `json:"blockSize"`
	Members   []Member    `json:"members"` // span after span
	Write     WritePolicy `json:"write"`
	Read      ReadPolicy  `json:"read"`
	Method    InitMethod  `json:"method,omitempty"` // by which it was last initialised
	Failed    bool        `json:"failed,omitempty"`
	Version   int         `json:"version"` // counts changes of members: drives that were away longer know an older one
}

// Member is one drive of an array.
type Member struct {
	Bay    string      `json:"bay"` // in which it is, or was last
	Serial string      `json:"serial"`
	State  MemberState `json:"state"`
}

// MemberState is what a drive is to its array.
type MemberState string

// The states of a member. Values are stored.
const (
	Online     MemberState = "online"     // what it holds is current
	Rebuilding MemberState = "rebuilding" // what it holds will be current
	Missing    MemberState = "missing"    // gone, or what it holds is old
)

// InitMethod says how a volume's first bytes come to be; the values are
// Redfish's (DSP2046, Volume.InitializeMethod).
type InitMethod string

// The ways of initialising.
const (
	Skip       InitMethod = "Skip"       // parity is not computed, data is left
	Background InitMethod = "Background" // parity is computed, data is left
	Foreground InitMethod = "Foreground" // all becomes zeros; nobody can use the volume meanwhile
)

// Settings are what can be set on a controller, in percent of its full speed;
// 0 is the default.
type Settings struct {
	Controller string `json:"controller"`
	Made       int    `json:"made,omitempty"` // volumes so far: IDs are not used again
	Rebuild    int    `json:"rebuild,omitempty"`
	Check      int    `json:"check,omitempty"`
	Transform  int    `json:"transform,omitempty"`
}

// OpKind is a kind of long work.
type OpKind string

// The kinds of long work. Values are stored.
const (
	OpRebuild    OpKind = "rebuild"
	OpInitialize OpKind = "initialize"
	OpCheck      OpKind = "check"
	OpExpand     OpKind = "expand"
	OpErase      OpKind = "erase"
)

// Op is long work that is under way. It waits while the power is off.
type Op struct {
	Kind  OpKind        `json:"kind"`
	Task  string        `json:"job,omitempty"`
	On    string        `json:"on"` // WWN of a volume, or serial number of a drive
	Whole time.Duration `json:"whole"`
	Until time.Time     `json:"until,omitzero"`
	Left  time.Duration `json:"left,omitempty"` // while it waits
	To    *Array        `json:"to,omitempty"`   // what an expansion makes
	// Saved says of an expansion that all data is in a safe place and is being
	// written to where it belongs: the volume cannot be used until it is.
	Saved bool `json:"saved,omitempty"`
	// Made says of an initialisation that its job made the volume.
	Made  bool `json:"made,omitempty"`
	Place int  `json:"place,omitempty"` // number of that place, which no other expansion has
}

// Percent is how much of the work is done at a time, 0 to 99.
func (o *Op) Percent(now time.Time) int {
	left := o.Left
	if !o.Until.IsZero() {
		left = o.Until.Sub(now)
	}
	if o.Whole <= 0 {
		return 99
	}
	return int(min(99, max(0, 100*(o.Whole-left)/o.Whole)))
}

// clone is a copy that can be changed but for what its arrays' configurations
// lead to.
func (st *State) clone() *State {
	if st == nil {
		return &State{}
	}
	out := *st
	out.Bays, out.Shelf, out.Arrays = slices.Clone(st.Bays), slices.Clone(st.Shelf), cloneArrays(st.Arrays)
	out.Ops, out.Controllers, out.Pending = slices.Clone(st.Ops), slices.Clone(st.Controllers), slices.Clone(st.Pending)
	for i := range out.Bays {
		if u := out.Bays[i].Unit; u != nil {
			out.Bays[i].Unit = new(u.clone())
		}
	}
	for i := range out.Shelf {
		out.Shelf[i].Unit = out.Shelf[i].clone()
	}
	return &out
}

func (u *Unit) clone() Unit {
	out := *u
	out.SMART, out.For = slices.Clone(u.SMART), slices.Clone(u.For)
	return out
}

func cloneArrays(all []Array) []Array {
	out := slices.Clone(all)
	for i := range out {
		out[i] = out[i].clone()
	}
	return out
}

func (a *Array) clone() Array {
	out := *a
	out.Members = slices.Clone(a.Members)
	return out
}

// Safes are the names of the safe places that expansions have or will have.
func (st *State) Safes() []string {
	var out []string
	for _, o := range st.all().Ops {
		if o.Kind == OpExpand {
			out = append(out, safe(o.On, o.Place))
		}
	}
	return out
}

// Size is the array's capacity in bytes.
func (a *Array) Size() int64 { return a.Capacity(a.Rows) }

// end is where the array's part of each drive ends.
func (a *Array) end() int64 { return a.Offset + a.Rows*a.Strip }

// index is the place of a drive among the members; -1 when it is none.
func (a *Array) index(serial string) int {
	return slices.IndexFunc(a.Members, func(m Member) bool { return m.Serial == serial })
}

// survives says whether the array can be read from the members that are online
// but for one.
func (a *Array) survives(without int) bool {
	for s := range a.Spans {
		lost := 0
		for i := s * a.Width; i < (s+1)*a.Width; i++ {
			if i == without || a.Members[i].State != Online {
				lost++
			}
		}
		if lost > a.spare() {
			return false
		}
	}
	return true
}

// optimal says whether all members are online.
func (a *Array) optimal() bool {
	return !a.Failed && !slices.ContainsFunc(a.Members, func(m Member) bool { return m.State != Online })
}

package storage

import (
	"slices"
	"time"
)

// State holds the differences of a server's storage from its profile. It is
// immutable once handed out.
type State struct {
	Bays        []Bay      `json:"bays,omitempty"` // that differ, in profile order
	Shelf       []Loose    `json:"shelf,omitempty"`
	Arrays      []Array    `json:"volumes,omitempty"`
	Ops         []Op       `json:"work,omitempty"`
	Pending     []Pending  `json:"pending,omitempty"` // for the next start of the server
	Controllers []Settings `json:"controllers,omitempty"`
	Made        int        `json:"made,omitempty"` // drives and volumes created, for unique identities
}

// Bay is a drive bay.
type Bay struct {
	ID     string `json:"id"`
	Unit   *Unit  `json:"drive,omitempty"` // nil: empty
	Locate bool   `json:"locate,omitempty"`
}

// Unit is one drive, wherever it is.
type Unit struct {
	Model     *Model    `json:"model,omitempty"` // nil: the profile's for its bay
	Serial    string    `json:"serial"`
	WWN       string    `json:"wwn"`
	Failed    bool      `json:"failed,omitempty"`
	Predicted bool      `json:"predicted,omitempty"` // predicts its failure
	SMART     []Reading `json:"smart,omitempty"`     // attributes that were set; the others derive from the serial number
	Spare     SpareKind `json:"spare,omitempty"`
	For       []string  `json:"for,omitempty"` // WWNs of the volumes that a dedicated spare is for
	// Config is the RAID configuration on the drive, for a controller that does
	// not know its volumes. It is nil for drives in their own server, where
	// State.Arrays has it.
	Config  []Array `json:"config,omitempty"`
	Foreign bool    `json:"foreign,omitempty"` // the controller has refused Config
	New     bool    `json:"new,omitempty"`     // the controller has not examined it yet
}

// Loose is a pulled drive on a shelf.
type Loose struct {
	Unit
	From string `json:"from"` // bay
}

// SpareKind is a kind of hot spare; the values are Redfish's (DSP2046,
// Drive.HotspareType).
type SpareKind string

// The kinds of hot spares. Values are stored; "": none.
const (
	GlobalSpare    SpareKind = "Global"
	DedicatedSpare SpareKind = "Dedicated"
)

// Array is a volume's configuration.
type Array struct {
	Controller string `json:"controller"`
	ID         string `json:"id"` // unique within its controller: "1"
	Name       string `json:"name"`
	WWN        string `json:"wwn"` // NAA, 32 hex digits in lower case, no prefix
	Geometry
	Extent
	BlockSize int         `json:"blockSize"`
	Members   []Member    `json:"members"` // span after span
	Write     WritePolicy `json:"write"`
	Read      ReadPolicy  `json:"read"`
	Method    InitMethod  `json:"method,omitempty"` // method of its last initialization
	Failed    bool        `json:"failed,omitempty"`
	Version   int         `json:"version"` // counts changes of members: drives that were missing hold an older one
}

// Member is one drive of an array.
type Member struct {
	Bay    string      `json:"bay"` // its present or last bay
	Serial string      `json:"serial"`
	State  MemberState `json:"state"`
}

// MemberState is the state of a drive in its array.
type MemberState string

// The states of a member. Values are stored.
const (
	Online     MemberState = "online"     // its content is current
	Rebuilding MemberState = "rebuilding" // its content is being rebuilt
	Missing    MemberState = "missing"    // missing, or its content is old
)

// InitMethod is how a volume is initialized; the values are Redfish's (DSP2046,
// Volume.InitializeMethod).
type InitMethod string

// The methods.
const (
	Skip       InitMethod = "Skip"       // parity is not computed, data stays
	Background InitMethod = "Background" // parity is computed, data stays
	Foreground InitMethod = "Foreground" // everything is zeroed; the volume is unusable meanwhile
)

// Settings are a controller's settings, in percent of its full speed; 0:
// default.
type Settings struct {
	Controller string `json:"controller"`
	Made       int    `json:"made,omitempty"` // volumes created: IDs are not reused
	Rebuild    int    `json:"rebuild,omitempty"`
	Check      int    `json:"check,omitempty"`
	Transform  int    `json:"transform,omitempty"`
}

// OpKind is a kind of long-running work.
type OpKind string

// The kinds of work. Values are stored.
const (
	OpRebuild    OpKind = "rebuild"
	OpInitialize OpKind = "initialize"
	OpCheck      OpKind = "check"
	OpExpand     OpKind = "expand"
	OpErase      OpKind = "erase"
)

// Op is work in progress. It stops while the power is off.
type Op struct {
	Kind     OpKind        `json:"kind"`
	Task     string        `json:"job,omitempty"`
	On       string        `json:"on"` // WWN of a volume, or serial number of a drive
	Duration time.Duration `json:"whole"`
	Until    time.Time     `json:"until,omitzero"`
	Left     time.Duration `json:"left,omitempty"` // while it is stopped
	To       *Array        `json:"to,omitempty"`   // result of an expansion
	// Saved says that all data of an expansion is in its safe place and is
	// being written back: the volume is unusable meanwhile.
	Saved bool `json:"saved,omitempty"`
	// Made says that the task of an initialization has created the volume.
	Made  bool `json:"made,omitempty"`
	Place int  `json:"place,omitempty"` // number of the safe place, unique to the expansion
}

// Percent returns the completed percentage at a time, 0 to 99.
func (o *Op) Percent(now time.Time) int {
	left := o.Left
	if !o.Until.IsZero() {
		left = o.Until.Sub(now)
	}
	if o.Duration <= 0 {
		return 99
	}
	return int(min(99, max(0, 100*(o.Duration-left)/o.Duration)))
}

// clone returns a copy that can be changed, except for the content of its
// arrays' configurations.
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

// Safes returns the names of the safe places of expansions.
func (st *State) Safes() []string {
	var out []string
	for _, o := range st.all().Ops {
		if o.Kind == OpExpand {
			out = append(out, safe(o.On, o.Place))
		}
	}
	return out
}

// Size returns the array's capacity in bytes.
func (a *Array) Size() int64 { return a.Capacity(a.Rows) }

// end returns the end of the array's part of each drive.
func (a *Array) end() int64 { return a.Offset + a.Rows*a.Strip }

// index returns a drive's index among the members; -1 when it is none.
func (a *Array) index(serial string) int {
	return slices.IndexFunc(a.Members, func(m Member) bool { return m.Serial == serial })
}

// survives reports whether the array is readable from the members that are
// online, without one of them.
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

// optimal reports whether all members are online.
func (a *Array) optimal() bool {
	return !a.Failed && !slices.ContainsFunc(a.Members, func(m Member) bool { return m.State != Online })
}

package storage

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// InitializeVolume initializes a volume. Fast clears its ends and takes no
// time.
type InitializeVolume struct {
	Controller, Volume string
	Fast               bool
	Method             InitMethod // "": Foreground; ignored with Fast
	Task               string     `json:"Job"`
}

func (c InitializeVolume) apply(s *step) error {
	// An automatic initialization is replaced.
	s.st.Ops = slices.DeleteFunc(s.st.Ops, func(o Op) bool {
		a, err := s.array(c.Controller, c.Volume)
		return err == nil && o.Kind == OpInitialize && o.On == a.WWN && o.Task == ""
	})
	ctl, a, err := s.idle(c.Controller, c.Volume)
	if err != nil {
		return err
	}
	if c.Fast {
		s.work(Work{Kind: WorkWipe, Array: a.clone()})
		s.noteVolume(event.VolumeInitialized, a)
		s.done(c.Task, "")
		return nil
	}
	method := cmp.Or(c.Method, Foreground)
	if method != Skip && method != Background && method != Foreground {
		return against(FieldMethod, method, Unsupported)
	}
	a.Method = method
	s.initialize(ctl, a, method, c.Task, false)
	return nil
}

// initialize begins to initialize a volume; made says whether the same task
// created it. The bytes change at once; the work takes its time.
func (s *step) initialize(c *Controller, a *Array, method InitMethod, task string, made bool) {
	if method != Foreground { // it is usable at once
		if made {
			s.made(task, a)
		} else {
			s.done(task, "")
		}
		task, made = "", false
	}
	if method == Skip || method == Background && !a.Type.Redundant() {
		return
	}
	kind := WorkZero
	if method == Background {
		kind = WorkSync
	}
	s.work(Work{Kind: kind, Array: a.clone()})
	s.begin(Op{Kind: OpInitialize, Task: task, Made: made, On: a.WWN}, s.takes(c, OpInitialize, a.Rows*a.Strip))
}

// idle returns a volume that is usable and without work in progress.
func (s *step) idle(controller, volume string) (*Controller, *Array, error) {
	c, err := s.raid(controller)
	if err != nil {
		return nil, nil, err
	}
	a, err := s.array(controller, volume)
	switch {
	case err != nil:
		return nil, nil, err
	case a.Failed:
		return nil, nil, fmt.Errorf("%w: volume %s has failed", ErrState, volume)
	case s.busy(a):
		return nil, nil, fmt.Errorf("%w: on volume %s", ErrBusy, volume)
	}
	return c, a, nil
}

// CheckConsistency compares a volume's copies, or its data with its parity, and
// repairs it.
type CheckConsistency struct {
	Controller, Volume string
	Task               string `json:"Job"`
}

func (c CheckConsistency) apply(s *step) error {
	ctl, a, err := s.idle(c.Controller, c.Volume)
	switch {
	case err != nil:
		return err
	case !a.Type.Redundant():
		return fmt.Errorf("%w: %s has nothing to compare", ErrUnsupported, a.Type)
	case !a.optimal():
		return fmt.Errorf("%w: volume %s is degraded", ErrState, c.Volume)
	}
	s.begin(Op{Kind: OpCheck, Task: c.Task, On: a.WWN}, s.takes(ctl, OpCheck, a.Rows*a.Strip))
	return nil
}

// Checked reports what a consistency check has repaired, which only the holder
// of the bytes knows.
type Checked struct {
	Controller, Volume string
	Wrong              int64 // rows
}

func (c Checked) apply(s *step) error {
	a, err := s.array(c.Controller, c.Volume)
	if err == nil && c.Wrong > 0 {
		s.noteVolume(event.VolumeRepaired, a, fmt.Sprint(c.Wrong))
	}
	return err
}

// ExpandVolume enlarges a volume: on its drives, on more drives, or as another
// RAID type.
type ExpandVolume struct {
	Controller, Volume string
	Capacity           int64    // bytes, at least; 0: the maximum
	Drives             []string // bays to add
	Type               RAIDType // "": unchanged
	Task               string   `json:"Job"`
}

func (c ExpandVolume) apply(s *step) error {
	ctl, a, err := s.idle(c.Controller, c.Volume)
	switch {
	case err != nil:
		return err
	case !a.optimal():
		return fmt.Errorf("%w: volume %s is degraded", ErrState, c.Volume)
	}
	var to Array
	if len(c.Drives) == 0 && (c.Type == "" || c.Type == a.Type) {
		to, err = s.grown(ctl, a, c.Capacity)
	} else {
		to, err = s.reshaped(ctl, a, c)
	}
	if err != nil {
		return err
	}
	s.st.Made++
	o := Op{Kind: OpExpand, Task: c.Task, On: a.WWN, To: &to, Place: s.st.Made}
	s.begin(o, s.takes(ctl, OpExpand, to.Rows*to.Strip))
	return nil
}

// grown returns a volume that uses more of its drives.
func (s *step) grown(c *Controller, a *Array, capacity int64) (Array, error) {
	var members []slot
	for _, m := range a.Members {
		if x, ok := s.works(c, m.Serial); ok {
			members = append(members, x)
		}
	}
	end := usable(c, members)
	for i := range s.st.Arrays {
		o := &s.st.Arrays[i]
		if o.Controller == a.Controller && o.index(a.Members[0].Serial) >= 0 && o.Offset > a.Offset {
			end = min(end, o.Offset)
		}
	}
	to := a.clone()
	to.Rows = (end - a.Offset) / a.Strip
	most := to.Size()
	if capacity != 0 {
		to.Rows = a.RowsFor(max(0, capacity))
	}
	switch {
	case to.Size() > most:
		return to, against(FieldCapacity, capacity, TooLarge, most)
	case capacity != 0 && capacity < a.Size():
		return to, against(FieldCapacity, capacity, TooSmall, a.Size())
	case to.Rows == a.Rows:
		return to, against(FieldCapacity, capacity, Unsupported, most)
	}
	return to, nil
}

// reshaped returns a volume on more drives, or of another type.
func (s *step) reshaped(c *Controller, a *Array, want ExpandVolume) (Array, error) {
	kind := cmp.Or(want.Type, a.Type)
	rule, ok := c.RAID.Rule(kind)
	if !ok {
		return Array{}, against(FieldType, kind, Unsupported)
	}
	for i := range s.st.Arrays {
		if o := &s.st.Arrays[i]; o.WWN != a.WWN && o.Controller == a.Controller && o.index(a.Members[0].Serial) >= 0 {
			return Array{}, against(FieldVolumes, o.ID, InUse)
		}
	}
	added, err := s.named(c, FieldDrives, want.Drives)
	if err != nil {
		return Array{}, err
	}
	to := a.clone()
	var members []slot
	for _, m := range a.Members {
		if x, ok := s.works(c, m.Serial); ok {
			members = append(members, x)
		}
	}
	for i, x := range added {
		bad := &RuleError{Field: FieldDrives, Index: i, Value: x.bay.ID}
		if bad.Why = unfree(s.st.use(x.unit)); bad.Why == "" && !c.RAID.alike(members[0].model, x.model) {
			bad.Why = Mixed
		}
		if bad.Why != "" {
			return to, bad
		}
		members = append(members, x)
		to.Members = append(to.Members, Member{Bay: x.bay.ID, Serial: x.unit.Serial, State: Online})
	}
	if to.Geometry, err = geometry(rule, CreateVolume{Strip: a.Strip}, len(to.Members)); err != nil {
		return to, err
	}
	to.Rows = (usable(c, members) - to.Offset) / to.Strip
	most := to.Size()
	if want.Capacity != 0 {
		to.Rows = to.RowsFor(max(0, want.Capacity))
	}
	switch {
	case to.Size() > most:
		return to, against(FieldCapacity, want.Capacity, TooLarge, most)
	case to.Size() < a.Size():
		return to, against(FieldCapacity, cmp.Or(want.Capacity, most), TooSmall, a.Size())
	case slices.Equal(to.Members, a.Members) && to.Geometry == a.Geometry:
		return to, against(FieldType, kind, InUse)
	}
	return to, nil
}

// SetVolume changes a volume's name and cache policies; nil: unchanged.
type SetVolume struct {
	Controller, Volume string
	Name               *string
	Write              *WritePolicy
	Read               *ReadPolicy
}

func (c SetVolume) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	a, err := s.array(c.Controller, c.Volume)
	if err != nil {
		return err
	}
	if c.Name != nil {
		a.Name = *c.Name
	}
	if c.Write != nil {
		a.Write = *c.Write
	}
	if c.Read != nil {
		a.Read = *c.Read
	}
	if a.Name == "" {
		return against(FieldName, "", TooSmall)
	}
	check := *a
	check.Method = Skip
	return s.acceptable(ctl.RAID, &check)
}

// SetRates sets the shares of its speed that a controller uses for work, in
// percent; nil: unchanged. Work in progress keeps its pace.
type SetRates struct {
	Controller                string
	Rebuild, Check, Transform *int
}

func (c SetRates) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	set := s.set(ctl.ID)
	for i, x := range []struct {
		from *int
		to   *int
	}{{c.Rebuild, &set.Rebuild}, {c.Check, &set.Check}, {c.Transform, &set.Transform}} {
		if x.from == nil {
			continue
		}
		if *x.from < 1 || *x.from > 100 {
			return &RuleError{Field: FieldRate, Index: i, Value: fmt.Sprint(*x.from), Why: Unsupported, Limit: 100}
		}
		*x.to = *x.from
		if *x.to == defaultShare {
			*x.to = 0
		}
	}
	return nil
}

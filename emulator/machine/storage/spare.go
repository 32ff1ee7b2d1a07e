package storage

import (
	"fmt"
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// AssignSpare makes a drive a hot spare: for some volumes, or for all when none
// is given.
type AssignSpare struct {
	Controller string
	Drive      string   // bay
	Volumes    []string // IDs
}

func (c AssignSpare) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	var of []*Array
	for _, id := range c.Volumes {
		a, err := s.array(c.Controller, id)
		if err != nil {
			return &RuleError{Field: FieldVolumes, Index: len(of), Value: id, Why: Unknown}
		}
		of = append(of, a)
	}
	return s.assign(ctl, c.Drive, -1, of)
}

// assign makes a drive a spare; index is its position in the command's list.
func (s *step) assign(c *Controller, bay string, index int, of []*Array) error {
	bad := func(w Why) error { return &RuleError{Field: FieldSpares, Index: index, Value: bay, Why: w} }
	if !c.RAID.Spares {
		return bad(Unsupported)
	}
	all := s.slots(s.st, c)
	i := slices.IndexFunc(all, func(x slot) bool { return x.bay.ID == bay })
	if i < 0 {
		return bad(Unknown)
	}
	x := all[i]
	if use := s.st.use(x.unit); use != DriveSpare {
		if why := unfree(use); why != "" {
			return bad(why)
		}
	}
	for _, a := range of {
		if !a.Type.Redundant() {
			return bad(Unsupported) // not redundant, so there is nothing to rebuild from
		}
		if why := s.fits(c, a, x.model); why != "" {
			return bad(why)
		}
	}
	u := s.mutableBay(bay).Unit
	if len(of) == 0 {
		u.Spare, u.For = GlobalSpare, nil
		return nil
	}
	u.Spare = DedicatedSpare
	for _, a := range of {
		if !slices.Contains(u.For, a.WWN) {
			u.For = append(u.For, a.WWN)
		}
	}
	return nil
}

// SetSpares sets a volume's dedicated hot spares.
type SetSpares struct {
	Controller, Volume string
	Drives             []string // bays
}

func (c SetSpares) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	a, err := s.array(c.Controller, c.Volume)
	if err != nil {
		return err
	}
	for _, x := range s.slots(s.st, ctl) {
		if x.unit.Spare == DedicatedSpare && slices.Contains(x.unit.For, a.WWN) && !slices.Contains(c.Drives, x.bay.ID) {
			s.release(s.mutableBay(x.bay.ID).Unit, a.WWN)
		}
	}
	for i, bay := range c.Drives {
		if err := s.assign(ctl, bay, i, []*Array{a}); err != nil {
			return err
		}
	}
	return nil
}

// release removes a volume from those that a spare is for.
func (s *step) release(u *Unit, wwn string) {
	u.For = slices.DeleteFunc(u.For, func(w string) bool { return w == wwn })
	if len(u.For) == 0 {
		u.Spare = ""
	}
}

// UnassignSpare makes a spare an unused drive.
type UnassignSpare struct {
	Controller string
	Drive      string // bay
}

func (c UnassignSpare) apply(s *step) error {
	if _, err := s.raid(c.Controller); err != nil {
		return err
	}
	u, _, err := s.drive(c.Drive)
	if err != nil {
		return err
	}
	if u.Spare == "" {
		return fmt.Errorf("%w: drive %s is no spare", ErrState, c.Drive)
	}
	u.Spare, u.For = "", nil
	return nil
}

// ResetController resets a controller to factory settings and deletes its
// volumes, unless they are kept.
type ResetController struct {
	Controller  string
	KeepVolumes bool
	Task        string
}

func (c ResetController) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	set := s.set(ctl.ID)
	*set = Settings{Controller: ctl.ID, Made: set.Made}
	if !c.KeepVolumes {
		if slices.ContainsFunc(s.st.Arrays, func(a Array) bool { return a.Controller == ctl.ID && s.writing(&a) }) {
			return fmt.Errorf("%w: a volume of controller %s is being expanded", ErrBusy, ctl.ID)
		}
		for _, a := range slices.Clone(s.st.Arrays) {
			if a.Controller == ctl.ID {
				s.remove(a.WWN)
			}
		}
		for _, x := range s.slots(s.st, ctl) {
			u := s.mutableBay(x.bay.ID).Unit
			u.Spare, u.For, u.Config, u.Foreign = "", nil, nil, false
		}
	}
	s.note(event.ControllerReset, event.Subject{Part: event.Controller, ID: ctl.ID}, ctl.ID)
	s.done(c.Task, "")
	return nil
}

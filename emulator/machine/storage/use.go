package storage

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// slot is a drive in its bay.
type slot struct {
	bay   *Drive // the profile's
	unit  *Unit  // read-only: step.mutableBay returns one to change
	model *Model
}

// slots returns a controller's drives in the order of its bays.
func (s *Subsystem) slots(st *State, c *Controller) []slot {
	var out []slot
	for i := range c.Drives {
		d := &c.Drives[i]
		unit := &Unit{Serial: d.Serial, WWN: d.WWN}
		if st != nil {
			if j := slices.IndexFunc(st.Bays, func(b Bay) bool { return b.ID == d.ID }); j >= 0 {
				unit = st.Bays[j].Unit
			}
		}
		if unit == nil {
			continue
		}
		at := slot{bay: d, unit: unit, model: d.Model}
		if unit.Model != nil {
			at.model = unit.Model
		}
		out = append(out, at)
	}
	return out
}

// seated returns a controller's drive by serial number.
func (s *step) seated(c *Controller, serial string) (slot, bool) {
	all := s.slots(s.st, c)
	i := slices.IndexFunc(all, func(x slot) bool { return x.unit.Serial == serial })
	if i < 0 {
		return slot{}, false
	}
	return all[i], true
}

// DriveState is the use of a drive.
type DriveState string

// The states of a drive.
const (
	DriveUnused     DriveState = "unused"
	DriveOnline     DriveState = "online" // part of a volume
	DriveRebuilding DriveState = "rebuilding"
	DriveStale      DriveState = "stale" // part of a volume that does not use it, because its content is old
	DriveReserved   DriveState = "reserved"
	DriveSpare      DriveState = "spare"
	DriveErasing    DriveState = "erasing"
	DriveForeign    DriveState = "foreign"
	DriveFailed     DriveState = "failed"
)

// use returns the use of a drive.
func (st *State) use(u *Unit) DriveState {
	if u.Failed {
		return DriveFailed
	}
	if st == nil {
		return DriveUnused
	}
	for i := range st.Ops {
		if o := &st.Ops[i]; o.Kind == OpErase && o.On == u.Serial {
			return DriveErasing
		}
	}
	if u.Foreign {
		return DriveForeign
	}
	for i := range st.Arrays {
		if j := st.Arrays[i].index(u.Serial); j >= 0 {
			return map[MemberState]DriveState{Online: DriveOnline, Rebuilding: DriveRebuilding, Missing: DriveStale}[st.Arrays[i].Members[j].State]
		}
	}
	for i := range st.Ops {
		if to := st.Ops[i].To; to != nil && to.index(u.Serial) >= 0 {
			return DriveReserved
		}
	}
	if u.Spare != "" {
		return DriveSpare
	}
	return DriveUnused
}

// settle does what controllers do on their own after a change of drives.
func (s *step) settle() {
	for i := range s.controllers {
		c := &s.controllers[i]
		s.meet(c)
		if c.RAID == nil {
			s.forget(c)
			continue
		}
		s.lose(c)
		s.forget(c)
		s.regain(c)
	}
}

// meet examines drives that were inserted.
func (s *step) meet(c *Controller) {
	for _, x := range s.slots(s.st, c) {
		if !x.unit.New {
			continue
		}
		u := s.mutableBay(x.bay.ID).Unit
		u.New = false
		if c.RAID == nil || u.Config == nil || u.Failed {
			continue
		}
		known := func(cfg Array) bool {
			i := slices.IndexFunc(s.st.Arrays, func(a Array) bool { return a.Controller == c.ID && a.WWN == cfg.WWN })
			return i >= 0 && !s.st.Arrays[i].Failed && s.st.Arrays[i].index(u.Serial) >= 0
		}
		if !slices.ContainsFunc(u.Config, func(cfg Array) bool { return !known(cfg) }) {
			u.Config = nil
			continue
		}
		u.Foreign = true
		s.noteDrive(event.DriveForeign, x.bay.ID)
	}
}

// works reports whether a volume of the controller can use a drive.
func (s *step) works(c *Controller, serial string) (slot, bool) {
	x, ok := s.seated(c, serial)
	return x, ok && !x.unit.Failed && !x.unit.Foreign
}

// lose marks drives that are gone as missing in their volumes.
func (s *step) lose(c *Controller) {
	for i := range s.st.Arrays {
		a := &s.st.Arrays[i]
		if a.Controller != c.ID || a.Failed {
			continue
		}
		degraded := false
		for j := range a.Members {
			m := &a.Members[j]
			x, ok := s.works(c, m.Serial)
			if ok {
				m.Bay = x.bay.ID // it may have been moved
				continue
			}
			if m.State == Missing {
				continue
			}
			a.Version++
			if m.State == Rebuilding || a.survives(j) {
				degraded = degraded || m.State == Online
				m.State = Missing
				continue
			}
			a.Failed = true
			break
		}
		switch {
		case a.Failed:
			for j := range a.Members {
				if a.Members[j].State == Rebuilding {
					a.Members[j].State = Missing
				}
			}
			s.noteVolume(event.VolumeFailed, a)
		case degraded:
			s.noteVolume(event.VolumeDegraded, a)
		}
	}
}

// forget ends work whose volume or drive is gone.
func (s *step) forget(c *Controller) {
	s.st.Ops = slices.DeleteFunc(s.st.Ops, func(o Op) bool {
		fault := s.hopeless(c, &o)
		if fault != "" {
			s.done(o.Task, fault)
		}
		return fault != ""
	})
}

// hopeless returns why work cannot continue; "" when it can, or is another
// controller's.
func (s *step) hopeless(c *Controller, o *Op) string {
	switch o.Kind {
	case OpErase:
		in := false // in this controller; a drive that was pulled is in none
		for i := range s.controllers {
			x, ok := s.seated(&s.controllers[i], o.On)
			in = in || ok && !x.unit.Failed
		}
		if !in {
			return "the drive is gone"
		}
		return ""
	case OpRebuild:
		for i := range s.st.Arrays {
			a := &s.st.Arrays[i]
			if j := a.index(o.On); j >= 0 && a.Members[j].State == Rebuilding {
				return ""
			}
		}
		return "the drive is not rebuilt any more"
	}
	i := slices.IndexFunc(s.st.Arrays, func(a Array) bool { return a.WWN == o.On })
	switch {
	case i < 0:
		return "the volume was deleted"
	case s.st.Arrays[i].Controller != c.ID:
		return ""
	case s.st.Arrays[i].Failed:
		return "the volume has failed"
	case o.Kind == OpCheck && !s.st.Arrays[i].optimal():
		return "a drive of the volume was lost"
	case o.Kind == OpExpand && !o.Saved && slices.ContainsFunc(o.To.Members, func(m Member) bool {
		_, ok := s.works(c, m.Serial)
		return !ok && s.st.Arrays[i].index(m.Serial) < 0
	}):
		return "a drive that was to be added is gone"
	}
	return ""
}

// regain finds replacements for missing drives, and starts rebuilds.
func (s *step) regain(c *Controller) {
	for i := range s.st.Arrays {
		a := &s.st.Arrays[i]
		if a.Controller != c.ID || a.Failed || !a.Type.Redundant() || s.busy(a, OpExpand) {
			continue
		}
		for j := range a.Members {
			if m := a.Members[j]; m.State == Missing {
				s.replace(c, m)
			}
		}
	}
}

// replace finds a replacement for a missing drive, in all its volumes.
func (s *step) replace(c *Controller, lost Member) {
	var group []*Array
	for i := range s.st.Arrays {
		a := &s.st.Arrays[i]
		if j := a.index(lost.Serial); j >= 0 && a.Controller == c.ID && !a.Failed && a.Members[j].State == Missing {
			group = append(group, a)
		}
	}
	x, ok := s.standIn(c, lost, group)
	if !ok {
		return
	}
	var bytes int64
	for _, a := range group {
		m := &a.Members[a.index(lost.Serial)]
		m.Bay, m.Serial, m.State = x.bay.ID, x.unit.Serial, Rebuilding
		a.Version++
		bytes += a.Rows * a.Strip
		s.noteVolume(event.VolumeRebuilding, a)
	}
	u := s.mutableBay(x.bay.ID).Unit
	u.Spare, u.For = "", nil
	s.noteDrive(event.RebuildStarted, x.bay.ID)
	s.begin(Op{Kind: OpRebuild, On: u.Serial}, s.takes(c, OpRebuild, bytes))
}

// standIn returns the replacement for a missing drive: the drive itself, a
// dedicated spare of one of the volumes, any spare, or a new drive in the same
// bay.
func (s *step) standIn(c *Controller, lost Member, group []*Array) (slot, bool) {
	if len(group) == 0 {
		return slot{}, false
	}
	all := s.slots(s.st, c)
	fits := func(x slot) bool {
		return !slices.ContainsFunc(group, func(a *Array) bool { return s.fits(c, a, x.model) != "" })
	}
	for _, wanted := range []func(x slot) bool{
		func(x slot) bool { return x.unit.Serial == lost.Serial && s.st.use(x.unit) == DriveStale },
		func(x slot) bool {
			return s.st.use(x.unit) == DriveSpare && x.unit.Spare == DedicatedSpare &&
				slices.ContainsFunc(group, func(a *Array) bool { return slices.Contains(x.unit.For, a.WWN) })
		},
		func(x slot) bool { return s.st.use(x.unit) == DriveSpare && x.unit.Spare == GlobalSpare },
		func(x slot) bool { return x.bay.ID == lost.Bay && s.st.use(x.unit) == DriveUnused },
	} {
		for _, x := range all {
			if wanted(x) && fits(x) {
				return x, true
			}
		}
	}
	return slot{}, false
}

// fits returns why a drive model cannot be part of a volume; "" when it can.
func (s *step) fits(c *Controller, a *Array, m *Model) Why {
	if m.BlockSize != a.BlockSize {
		return Mixed
	}
	for _, other := range a.Members {
		if x, ok := s.works(c, other.Serial); ok {
			if !c.RAID.alike(x.model, m) {
				return Mixed
			}
			break
		}
	}
	if c.RAID.Usable(m) < a.end() {
		return TooSmall
	}
	return ""
}

// alike reports whether two drive models can be in one volume.
func (r *RAID) alike(a, b *Model) bool {
	return a.BlockSize == b.BlockSize && (r.MixProtocols || a.Protocol == b.Protocol) && (r.MixMedia || a.Media == b.Media)
}

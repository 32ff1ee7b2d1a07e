package storage

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// ImportForeign imports the foreign volumes of a controller's drives, if enough
// of their drives are present.
type ImportForeign struct {
	Controller string
	Task       string
}

func (c ImportForeign) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	var latest []Array // the latest configuration of each volume on any drive
	for _, x := range s.slots(s.st, ctl) {
		if !x.unit.Foreign {
			continue
		}
		for _, cfg := range x.unit.Config {
			i := slices.IndexFunc(latest, func(a Array) bool { return a.WWN == cfg.WWN })
			switch {
			case i < 0:
				latest = append(latest, cfg.clone())
			case latest[i].Version < cfg.Version:
				latest[i] = cfg.clone()
			}
		}
	}
	if len(latest) == 0 {
		return fmt.Errorf("%w: controller %s has no foreign configuration", ErrState, ctl.ID)
	}
	var refused error
	taken := 0
	for _, a := range latest {
		if err := s.take(ctl, a); err != nil {
			refused = err
			continue
		}
		taken++
	}
	if taken == 0 {
		return refused
	}
	s.done(c.Task, "")
	return nil
}

// take adds a volume from a foreign configuration.
func (s *step) take(c *Controller, a Array) error {
	at := slices.IndexFunc(s.st.Arrays, func(x Array) bool { return x.WWN == a.WWN })
	volumes := 0
	for i := range s.st.Arrays {
		if s.st.Arrays[i].Controller == c.ID {
			volumes++
		}
	}
	_, ok := c.RAID.Rule(a.Type)
	switch {
	case at >= 0 && (s.st.Arrays[at].Controller != c.ID || !s.st.Arrays[at].Failed):
		return against(FieldVolumes, a.Name, InUse)
	case at >= 0: // it failed on this server, and its drives are back
		a = s.st.Arrays[at].clone()
	case !ok:
		return against(FieldType, a.Type, Unsupported)
	case volumes >= c.RAID.MaxVolumes:
		return against(FieldVolumes, volumes, TooMany, int64(c.RAID.MaxVolumes))
	}
	for i := range a.Members {
		m := &a.Members[i]
		x, ok := s.seated(c, m.Serial)
		if ok {
			m.Bay = x.bay.ID
		}
		if !ok || !configures(x.unit, a.WWN, at >= 0) || x.unit.Failed || m.State == Rebuilding || c.RAID.Usable(x.model) < a.end() {
			m.State = Missing
		}
	}
	if !a.survives(-1) {
		return against(FieldDrives, a.Name, Incomplete)
	}
	a.Failed, a.Controller = false, c.ID
	a.Version++
	if at >= 0 {
		s.st.Arrays[at] = a
	} else {
		set := s.set(c.ID)
		set.Made++
		a.ID = strconv.Itoa(set.Made)
		if !slices.Contains(c.RAID.Write, a.Write) {
			a.Write = c.RAID.Write[0]
		}
		if !slices.Contains(c.RAID.Read, a.Read) {
			a.Read = c.RAID.Read[0]
		}
		s.st.Arrays = append(s.st.Arrays, a)
	}
	for _, m := range a.Members {
		x, ok := s.seated(c, m.Serial)
		if !ok || !x.unit.Foreign {
			continue
		}
		u := s.mutableBay(x.bay.ID).Unit
		u.Config = slices.DeleteFunc(slices.Clone(u.Config), func(cfg Array) bool { return cfg.WWN == a.WWN })
		u.Foreign = len(u.Config) > 0
	}
	s.noteVolume(event.VolumeImported, &a)
	if !a.optimal() {
		s.noteVolume(event.VolumeDegraded, &a)
	}
	return nil
}

// configures reports whether a drive's configuration names a volume; a drive that
// never left a volume of this server needs none.
func configures(u *Unit, wwn string, here bool) bool {
	if !u.Foreign {
		return here
	}
	return slices.ContainsFunc(u.Config, func(cfg Array) bool { return cfg.WWN == wwn })
}

// ClearForeign clears the foreign configurations of a controller's drives.
type ClearForeign struct {
	Controller string
	Task       string
}

func (c ClearForeign) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	cleared := 0
	for _, x := range s.slots(s.st, ctl) {
		if !x.unit.Foreign {
			continue
		}
		s.disown(s.mutableBay(x.bay.ID).Unit)
		cleared++
	}
	if cleared == 0 {
		return fmt.Errorf("%w: controller %s has no foreign configuration", ErrState, ctl.ID)
	}
	s.done(c.Task, "")
	return nil
}

// disown clears a drive's configuration. Volumes that failed without the drive
// cannot use it again.
func (s *step) disown(u *Unit) {
	u.Config, u.Foreign = nil, false
	for i := range s.st.Arrays {
		if j := s.st.Arrays[i].index(u.Serial); j >= 0 && s.st.Arrays[i].Failed {
			m := &s.st.Arrays[i].Members[j]
			m.Serial, m.State = "", Missing
		}
	}
}

// ForceEnable brings a failed volume back with the drives that are present,
// whose content is taken as current, even if it is old.
type ForceEnable struct {
	Controller, Volume string
	Task               string
}

func (c ForceEnable) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	a, err := s.array(c.Controller, c.Volume)
	switch {
	case err != nil:
		return err
	case !a.Failed:
		return fmt.Errorf("%w: volume %s has not failed", ErrState, c.Volume)
	}
	there := func(m Member) bool {
		x, ok := s.seated(ctl, m.Serial)
		return ok && configures(x.unit, a.WWN, true) && !x.unit.Failed
	}
	for i, m := range a.Members {
		if !there(m) {
			a.Members[i].State = Missing
		}
	}
	for i, m := range a.Members {
		if m.State == Missing && there(m) && !a.survives(-1) {
			a.Members[i].State = Online
		}
	}
	if err := s.take(ctl, a.clone()); err != nil {
		return err
	}
	s.done(c.Task, "")
	return nil
}

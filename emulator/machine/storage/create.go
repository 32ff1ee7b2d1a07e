package storage

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"unicode"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// CreateVolume creates a volume. The controller chooses what is not given.
type CreateVolume struct {
	Controller string
	Type       RAIDType
	Drives     []string // bays, span after span; none: as few as suffice
	Capacity   int64    // bytes, at least; 0: the maximum
	Strip      int64    // bytes
	Span       int      // drives per span
	Name       string
	Write      WritePolicy
	Read       ReadPolicy
	Spares     []string   // bays of dedicated hot spares
	Method     InitMethod // "": Background
	Task       string     `json:"Job"`
}

func (c CreateVolume) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	rule, ok := ctl.RAID.Rule(c.Type)
	volumes := 0
	for i := range s.st.Arrays {
		if s.st.Arrays[i].Controller == ctl.ID {
			volumes++
		}
	}
	switch {
	case !ok:
		return against(FieldType, c.Type, Unsupported)
	case volumes >= ctl.RAID.MaxVolumes:
		return against(FieldVolumes, volumes, TooMany, int64(ctl.RAID.MaxVolumes))
	}
	a := Array{
		Controller: ctl.ID, Name: c.Name, Version: 1,
		Write: cmp.Or(c.Write, ctl.RAID.Write[0]), Read: cmp.Or(c.Read, ctl.RAID.Read[0]),
		Method: cmp.Or(c.Method, Background),
	}
	a.Type, a.Strip = c.Type, cmp.Or(c.Strip, ctl.RAID.Strips[0])
	if err := s.acceptable(ctl.RAID, &a); err != nil {
		return err
	}
	c.Strip = a.Strip
	var members []slot
	if len(c.Drives) == 0 {
		members, err = s.choose(ctl, rule, c)
	} else {
		members, err = s.named(ctl, FieldDrives, c.Drives)
	}
	if err != nil {
		return err
	}
	if err := s.room(ctl, rule, c, &a, members); err != nil {
		return err
	}
	set := s.set(ctl.ID)
	set.Made++
	s.st.Made++
	a.ID, a.WWN = strconv.Itoa(set.Made), volumeWWN(ctl.Serial, s.st.Made)
	if a.Name == "" {
		a.Name = "Volume " + a.ID
	}
	s.st.Arrays = append(s.st.Arrays, a)
	for i, bay := range c.Spares {
		if err := s.assign(ctl, bay, i, []*Array{&a}); err != nil {
			return err
		}
	}
	s.noteVolume(event.VolumeCreated, &a)
	s.initialize(ctl, &a, a.Method, c.Task, true)
	return nil
}

// acceptable checks a volume's properties without its drives.
func (s *step) acceptable(r *RAID, a *Array) error {
	switch {
	case !slices.Contains(r.Strips, a.Strip):
		return against(FieldStrip, a.Strip, Unsupported)
	case !slices.Contains(r.Write, a.Write):
		return against(FieldWrite, a.Write, Unsupported)
	case !slices.Contains(r.Read, a.Read):
		return against(FieldRead, a.Read, Unsupported)
	case a.Method != Skip && a.Method != Background && a.Method != Foreground:
		return against(FieldMethod, a.Method, Unsupported)
	case len(a.Name) > MaxName:
		return against(FieldName, a.Name, TooLarge, MaxName)
	case slices.ContainsFunc([]rune(a.Name), func(r rune) bool { return !unicode.IsPrint(r) }):
		return against(FieldName, strconv.Quote(a.Name), Unsupported)
	}
	return nil
}

// MaxName is the longest name of a volume in bytes.
const MaxName = 64

// named returns drives by their bays.
func (s *step) named(c *Controller, f Field, bays []string) ([]slot, error) {
	var out []slot
	all := s.slots(s.st, c)
	for i, bay := range bays {
		bad := &RuleError{Field: f, Index: i, Value: bay}
		j := slices.IndexFunc(all, func(x slot) bool { return x.bay.ID == bay })
		switch {
		case j < 0:
			bad.Why = Unknown
			return nil, bad
		case slices.Contains(bays[:i], bay):
			bad.Why = Twice
			return nil, bad
		}
		out = append(out, all[j])
	}
	return out, nil
}

// unfree returns why a drive cannot become part of a volume; "" when it can.
func unfree(use DriveState) Why {
	switch use {
	case DriveUnused:
		return ""
	case DriveFailed:
		return Faulty
	case DriveForeign:
		return IsForeign
	}
	return InUse
}

// choose returns as few drives as suffice, in the order of their bays, all of
// the first one's kind.
func (s *step) choose(c *Controller, rule TypeRule, want CreateVolume) ([]slot, error) {
	var free []slot
	for _, x := range s.slots(s.st, c) {
		if s.st.use(x.unit) == DriveUnused {
			free = append(free, x)
		}
	}
	most := 0
	for i, first := range free {
		var alike []slot
		for _, x := range free[i:] {
			if c.RAID.alike(first.model, x.model) {
				alike = append(alike, x)
			}
		}
		most = max(most, len(alike))
		for n := rule.Min; n <= len(alike); n++ {
			g, err := geometry(rule, want, n)
			if err != nil {
				continue
			}
			rows := usable(c, alike[:n]) / g.Strip
			if rows > 0 && g.Capacity(rows) >= want.Capacity {
				return alike[:n], nil
			}
		}
	}
	least := rule.Min
	if rule.Type.Nested() {
		least *= 2
	}
	if most < least {
		return nil, against(FieldDrives, most, TooFew, int64(least))
	}
	return nil, against(FieldCapacity, want.Capacity, TooLarge)
}

// usable returns the size of the smallest of some drives that volumes can use.
func usable(c *Controller, drives []slot) int64 {
	least := int64(-1)
	for _, x := range drives {
		if u := c.RAID.Usable(x.model); least < 0 || u < least {
			least = u
		}
	}
	return max(0, least)
}

// smallest returns the size of the smallest of some drives.
func smallest(drives []slot) int64 {
	least := drives[0].model.Capacity
	for _, x := range drives {
		least = min(least, x.model.Capacity)
	}
	return least
}

// geometry returns the layout on n drives.
func geometry(rule TypeRule, want CreateVolume, n int) (Geometry, error) {
	g := Geometry{Type: rule.Type, Strip: want.Strip, Spans: 1, Width: n}
	if !rule.Type.Nested() {
		switch {
		case want.Span != 0 && want.Span != n:
			return g, against(FieldSpan, want.Span, Unsupported, int64(n))
		case n < rule.Min:
			return g, against(FieldDrives, n, TooFew, int64(rule.Min))
		case n > rule.Max:
			return g, against(FieldDrives, n, TooMany, int64(rule.Max))
		}
		return g, nil
	}
	switch {
	case n < 2*rule.Min:
		return g, against(FieldDrives, n, TooFew, int64(2*rule.Min))
	case n > rule.MaxSpans*rule.Max:
		return g, against(FieldDrives, n, TooMany, int64(rule.MaxSpans*rule.Max))
	case want.Span != 0 && (want.Span < rule.Min || want.Span > rule.Max):
		return g, against(FieldSpan, want.Span, Unsupported)
	}
	for g.Spans = 2; g.Spans <= rule.MaxSpans; g.Spans++ {
		g.Width = n / g.Spans
		if n%g.Spans == 0 && g.Width >= rule.Min && g.Width <= rule.Max && (want.Span == 0 || want.Span == g.Width) {
			return g, nil
		}
	}
	return g, against(FieldDrives, n, Uneven)
}

// room finds space for a volume on drives: all of it, or beside other volumes
// of the same type on the same drives.
func (s *step) room(c *Controller, rule TypeRule, want CreateVolume, a *Array, members []slot) error {
	g, err := geometry(rule, want, len(members))
	if err != nil {
		return err
	}
	a.Geometry, a.BlockSize = g, members[0].model.BlockSize
	group, err := s.group(c, a, members)
	if err != nil {
		return err
	}
	for _, x := range members {
		a.Members = append(a.Members, Member{Bay: x.bay.ID, Serial: x.unit.Serial, State: Online})
	}
	if len(group) > 0 { // in the order of the first volume
		a.Spans, a.Width, a.Members = group[0].Spans, group[0].Width, slices.Clone(group[0].Members)
	}
	from, room := largestGap(group, usable(c, members), func(room int64) bool {
		return want.Capacity > 0 && room/a.Strip >= a.RowsFor(want.Capacity)
	})
	most := a.Capacity(room / a.Strip)
	if c.RAID.Lenient && len(group) == 0 && want.Capacity > most && want.Capacity <= smallest(members)*int64(a.data()*a.Spans) {
		want.Capacity = most
	}
	switch {
	case want.Capacity < 0:
		return against(FieldCapacity, want.Capacity, TooSmall)
	case most == 0 && want.Capacity == 0:
		return against(FieldDrives, len(members), InUse)
	case want.Capacity > most:
		return against(FieldCapacity, want.Capacity, TooLarge, most)
	}
	a.Offset, a.Rows = from, room/a.Strip
	if want.Capacity > 0 {
		a.Rows = a.RowsFor(want.Capacity)
	}
	return nil
}

// group returns the volumes that the drives already have; volumes on a
// different set of drives are an error.
func (s *step) group(c *Controller, a *Array, members []slot) ([]*Array, error) {
	var group []*Array
	for i := range s.st.Arrays {
		other := &s.st.Arrays[i]
		if other.Controller == c.ID && other.index(members[0].unit.Serial) >= 0 {
			group = append(group, other)
		}
	}
	joins := len(group) > 0 && len(group) < max(1, c.RAID.MaxPerGroup) && group[0].Type == a.Type &&
		len(group[0].Members) == len(members) && group[0].optimal() && !s.busy(group[0], OpExpand)
	for i, x := range members {
		bad := &RuleError{Field: FieldDrives, Index: i, Value: x.bay.ID}
		switch why := unfree(s.st.use(x.unit)); {
		case why != "" && !(joins && group[0].index(x.unit.Serial) >= 0):
			bad.Why = why
			return nil, bad
		case why == "" && joins:
			bad.Why = InUse // the other drives are
			bad.Index, bad.Value = 0, members[0].bay.ID
			return nil, bad
		case !c.RAID.alike(members[0].model, x.model):
			bad.Why = Mixed
			return nil, bad
		}
	}
	return group, nil
}

// largestGap returns the first gap between volumes that is large enough, or
// else the largest one.
func largestGap(group []*Array, end int64, enough func(room int64) bool) (from, room int64) {
	taken := slices.SortedFunc(slices.Values(group), func(a, b *Array) int { return cmp.Compare(a.Offset, b.Offset) })
	at := int64(0)
	for i := range len(taken) + 1 {
		until := end
		if i < len(taken) {
			until = taken[i].Offset
		}
		switch free := until - at; {
		case free > 0 && enough(free):
			return at, free
		case free > room:
			from, room = at, free
		}
		if i < len(taken) {
			at = taken[i].end()
		}
	}
	return from, room
}

// DeleteVolume deletes a volume. Its data stays on the drives.
type DeleteVolume struct {
	Controller, Volume string
	Task               string `json:"Job"`
}

func (c DeleteVolume) apply(s *step) error {
	if _, err := s.raid(c.Controller); err != nil {
		return err
	}
	a, err := s.array(c.Controller, c.Volume)
	if err != nil {
		return err
	}
	if s.writing(a) {
		return fmt.Errorf("%w: volume %s is being expanded", ErrBusy, c.Volume)
	}
	s.remove(a.WWN)
	s.done(c.Task, "")
	return nil
}

// writing reports whether a volume's data is being moved.
func (s *step) writing(a *Array) bool {
	return slices.ContainsFunc(s.st.Ops, func(o Op) bool { return o.On == a.WWN && o.Saved })
}

// remove removes a volume and its dedicated spares.
func (s *step) remove(wwn string) {
	i := slices.IndexFunc(s.st.Arrays, func(a Array) bool { return a.WWN == wwn })
	a := s.st.Arrays[i]
	s.st.Arrays = slices.Delete(s.st.Arrays, i, i+1)
	for i := range s.st.Bays {
		u := s.st.Bays[i].Unit
		if u == nil || u.Spare != DedicatedSpare {
			continue
		}
		s.release(u, wwn)
	}
	s.noteVolume(event.VolumeDeleted, &a)
}

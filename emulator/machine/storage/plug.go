package storage

import (
	"fmt"
	"slices"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// The commands of this file are what people do to drives (pull, insert, replace)
// and what drives do (fail, wear). None needs power.

// maxShelf is the number of pulled drives that a server's shelf holds.
const maxShelf = 256

// PullDrive pulls a drive out of its bay and puts it on the shelf.
type PullDrive struct {
	Drive string // bay
}

func (c PullDrive) apply(s *step) error {
	u, m, err := s.drive(c.Drive)
	if err != nil {
		return err
	}
	if len(s.st.Shelf) >= maxShelf {
		return fmt.Errorf("%w: %d drives lie on the shelf: throw some away", ErrBusy, maxShelf)
	}
	out := u.clone()
	out.Model, out.Spare, out.For, out.New = m, "", nil, false
	if !out.Foreign {
		for i := range s.st.Arrays {
			if s.st.Arrays[i].index(u.Serial) >= 0 {
				out.Config = append(slices.Clip(out.Config), s.st.Arrays[i].clone())
			}
		}
	}
	out.Foreign = false
	s.st.Shelf = append(s.st.Shelf, Loose{Unit: out, From: c.Drive})
	s.mutableBay(c.Drive).Unit = nil
	s.noteDrive(event.DriveRemoved, c.Drive)
	return nil
}

// Insertion says which drive is inserted.
type Insertion string

// The insertions.
const (
	InsertSame    Insertion = "same"    // from the shelf
	InsertNew     Insertion = "new"     // factory new
	InsertForeign Insertion = "foreign" // was part of another server's volume
	InsertLoose   Insertion = "loose"   // from another server's shelf
)

// InsertDrive inserts a drive into an empty bay.
type InsertDrive struct {
	Drive string // bay
	What  Insertion
	// Serial selects the drive on the shelf; "" is the one that was pulled from
	// that bay last.
	Serial string
	Model  *Model // model of a new or foreign drive; nil: the profile's for that bay
	Loose  *Loose // from another server's shelf
}

func (c InsertDrive) apply(s *step) error {
	b := s.mutableBay(c.Drive)
	switch {
	case b == nil:
		return fmt.Errorf("%w: bay %s", ErrNotFound, c.Drive)
	case b.Unit != nil:
		return fmt.Errorf("%w: bay %s has a drive", ErrState, c.Drive)
	}
	u, err := s.bring(c)
	if err != nil {
		return err
	}
	d := s.bay(c.Drive)
	if u.Model == nil {
		u.Model = d.Model
	}
	if !connects(d.Protocol, u.Model.Protocol) {
		return against(FieldModel, u.Model.Protocol, Unsupported)
	}
	if same(u.Model, d.Model) {
		u.Model = nil
	}
	u.New = true
	s.mutableBay(c.Drive).Unit = u
	s.noteDrive(event.DriveInserted, c.Drive)
	if u.Failed {
		s.noteDrive(event.DriveFailed, c.Drive)
	}
	return nil
}

func same(a, b *Model) bool {
	x, y := *a, *b
	x.Sanitize, y.Sanitize = nil, nil
	return slices.Equal(a.Sanitize, b.Sanitize) && fmt.Sprint(x) == fmt.Sprint(y)
}

// connects reports whether a drive works in a bay for a protocol: SAS accepts
// SATA too (T10 SPL-5, SATA Tunneled Protocol).
func connects(bay, drive Protocol) bool { return bay == drive || bay == SAS && drive == SATA }

// bring returns the drive to insert.
func (s *step) bring(c InsertDrive) (*Unit, error) {
	switch c.What {
	case InsertSame:
		for i, l := range slices.Backward(s.st.Shelf) {
			if l.Serial == c.Serial || c.Serial == "" && l.From == c.Drive {
				s.st.Shelf = slices.Delete(s.st.Shelf, i, i+1)
				return new(l.clone()), nil
			}
		}
		return nil, fmt.Errorf("%w: drive %s on the shelf", ErrNotFound, c.Serial)
	case InsertLoose:
		if c.Loose == nil || c.Loose.Model == nil || c.Loose.Serial == "" {
			return nil, against(FieldModel, "", Unknown)
		}
		for i := range s.controllers {
			if _, ok := s.seated(&s.controllers[i], c.Loose.Serial); ok {
				return nil, fmt.Errorf("%w: drive %s is in another bay", ErrState, c.Loose.Serial)
			}
		}
		return new(c.Loose.clone()), nil
	case InsertNew, InsertForeign:
		ctl, d := s.find(c.Drive)
		s.st.Made++
		u := &Unit{Model: c.Model}
		u.Serial, u.WWN = driveIdentity(ctl.Serial, s.st.Made)
		if c.What == InsertForeign {
			m := c.Model
			if m == nil {
				m = d.Model
			}
			u.Config = s.stranger(ctl, u.Serial, m)
		}
		return u, nil
	}
	return nil, fmt.Errorf("%w: insertion %q", ErrUnsupported, c.What)
}

// stranger returns the configuration of one half of another server's mirror.
func (s *step) stranger(c *Controller, serial string, m *Model) []Array {
	const strip = 64 << 10
	s.st.Made++
	twin, _ := driveIdentity(c.Serial, s.st.Made)
	part := m.Capacity / 10 * 9 // so that it fits any controller
	return []Array{{
		Name: "foreign", WWN: volumeWWN(c.Serial, s.st.Made), BlockSize: m.BlockSize, Version: 1,
		Geometry: Geometry{Type: RAID1, Strip: strip, Spans: 1, Width: 2}, Extent: Extent{Rows: part / strip},
		Members: []Member{{Serial: serial, State: Online}, {Serial: twin, State: Online}},
	}}
}

// DiscardDrive discards a drive on the shelf with its data.
type DiscardDrive struct{ Serial string }

func (c DiscardDrive) apply(s *step) error {
	i := slices.IndexFunc(s.st.Shelf, func(l Loose) bool { return l.Serial == c.Serial })
	if i < 0 {
		return fmt.Errorf("%w: drive %s on the shelf", ErrNotFound, c.Serial)
	}
	s.st.Shelf = slices.Delete(s.st.Shelf, i, i+1)
	return nil
}

// FailDrive makes a drive fail.
type FailDrive struct {
	Drive string // bay
}

func (c FailDrive) apply(s *step) error {
	u, _, err := s.drive(c.Drive)
	if err != nil || u.Failed {
		return err
	}
	u.Failed, u.Spare, u.For = true, "", nil
	s.noteDrive(event.DriveFailed, c.Drive)
	return nil
}

// ReviveDrive repairs a drive. A volume that continued without it rebuilds it.
type ReviveDrive struct {
	Drive string // bay
}

func (c ReviveDrive) apply(s *step) error {
	u, _, err := s.drive(c.Drive)
	if err != nil || !u.Failed {
		return err
	}
	u.Failed = false
	for i := range s.st.Arrays {
		if a := &s.st.Arrays[i]; a.Failed && a.index(u.Serial) >= 0 {
			u.Config = append(slices.Clip(u.Config), a.clone())
		}
	}
	u.New = true
	s.noteDrive(event.DriveRevived, c.Drive)
	return nil
}

// PredictFailure sets or clears a drive's failure prediction.
type PredictFailure struct {
	Drive     string // bay
	Predicted bool
}

func (c PredictFailure) apply(s *step) error {
	u, m, err := s.drive(c.Drive)
	if err != nil {
		return err
	}
	before := u.predicted(m)
	u.Predicted = c.Predicted
	s.prediction(c.Drive, before, u.predicted(m))
	return nil
}

// prediction reports a change of a drive's failure prediction.
func (s *step) prediction(bay string, before, after bool) {
	switch {
	case after && !before:
		s.noteDrive(event.DrivePredicted, bay)
	case before && !after:
		s.noteDrive(event.DriveUnpredicted, bay)
	}
}

// SetIndicator switches a drive's location indicator.
type SetIndicator struct {
	Drive string // bay
	On    bool
}

func (c SetIndicator) apply(s *step) error {
	b := s.mutableBay(c.Drive)
	if b == nil {
		return fmt.Errorf("%w: bay %s", ErrNotFound, c.Drive)
	}
	b.Locate = c.On
	return nil
}

// ResetDrive resets a drive that its controller does not use.
type ResetDrive struct {
	Drive string // bay
	Power bool   // a power cycle, which the drive counts
}

func (c ResetDrive) apply(s *step) error {
	if err := s.powered(); err != nil {
		return err
	}
	u, m, err := s.drive(c.Drive)
	if err != nil {
		return err
	}
	switch use := s.st.use(u); {
	case use == DriveErasing:
		return fmt.Errorf("%w: drive %s erases itself", ErrBusy, c.Drive)
	case use != DriveUnused:
		return fmt.Errorf("%w: drive %s is %s", ErrState, c.Drive, use)
	case !m.Resets():
		return fmt.Errorf("%w: drive %s is not reset by itself", ErrUnsupported, c.Drive)
	}
	if c.Power {
		u.set(PowerCycles, u.reading(PowerCycles)+1)
	}
	return nil
}

// Resets reports whether drives of a model can be reset: NVMe drives are PCIe
// devices, others share their controller's links.
func (m *Model) Resets() bool { return m.Protocol == NVMe }

// SecureErase sanitizes a drive, including a foreign configuration. The
// controller must not use it.
type SecureErase struct {
	Drive  string // bay
	Way    Sanitize
	Passes int // overwriting passes; 0: one
	Task   string
}

// MaxPasses is the maximum number of overwriting passes.
const MaxPasses = 16

// cryptoBytes stands for the duration of deleting a key or erasing blocks.
const cryptoBytes = 5 * defaultRate

func (c SecureErase) apply(s *step) error {
	if err := s.powered(); err != nil {
		return err
	}
	u, m, err := s.drive(c.Drive)
	if err != nil {
		return err
	}
	way := c.Way
	if way == "" {
		way = m.Sanitizes()[0]
	}
	switch use := s.st.use(u); {
	case !slices.Contains(m.Sanitizes(), way):
		return against(FieldMethod, way, Unsupported)
	case c.Passes < 0 || c.Passes > MaxPasses:
		return against(FieldRate, c.Passes, TooLarge, MaxPasses)
	case use == DriveErasing:
		return fmt.Errorf("%w: drive %s erases itself", ErrBusy, c.Drive)
	case use != DriveUnused && use != DriveForeign:
		return fmt.Errorf("%w: drive %s is %s", ErrState, c.Drive, use)
	}
	s.disown(u)
	ctl, _ := s.find(c.Drive)
	bytes := m.Capacity
	if way == Overwrite {
		bytes *= int64(max(1, c.Passes))
	} else {
		bytes = min(bytes, cryptoBytes)
	}
	s.work(Work{Kind: WorkErase, Drive: u.Serial, Size: m.Capacity})
	s.begin(Op{Kind: OpErase, Task: c.Task, On: u.Serial}, s.takes(ctl, OpErase, bytes))
	return nil
}

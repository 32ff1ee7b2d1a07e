package storage

import (
	"errors"
	"fmt"
	"time"
)

// WorkKind is a kind of work on bytes.
type WorkKind string

// The kinds of work.
const (
	WorkSync    WorkKind = "sync"    // recompute parity
	WorkZero    WorkKind = "zero"    // zero a volume
	WorkWipe    WorkKind = "wipe"    // zero the ends of a volume
	WorkCheck   WorkKind = "check"   // recompute parity, and count the differences
	WorkRebuild WorkKind = "rebuild" // rewrite a drive
	WorkGrow    WorkKind = "grow"    // zero what is added to a volume
	WorkSave    WorkKind = "save"    // copy a volume to a safe place
	WorkWrite   WorkKind = "write"   // write it back in a new layout
	WorkErase   WorkKind = "erase"   // zero a drive
)

// Work is an event that asks for work on bytes: the holder of the bytes does it
// before the state that comes with the event is stored. Repeating it is
// harmless as long as the stored state is the previous one.
type Work struct {
	At    time.Time
	Kind  WorkKind
	Array Array  // before the change
	Index int    // index of the member to rebuild
	To    Array  // the result of an expansion
	Place int    // number of the safe place
	Drive string // serial number of the drive to erase
	Size  int64  // its capacity
}

// Time implements Event.
func (w Work) Time() time.Time { return w.At }

func (s *step) work(w Work) {
	w.At = s.now
	s.evs = append(s.evs, w)
}

// Media gives access to the bytes that work is done on.
type Media interface {
	// Drive returns the content of a drive by serial number.
	Drive(serial string) (Medium, error)
	// Safe returns a place for size bytes that is kept until Work.Over, by a
	// name that is unique to the volume and expansion.
	Safe(name string, size int64) (Medium, error)
}

// Safe returns the name of an expansion's safe place; "" for other work.
func (w *Work) Safe() string {
	if w.Kind != WorkSave && w.Kind != WorkWrite {
		return ""
	}
	return safe(w.Array.WWN, w.Place)
}

func safe(wwn string, place int) string { return fmt.Sprintf("%s-%d", wwn, place) }

// wiped is how much of each end of a volume a fast initialization zeroes: where
// partition tables are.
const wiped = 8 << 20

// Do does the work. For a check, wrong is the number of repaired rows.
func (w *Work) Do(m Media) (wrong int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("storage: %s of %s%s: %w", w.Kind, w.Array.WWN, w.Drive, err)
		}
	}()
	if w.Kind == WorkErase {
		d, err := m.Drive(w.Drive)
		if err != nil {
			return 0, err
		}
		return 0, errors.Join(d.Discard(0, w.Size), flush(d))
	}
	array := w.Array
	if w.Kind == WorkGrow || w.Kind == WorkWrite {
		array = w.To
	}
	v, err := array.Open(m.Drive)
	if err != nil {
		return 0, err
	}
	if w.Kind == WorkCheck || w.Kind == WorkSync {
		wrong, err = v.Check()
	} else {
		err = w.change(m, v)
	}
	return wrong, errors.Join(err, flush(v))
}

// change does work other than a check.
func (w *Work) change(m Media, v *Volume) error {
	switch w.Kind {
	case WorkZero:
		return v.Discard(0, v.Size())
	case WorkWipe:
		n := min(wiped, v.Size())
		return errors.Join(v.Discard(0, n), v.Discard(v.Size()-n, n))
	case WorkRebuild:
		target, err := m.Drive(w.Array.Members[w.Index].Serial)
		if err != nil {
			return err
		}
		return errors.Join(v.Rebuild(w.Index, target), flush(target))
	case WorkGrow:
		old := w.Array.Size()
		return v.Discard(old, v.Size()-old)
	case WorkSave, WorkWrite:
		return w.move(m, v)
	}
	return ErrUnsupported
}

// complete marks a complete safe place, after the data.
var complete = []byte("complete")

// move copies a volume to its safe place, or back.
func (w *Work) move(m Media, v *Volume) error {
	size := w.Array.Size()
	safe, err := m.Safe(w.Safe(), size+int64(len(complete)))
	if err != nil {
		return err
	}
	mark := make([]byte, len(complete))
	if err := read(safe, mark, size); err != nil {
		return err
	}
	full := string(mark) == string(complete)
	if w.Kind == WorkWrite {
		if !full {
			return errors.New("the data was not saved")
		}
		if err := v.Discard(0, v.Size()); err != nil {
			return err
		}
		return Copy(v, safe, size)
	}
	if full {
		return nil
	}
	if err := Copy(safe, v, size); err != nil {
		return err
	}
	if err := flush(safe); err != nil {
		return err
	}
	_, err = safe.WriteAt(complete, size)
	return errors.Join(err, flush(safe))
}

// flush makes everything written durable, where the Medium can.
func flush(m Medium) error {
	if s, ok := m.(interface{ Sync() error }); ok {
		return s.Sync()
	}
	return nil
}

// Open assembles the array's drives that are online.
func (a *Array) Open(drive func(serial string) (Medium, error)) (*Volume, error) {
	members := make([]Medium, len(a.Members))
	for i, m := range a.Members {
		if m.State != Online {
			continue
		}
		d, err := drive(m.Serial)
		if err != nil {
			return nil, err
		}
		members[i] = d
	}
	return NewVolume(a.Geometry, a.Extent, members)
}

package storage

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// defaultShare is the default share of a controller's speed for work, in
// percent.
const defaultShare = 30

// settings returns a controller's settings, with defaults.
func (st *State) settings(controller string) Settings {
	out := Settings{Controller: controller}
	if st != nil {
		if i := slices.IndexFunc(st.Controllers, func(c Settings) bool { return c.Controller == controller }); i >= 0 {
			out = st.Controllers[i]
		}
	}
	for _, share := range []*int{&out.Rebuild, &out.Check, &out.Transform} {
		if *share == 0 {
			*share = defaultShare
		}
	}
	return out
}

// set returns a controller's settings for this step to change.
func (s *step) set(controller string) *Settings {
	i, found := slices.BinarySearchFunc(s.st.Controllers, controller, func(c Settings, id string) int {
		return s.place(c.Controller) - s.place(id)
	})
	if !found {
		s.st.Controllers = slices.Insert(s.st.Controllers, i, Settings{Controller: controller})
	}
	return &s.st.Controllers[i]
}

func (s *Subsystem) place(controller string) int {
	return slices.IndexFunc(s.controllers, func(c Controller) bool { return c.ID == controller })
}

// takes returns the duration of work through that many bytes of each drive.
func (s *step) takes(c *Controller, kind OpKind, bytes int64) time.Duration {
	share := s.st.settings(c.ID)
	how := map[OpKind]struct {
		rate    int64
		percent int
	}{
		OpRebuild:    {c.Rates.Rebuild, share.Rebuild},
		OpCheck:      {c.Rates.Check, share.Check},
		OpInitialize: {c.Rates.Initialize, share.Transform},
		OpExpand:     {c.Rates.Expand, share.Transform},
		OpErase:      {c.Rates.Erase, 100}, // done by the drive itself
	}[kind]
	if how.rate == 0 {
		how.rate = defaultRate
	}
	seconds := float64(bytes) / (float64(how.rate) * float64(how.percent) / 100)
	return max(time.Second, time.Duration(seconds*float64(time.Second)).Round(time.Second))
}

// begin adds work, which runs while the power is on.
func (s *step) begin(o Op, duration time.Duration) {
	o.Duration, o.Left = duration, duration
	if s.on {
		s.start(&o, duration)
	}
	s.st.Ops = append(s.st.Ops, o)
}

// start resumes work with that much time left.
func (s *step) start(o *Op, left time.Duration) {
	o.Until, o.Left = s.now.Add(left), 0
	if o.Task != "" {
		s.evs = append(s.evs, event.TaskRunning{At: s.now, Task: o.Task, Until: o.Until})
	}
}

// busy reports whether work of certain kinds, or of any when none is given, is
// in progress on a volume.
func (s *step) busy(a *Array, kinds ...OpKind) bool {
	return slices.ContainsFunc(s.st.Ops, func(o Op) bool {
		on := o.On == a.WWN || o.Kind == OpRebuild && a.index(o.On) >= 0
		return on && (len(kinds) == 0 || slices.Contains(kinds, o.Kind))
	})
}

// finish ends the first work whose time has come.
func (s *step) finish() {
	i := slices.IndexFunc(s.st.Ops, func(o Op) bool { return !o.Until.IsZero() && !s.now.Before(o.Until) })
	o := s.st.Ops[i]
	s.st.Ops = slices.Delete(s.st.Ops, i, i+1)
	ends[o.Kind](s, o)
}

// ends holds the function that ends each kind of work.
var ends = map[OpKind]func(s *step, o Op){
	OpRebuild:    (*step).rebuilt,
	OpInitialize: (*step).initialized,
	OpCheck:      (*step).checked,
	OpExpand:     (*step).expanded,
	OpErase:      (*step).erased,
}

func (s *step) rebuilt(o Op) {
	bay := ""
	for i := range s.st.Arrays {
		a := &s.st.Arrays[i]
		j := a.index(o.On)
		if j < 0 || a.Members[j].State != Rebuilding {
			continue
		}
		s.work(Work{Kind: WorkRebuild, Array: a.clone(), Index: j})
		a.Members[j].State = Online
		a.Version++
		if bay == "" {
			bay = a.Members[j].Bay
			s.noteDrive(event.RebuildFinished, bay)
		}
		if a.optimal() {
			s.noteVolume(event.VolumeOptimal, a)
		}
	}
}

// object returns the volume of some work.
func (s *step) object(o Op) *Array {
	return &s.st.Arrays[slices.IndexFunc(s.st.Arrays, func(a Array) bool { return a.WWN == o.On })]
}

func (s *step) initialized(o Op) {
	a := s.object(o)
	s.noteVolume(event.VolumeInitialized, a)
	if o.Made {
		s.made(o.Task, a)
		return
	}
	s.done(o.Task, "")
}

func (s *step) checked(o Op) {
	a := s.object(o)
	s.work(Work{Kind: WorkCheck, Array: a.clone()})
	s.noteVolume(event.VolumeChecked, a)
	s.done(o.Task, "")
}

// settleTime is how long a volume whose data was saved waits before it is
// written back. The state in between is stored.
const settleTime = time.Second

func (s *step) expanded(o Op) {
	a := s.object(o)
	to := o.To.clone()
	for j := range to.Members { // what became of its drives meanwhile
		if i := a.index(to.Members[j].Serial); i >= 0 {
			to.Members[j] = a.Members[i]
		}
	}
	switch {
	case !to.survives(-1):
		s.done(o.Task, "too many drives of the volume were lost")
		return
	case to.Geometry == a.Geometry && to.Offset == a.Offset:
		s.work(Work{Kind: WorkGrow, Array: a.clone(), To: to})
	case !o.Saved:
		s.work(Work{Kind: WorkSave, Array: a.clone(), To: to, Place: o.Place})
		o.Saved, o.Duration, o.Until = true, settleTime, s.now.Add(settleTime)
		s.st.Ops = append(s.st.Ops, o)
		return
	default:
		s.work(Work{Kind: WorkWrite, Array: a.clone(), To: to, Place: o.Place})
	}
	// Properties that were set meanwhile stay.
	to.Name, to.Write, to.Read = a.Name, a.Write, a.Read
	to.Version = a.Version + 1
	*a = to
	s.noteVolume(event.VolumeExpanded, a)
	s.done(o.Task, "")
}

func (s *step) erased(o Op) {
	for i := range s.controllers {
		if x, ok := s.seated(&s.controllers[i], o.On); ok {
			s.noteDrive(event.DriveErased, x.bay.ID)
		}
	}
	s.done(o.Task, "")
}

// CancelTask cancels the work of a task. An expansion or an erasure cannot be
// cancelled.
type CancelTask struct{ Task string }

func (c CancelTask) apply(s *step) error {
	if s.unpend(c.Task) {
		s.evs = append(s.evs, event.TaskDone{At: s.now, Task: c.Task, Cancelled: true})
		return nil
	}
	i := slices.IndexFunc(s.st.Ops, func(o Op) bool { return o.Task == c.Task && c.Task != "" })
	switch {
	case i < 0:
		return fmt.Errorf("%w: task %s", ErrNotFound, c.Task)
	case s.st.Ops[i].Kind == OpExpand || s.st.Ops[i].Kind == OpErase:
		return fmt.Errorf("%w: %s must go on to its end", ErrState, s.st.Ops[i].Kind)
	}
	s.st.Ops = slices.Delete(s.st.Ops, i, i+1)
	s.evs = append(s.evs, event.TaskDone{At: s.now, Task: c.Task, Cancelled: true})
	return nil
}

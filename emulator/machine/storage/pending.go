package storage

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Pending is a command that waits for its time, or for the next start of the
// server. One of its pointers is set.
type Pending struct {
	Task       string            `json:"job"`
	Due        time.Time         `json:"due,omitzero"` // zero: at the next start
	Create     *CreateVolume     `json:"create,omitempty"`
	Delete     *DeleteVolume     `json:"delete,omitempty"`
	Initialize *InitializeVolume `json:"initialize,omitempty"`
	Check      *CheckConsistency `json:"check,omitempty"`
	Expand     *ExpandVolume     `json:"expand,omitempty"`
	Reset      *ResetController  `json:"reset,omitempty"`
	Erase      *SecureErase      `json:"erase,omitempty"`
}

// maxPending bounds how many commands wait.
const maxPending = 128

// pend makes a Pending of a command; false when it is none that can wait.
func pend(job string, c Command) (Pending, bool) {
	p := Pending{Task: job}
	switch c := c.(type) {
	case CreateVolume:
		p.Create = &c
	case DeleteVolume:
		p.Delete = &c
	case InitializeVolume:
		p.Initialize = &c
	case CheckConsistency:
		p.Check = &c
	case ExpandVolume:
		p.Expand = &c
	case ResetController:
		p.Reset = &c
	case SecureErase:
		p.Erase = &c
	default:
		return p, false
	}
	return p, true
}

// command is what waits; nil if this release does not know it.
func (p *Pending) command() Command {
	switch {
	case p.Create != nil:
		return *p.Create
	case p.Delete != nil:
		return *p.Delete
	case p.Initialize != nil:
		return *p.Initialize
	case p.Check != nil:
		return *p.Check
	case p.Expand != nil:
		return *p.Expand
	case p.Reset != nil:
		return *p.Reset
	case p.Erase != nil:
		return *p.Erase
	}
	return nil
}

// OnReset lets a command wait until the server starts next. It is refused at
// once if it could not be carried out after those that wait already, as things
// are.
type OnReset struct {
	Command
	Task string // of the command
}

func (c OnReset) apply(s *step) error {
	if err := s.wait(c.Command, c.Task, time.Time{}); err != nil {
		return err
	}
	s.evs = append(s.evs, event.TaskWaiting{At: s.now, Task: c.Task})
	return nil
}

// Soon lets a command to a controller take as long as the controller takes over
// its jobs, one after the other. It is refused as OnReset would.
type Soon struct {
	Controller string
	Command
	Task string // of the command
}

func (c Soon) apply(s *step) error {
	ctl, err := s.raid(c.Controller)
	if err != nil {
		return err
	}
	from := s.now
	for _, p := range s.st.Pending {
		if p.Due.After(from) {
			from = p.Due
		}
	}
	due := from.Add(time.Duration(ctl.RAID.JobSeconds) * time.Second)
	if err := s.wait(c.Command, c.Task, due); err != nil {
		return err
	}
	s.evs = append(s.evs, event.TaskRunning{At: s.now, Task: c.Task, Until: due})
	return nil
}

// wait puts a command behind those that wait.
func (s *step) wait(c Command, job string, due time.Time) error {
	p, ok := pend(job, c)
	switch {
	case !ok || job == "":
		return fmt.Errorf("%w: %T cannot wait", ErrUnsupported, c)
	case len(s.st.Pending) >= maxPending:
		return fmt.Errorf("%w: %d commands wait", ErrBusy, maxPending)
	}
	if err := s.rehearse(c); err != nil {
		return err
	}
	p.Due = due
	s.st.Pending = append(s.st.Pending, p)
	return nil
}

// rehearse says how a command would end.
func (s *step) rehearse(c Command) error {
	own := *s.Subsystem
	own.on = true
	try := &step{Subsystem: &own, now: s.now, st: s.st.clone()}
	for i := range s.st.Pending {
		next := &step{Subsystem: &own, now: s.now, st: try.st.clone()}
		if before := s.st.Pending[i].command(); before != nil && before.apply(next) == nil {
			try = next
		}
	}
	return c.apply(try)
}

// Boot carries out what waits for the server to start, in the order in which it
// came.
func (s *Subsystem) Boot(now time.Time) []event.Event {
	evs := s.Advance(now)
	if s.st == nil || len(s.st.Pending) == 0 {
		return evs
	}
	wait := s.st.Pending
	d := s.fork(now)
	d.st.Pending = nil
	evs = append(evs, d.settled()...)
	for i := range wait {
		evs = append(evs, s.carry(now, &wait[i])...)
	}
	return evs
}

// carry carries out what has waited.
func (s *Subsystem) carry(now time.Time, p *Pending) []event.Event {
	c := p.command()
	if c == nil {
		return []event.Event{event.TaskDone{At: now, Task: p.Task, Fault: "it is not known any more"}}
	}
	d := s.fork(now)
	if err := c.apply(d); err != nil {
		return []event.Event{event.TaskDone{At: now, Task: p.Task, Fault: err.Error()}}
	}
	return d.settled()
}

// carryDue carries out the first command whose time has come; false when there
// is none.
func (s *Subsystem) carryDue(now time.Time) ([]event.Event, bool) {
	i := slices.IndexFunc(s.st.Pending, func(p Pending) bool { return !p.Due.IsZero() && !now.Before(p.Due) })
	if i < 0 {
		return nil, false
	}
	p := s.st.Pending[i]
	d := s.fork(now)
	d.st.Pending = slices.Delete(slices.Clone(d.st.Pending), i, i+1)
	return append(d.settled(), s.carry(now, &p)...), true
}

// putOff lets what would be done soon wait for the next start: the power is
// gone.
func (s *step) putOff() {
	for i := range s.st.Pending {
		if p := &s.st.Pending[i]; !p.Due.IsZero() {
			p.Due = time.Time{}
			s.evs = append(s.evs, event.TaskWaiting{At: s.now, Task: p.Task})
		}
	}
}

// unpend takes a command off the list of those that wait; false when it is
// none.
func (s *step) unpend(job string) bool {
	i := slices.IndexFunc(s.st.Pending, func(p Pending) bool { return p.Task == job && job != "" })
	if i < 0 {
		return false
	}
	s.st.Pending = slices.Delete(slices.Clone(s.st.Pending), i, i+1)
	return true
}

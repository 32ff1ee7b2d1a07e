package storage

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Pending is a command that waits for a time, or for the next start of the
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

// maxPending is the maximum number of waiting commands.
const maxPending = 128

// pend returns a Pending for a command; false when it cannot wait.
func pend(task string, c Command) (Pending, bool) {
	p := Pending{Task: task}
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

// command returns the waiting command; nil when this release does not know it.
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

// OnReset applies a command at the server's next start. It is refused at once
// when it would fail after those that already wait.
type OnReset struct {
	Command
	Task string // ID of the command's task
}

func (c OnReset) apply(s *step) error {
	if err := s.wait(c.Command, c.Task, time.Time{}); err != nil {
		return err
	}
	s.evs = append(s.evs, event.TaskWaiting{At: s.now, Task: c.Task})
	return nil
}

// Soon applies a command to a controller after the time that the controller
// takes for its jobs, one after the other. It is refused like OnReset.
type Soon struct {
	Controller string
	Command
	Task string // ID of the command's task
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

// wait appends a command to those that wait.
func (s *step) wait(c Command, task string, due time.Time) error {
	p, ok := pend(task, c)
	switch {
	case !ok || task == "":
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

// rehearse returns the error that a command would have.
func (s *step) rehearse(c Command) error {
	trial := *s.Subsystem
	trial.on = true
	try := &step{Subsystem: &trial, now: s.now, st: s.st.clone()}
	for i := range s.st.Pending {
		next := &step{Subsystem: &trial, now: s.now, st: try.st.clone()}
		if before := s.st.Pending[i].command(); before != nil && before.apply(next) == nil {
			try = next
		}
	}
	return c.apply(try)
}

// Boot applies the commands that wait for a start, in order.
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

// carry applies a command that has waited.
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

// carryDue applies the first command that is due; false when there is none.
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

// putOff makes commands with a time wait for the next start instead, because
// power was lost.
func (s *step) putOff() {
	for i := range s.st.Pending {
		if p := &s.st.Pending[i]; !p.Due.IsZero() {
			p.Due = time.Time{}
			s.evs = append(s.evs, event.TaskWaiting{At: s.now, Task: p.Task})
		}
	}
}

// unpend removes a waiting command; false when there is none.
func (s *step) unpend(task string) bool {
	i := slices.IndexFunc(s.st.Pending, func(p Pending) bool { return p.Task == task && task != "" })
	if i < 0 {
		return false
	}
	s.st.Pending = slices.Delete(slices.Clone(s.st.Pending), i, i+1)
	return true
}

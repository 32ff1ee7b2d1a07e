package storage

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Pending is a command that waits for the next start of the server. One of its
// pointers is set.
type Pending struct {
	Job        string            `json:"job"`
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
	p := Pending{Job: job}
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
	Job string // of the command
}

func (c OnReset) apply(s *step) error {
	p, ok := pend(c.Job, c.Command)
	switch {
	case !ok || c.Job == "":
		return fmt.Errorf("%w: %T cannot wait", ErrUnsupported, c.Command)
	case len(s.st.Pending) >= maxPending:
		return fmt.Errorf("%w: %d commands wait", ErrBusy, maxPending)
	}
	if err := s.rehearse(c.Command); err != nil {
		return err
	}
	s.st.Pending = append(s.st.Pending, p)
	s.evs = append(s.evs, event.Waiting{At: s.now, Job: c.Job})
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
		c := wait[i].command()
		if c == nil {
			evs = append(evs, event.Done{At: now, Job: wait[i].Job, Fault: "it is not known any more"})
			continue
		}
		more, err := s.Apply(now, c)
		evs = append(evs, more...)
		if err != nil {
			evs = append(evs, event.Done{At: now, Job: wait[i].Job, Fault: err.Error()})
		}
	}
	return evs
}

// unpend takes a command off the list of those that wait; false when it is
// none.
func (s *step) unpend(job string) bool {
	i := slices.IndexFunc(s.st.Pending, func(p Pending) bool { return p.Job == job && job != "" })
	if i < 0 {
		return false
	}
	s.st.Pending = slices.Delete(slices.Clone(s.st.Pending), i, i+1)
	return true
}

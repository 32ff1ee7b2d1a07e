package bmc

import (
	"time"
)

// PEF is how far the BMC, and software, have seen to what the log tells,
// and how long the BMC leaves it to software. What it acts on is in the
// parameters (Channel.Written), which it does not understand.
type PEF struct {
	ProcessedBySoftware uint64         `json:"seen,omitempty"`  // ID of the entry up to which software has seen to all
	ProcessedByBMC      *ProcessedMark `json:"acted,omitempty"` // up to which the BMC has, as somebody said; nil: to all that do not wait

	PostponeFor    time.Duration `json:"wait,omitempty"`  // that software has before the BMC acts; 0: it acts at once
	Off            bool          `json:"off,omitempty"`   // it acts on nothing until a reset
	FirstPostponed uint64        `json:"first,omitempty"` // ID of the first entry that waits
	Until          time.Time     `json:"until,omitzero"`  // for software; zero: nothing waits
}

// ProcessedMark is an entry, as somebody said when the log would have gone on with Next.
type ProcessedMark struct {
	Entry uint64 `json:"entry"`
	Next  uint64 `json:"next"`
}

// forkAlerting is a copy that a step may write and put in place.
func (b *BMC) forkAlerting() *PEF {
	if b.st.PEF == nil {
		return new(PEF)
	}
	return new(*b.st.PEF)
}

// ArmPostponeTimer gives software so long before the BMC acts on an event; 0 none.
type ArmPostponeTimer struct {
	For time.Duration
	Off bool // it does not act at all, until a reset
}

func (c ArmPostponeTimer) apply(b *BMC, now time.Time) ([]Event, error) {
	a := b.forkAlerting()
	waited := a.FirstPostponed
	if a.Until.IsZero() && !a.Off {
		waited = 0
	}
	a.PostponeFor, a.Off, a.Until = c.For, c.Off, time.Time{}
	if last, ok := b.st.Log.Last(); ok && c.For > 0 && last.ID != a.ProcessedBySoftware {
		a.Until = now.Add(c.For)
		if waited == 0 {
			waited = last.ID + 1 // on those before it has acted
		}
	}
	a.FirstPostponed = waited
	b.st.PEF = a
	if waited > 0 && c.For == 0 && !c.Off {
		return b.unattended(now), nil
	}
	return nil, nil
}

// SetLastProcessedEvent says up to which entry software has seen to all, or, for tests, the
// BMC itself.
type SetLastProcessedEvent struct {
	Entry uint64 // 0: none
	BMC   bool
}

func (c SetLastProcessedEvent) apply(b *BMC, now time.Time) ([]Event, error) {
	a := b.forkAlerting()
	if c.BMC {
		a.ProcessedByBMC = &ProcessedMark{Entry: c.Entry, Next: 1}
		if b.st.Log != nil {
			a.ProcessedByBMC.Next = b.st.Log.Next
		}
		b.st.PEF = a
		return nil, nil
	}
	a.ProcessedBySoftware = c.Entry
	if last, ok := b.st.Log.Last(); !ok || last.ID <= c.Entry {
		a.Until, a.FirstPostponed = time.Time{}, 0
	} else if !a.Until.IsZero() {
		a.Until, a.FirstPostponed = now.Add(a.PostponeFor), max(a.FirstPostponed, c.Entry+1)
	}
	b.st.PEF = a
	return nil, nil
}

// Postponed says whether an entry waits for software.
func (a *PEF) Postponed(entry uint64) bool {
	return a != nil && (a.Off || !a.Until.IsZero() && entry >= a.FirstPostponed)
}

// leave has software see to an entry that was written, if it is given the time.
func (b *BMC) leave(now time.Time, e *Entry) {
	switch a := b.st.PEF; {
	case a == nil || e.ID == 0:
	case a.PostponeFor > 0 && a.Until.IsZero():
		a = b.forkAlerting()
		a.Until, a.FirstPostponed = now.Add(a.PostponeFor), e.ID
		b.st.PEF = a
	}
}

// attend ends all waiting, as a reset of the machine or of the BMC does.
func (b *BMC) attend() {
	if a := b.st.PEF; a == nil || a.PostponeFor == 0 && !a.Off {
		return
	}
	a := b.forkAlerting()
	a.PostponeFor, a.Off, a.Until, a.FirstPostponed = 0, false, time.Time{}, 0
	b.st.PEF = a
}

// unattended is that the time is over which software had.
func (b *BMC) unattended(now time.Time) []Event {
	a := b.forkAlerting()
	ev := PostponeExpired{At: now, First: a.FirstPostponed}
	a.Until, a.FirstPostponed = time.Time{}, 0
	b.st.PEF = a
	return []Event{ev}
}

// awaitAlerts is what time has made due of it.
func (b *BMC) awaitAlerts(now time.Time) []Event {
	if a := b.st.PEF; a == nil || a.Until.IsZero() || now.Before(a.Until) {
		return nil
	}
	return b.unattended(b.st.PEF.Until)
}

// alertsDue is when that is; zero: never.
func (b *BMC) alertsDue() time.Time {
	if b.st.PEF == nil {
		return time.Time{}
	}
	return b.st.PEF.Until
}

// PostponeExpired tells that nobody has seen to the entries from one on, and that
// the BMC shall act on them.
type PostponeExpired struct {
	At    time.Time
	First uint64
}

// Time implements Event.
func (e PostponeExpired) Time() time.Time { return e.At }

package bmc

import (
	"time"
)

// PEF is the state of platform event filtering: which log entries software and
// the BMC have processed, and how long the BMC leaves new ones to software
// (IPMI v2.0 rev 1.1, §17, §30). The filters are in Channel.Parameters, which
// this package does not interpret.
type PEF struct {
	ProcessedBySoftware uint64         `json:"seen,omitempty"`  // last entry that software has processed
	ProcessedByBMC      *ProcessedMark `json:"acted,omitempty"` // last entry that the BMC has processed, as a client set it; nil: all but the postponed ones

	PostponeFor    time.Duration `json:"wait,omitempty"`  // postpone time for software; 0: the BMC acts at once
	Off            bool          `json:"off,omitempty"`   // PEF is off until a reset
	FirstPostponed uint64        `json:"first,omitempty"` // first postponed entry
	Until          time.Time     `json:"until,omitzero"`  // end of the postpone time; zero: nothing is postponed
}

// ProcessedMark is an entry that a client has declared processed, and Log.Next
// at that time.
type ProcessedMark struct {
	Entry uint64 `json:"entry"`
	Next  uint64 `json:"next"`
}

// forkAlerting returns a copy that a step may change, and stores it.
func (b *BMC) forkAlerting() *PEF {
	if b.st.PEF == nil {
		return new(PEF)
	}
	return new(*b.st.PEF)
}

// ArmPostponeTimer sets the PEF postpone time; 0 disables it.
type ArmPostponeTimer struct {
	For time.Duration
	Off bool // disables PEF until a reset
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
			waited = last.ID + 1 // the BMC has processed the entries before
		}
	}
	a.FirstPostponed = waited
	b.st.PEF = a
	if waited > 0 && c.For == 0 && !c.Off {
		return b.postponeExpired(now), nil
	}
	return nil, nil
}

// SetLastProcessedEvent sets the last entry that software has processed or, for
// tests, the BMC.
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

// Postponed reports whether an entry waits for software.
func (a *PEF) Postponed(entry uint64) bool {
	return a != nil && (a.Off || !a.Until.IsZero() && entry >= a.FirstPostponed)
}

// postpone leaves a new entry to software, when a postpone time is set.
func (b *BMC) postpone(now time.Time, e *Entry) {
	switch a := b.st.PEF; {
	case a == nil || e.ID == 0:
	case a.PostponeFor > 0 && a.Until.IsZero():
		a = b.forkAlerting()
		a.Until, a.FirstPostponed = now.Add(a.PostponeFor), e.ID
		b.st.PEF = a
	}
}

// endPostpone ends all postponing, as a reset of the machine or of the BMC
// does.
func (b *BMC) endPostpone() {
	if a := b.st.PEF; a == nil || a.PostponeFor == 0 && !a.Off {
		return
	}
	a := b.forkAlerting()
	a.PostponeFor, a.Off, a.Until, a.FirstPostponed = 0, false, time.Time{}, 0
	b.st.PEF = a
}

// postponeExpired handles the end of the postpone time.
func (b *BMC) postponeExpired(now time.Time) []Event {
	a := b.forkAlerting()
	ev := PostponeExpired{At: now, First: a.FirstPostponed}
	a.Until, a.FirstPostponed = time.Time{}, 0
	b.st.PEF = a
	return []Event{ev}
}

// advancePEF handles a postpone time that has passed.
func (b *BMC) advancePEF(now time.Time) []Event {
	if a := b.st.PEF; a == nil || a.Until.IsZero() || now.Before(a.Until) {
		return nil
	}
	return b.postponeExpired(b.st.PEF.Until)
}

// pefDue returns the end of the postpone time; zero: none.
func (b *BMC) pefDue() time.Time {
	if b.st.PEF == nil {
		return time.Time{}
	}
	return b.st.PEF.Until
}

// PostponeExpired reports that software has not processed the entries from
// First on, so that the BMC must act on them.
type PostponeExpired struct {
	At    time.Time
	First uint64
}

// Time implements Event.
func (e PostponeExpired) Time() time.Time { return e.At }

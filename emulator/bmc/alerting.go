package bmc

import (
	"time"
)

// Alerting is how far the BMC, and software, have seen to what the log tells,
// and how long the BMC leaves it to software. What it acts on is in the
// parameters (Channel.Written), which it does not understand.
type Alerting struct {
	Seen  uint64 `json:"seen,omitempty"`  // ID of the entry up to which software has seen to all
	Acted *Mark  `json:"acted,omitempty"` // up to which the BMC has, as somebody said; nil: to all that do not wait

	Wait  time.Duration `json:"wait,omitempty"`  // that software has before the BMC acts; 0: it acts at once
	Off   bool          `json:"off,omitempty"`   // it acts on nothing until a reset
	First uint64        `json:"first,omitempty"` // ID of the first entry that waits
	Until time.Time     `json:"until,omitzero"`  // for software; zero: nothing waits
}

// Mark is an entry, as somebody said when the log would have gone on with Next.
type Mark struct {
	Entry uint64 `json:"entry"`
	Next  uint64 `json:"next"`
}

// forkAlerting is a copy that a step may write and put in place.
func (b *BMC) forkAlerting() *Alerting {
	if b.st.Alerting == nil {
		return new(Alerting)
	}
	return new(*b.st.Alerting)
}

// Postpone gives software so long before the BMC acts on an event; 0 none.
type Postpone struct {
	For time.Duration
	Off bool // it does not act at all, until a reset
}

func (c Postpone) apply(b *BMC, now time.Time) ([]Event, error) {
	a := b.forkAlerting()
	waited := a.First
	if a.Until.IsZero() && !a.Off {
		waited = 0
	}
	a.Wait, a.Off, a.Until = c.For, c.Off, time.Time{}
	if last, ok := b.st.Log.Last(); ok && c.For > 0 && last.ID != a.Seen {
		a.Until = now.Add(c.For)
		if waited == 0 {
			waited = last.ID + 1 // on those before it has acted
		}
	}
	a.First = waited
	b.st.Alerting = a
	if waited > 0 && c.For == 0 && !c.Off {
		return b.unattended(now), nil
	}
	return nil, nil
}

// SeenTo says up to which entry software has seen to all, or, for tests, the
// BMC itself.
type SeenTo struct {
	Entry uint64 // 0: none
	BMC   bool
}

func (c SeenTo) apply(b *BMC, now time.Time) ([]Event, error) {
	a := b.forkAlerting()
	if c.BMC {
		a.Acted = &Mark{Entry: c.Entry, Next: 1}
		if b.st.Log != nil {
			a.Acted.Next = b.st.Log.Next
		}
		b.st.Alerting = a
		return nil, nil
	}
	a.Seen = c.Entry
	if last, ok := b.st.Log.Last(); !ok || last.ID <= c.Entry {
		a.Until, a.First = time.Time{}, 0
	} else if !a.Until.IsZero() {
		a.Until, a.First = now.Add(a.Wait), max(a.First, c.Entry+1)
	}
	b.st.Alerting = a
	return nil, nil
}

// Waits says whether an entry waits for software.
func (a *Alerting) Waits(entry uint64) bool {
	return a != nil && (a.Off || !a.Until.IsZero() && entry >= a.First)
}

// leave has software see to an entry that was written, if it is given the time.
func (b *BMC) leave(now time.Time, e *Entry) {
	switch a := b.st.Alerting; {
	case a == nil || e.ID == 0:
	case a.Wait > 0 && a.Until.IsZero():
		a = b.forkAlerting()
		a.Until, a.First = now.Add(a.Wait), e.ID
		b.st.Alerting = a
	}
}

// attend ends all waiting, as a reset of the machine or of the BMC does.
func (b *BMC) attend() {
	if a := b.st.Alerting; a == nil || a.Wait == 0 && !a.Off {
		return
	}
	a := b.forkAlerting()
	a.Wait, a.Off, a.Until, a.First = 0, false, time.Time{}, 0
	b.st.Alerting = a
}

// unattended is that the time is over which software had.
func (b *BMC) unattended(now time.Time) []Event {
	a := b.forkAlerting()
	ev := Unattended{At: now, First: a.First}
	a.Until, a.First = time.Time{}, 0
	b.st.Alerting = a
	return []Event{ev}
}

// awaitAlerts is what time has made due of it.
func (b *BMC) awaitAlerts(now time.Time) []Event {
	if a := b.st.Alerting; a == nil || a.Until.IsZero() || now.Before(a.Until) {
		return nil
	}
	return b.unattended(b.st.Alerting.Until)
}

// alertsDue is when that is; zero: never.
func (b *BMC) alertsDue() time.Time {
	if b.st.Alerting == nil {
		return time.Time{}
	}
	return b.st.Alerting.Until
}

// Unattended tells that nobody has seen to the entries from one on, and that
// the BMC shall act on them.
type Unattended struct {
	At    time.Time
	First uint64
}

// Time implements Event.
func (e Unattended) Time() time.Time { return e.At }

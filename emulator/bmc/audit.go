package bmc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Audit is the second log of a BMC: who came, what they asked for, and what
// became of accounts. Each entry is in one of two parts, of which only the
// newer is stored again when one is added.
type Audit struct{ Old, New *Log }

// All are the entries, oldest first.
func (a Audit) All() []Entry {
	if a.Old == nil {
		return a.New.All()
	}
	return slices.Concat(a.Old.All(), a.New.All())
}

const (
	auditNew = 32  // entries of the newer part, at most
	auditOld = 224 // of the older
	maxTold  = 256 // bytes of an address that a client asked for
)

// audit writes an entry.
func (b *BMC) audit(n event.Note) Event {
	l := &Log{Next: 1}
	if b.st.Audit != nil {
		l = new(*b.st.Audit)
	}
	if len(l.Entries) >= auditNew {
		old := l.Entries
		if b.st.AuditOld != nil {
			old = slices.Concat(b.st.AuditOld.Entries, old)
		}
		old = slices.Clone(old[max(0, len(old)-auditOld):])
		b.st.AuditOld, l.Entries = &Log{Next: l.Next, Entries: old}, nil
	}
	e := Entry{ID: l.Next, Note: n}
	l.Next++
	l.Entries = append(slices.Clip(l.Entries), e) // others may hold the slice
	b.st.Audit = l
	return Audited{At: n.At, Entry: e}
}

// tell writes what became of an account into the audit log.
func (b *BMC) tell(at time.Time, k event.Kind, account string, args ...string) Event {
	return b.audit(event.Note{At: at, Kind: k, Subject: event.Subject{Part: event.Account, ID: account}, Args: args})
}

// Act is something that a client asked for and that could change something. It
// holds no body: those can hold secrets.
type Act struct {
	Method, Target string // of HTTP; of another protocol its command and what that is about
	Status         int
	Account, User  string // ID and name; "" of nobody
	Session        string // ID; "" without one
	From           string // address of the client
}

// RecordAct writes an act into the audit log. The event Audited tells the
// entry's ID.
type RecordAct struct{ Act }

func (c RecordAct) apply(b *BMC, now time.Time) ([]Event, error) {
	target := c.Target
	if len(target) > maxTold {
		target = strings.ToValidUTF8(target[:maxTold], "") + "…"
	}
	return []Event{b.audit(event.Note{
		At: now, Kind: event.Asked, Subject: event.Subject{Part: event.Account, ID: c.Account},
		Args: []string{c.Method, target, strconv.Itoa(c.Status), c.User, c.Session, c.From},
	})}, nil
}

// AmendAct puts another status to an act that is recorded: it went otherwise
// than was to be expected.
type AmendAct struct {
	ID     uint64
	Status int
}

func (c AmendAct) apply(b *BMC, _ time.Time) ([]Event, error) {
	for _, part := range []**Log{&b.st.Audit, &b.st.AuditOld} {
		if *part == nil {
			continue
		}
		l := new(**part)
		i := slices.IndexFunc(l.Entries, func(e Entry) bool { return e.ID == c.ID && e.Kind == event.Asked })
		if i < 0 {
			continue
		}
		l.Entries = slices.Clone(l.Entries)
		e := &l.Entries[i]
		e.Args = slices.Clone(e.Args)
		e.Args[2] = strconv.Itoa(c.Status)
		*part = l
		return nil, nil
	}
	return nil, fmt.Errorf("%w: act %d", ErrNotFound, c.ID)
}

// Audited tells an entry of the audit log that was written.
type Audited struct {
	At    time.Time
	Entry Entry
}

// Time implements Event.
func (e Audited) Time() time.Time { return e.At }

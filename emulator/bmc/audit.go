package bmc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// maxTold bounds an address that a client asked for, in bytes.
const maxTold = 256

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
	if e, ok := b.st.Audit.Entry(c.ID); !ok || e.Kind != event.Asked {
		return nil, fmt.Errorf("%w: act %d", ErrNotFound, c.ID)
	}
	return b.amend(AuditLog, c.ID, func(e *Entry) *Entry {
		e.Args = slices.Clone(e.Args)
		e.Args[2] = strconv.Itoa(c.Status)
		return e
	})
}

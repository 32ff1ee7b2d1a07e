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

// AuditRecord is something that a client asked for and that could change something. It
// holds no body: those can hold secrets.
type AuditRecord struct {
	Method, Target string // of HTTP; of another protocol its command and what that is about
	Status         int
	Account, User  string // ID and name; "" of nobody
	Session        string // ID; "" without one
	From           string // address of the client
}

// AddAuditRecord writes an act into the audit log. The event Audited tells the
// entry's ID.
type AddAuditRecord struct{ AuditRecord }

func (c AddAuditRecord) apply(b *BMC, now time.Time) ([]Event, error) {
	target := c.Target
	if len(target) > maxTold {
		target = strings.ToValidUTF8(target[:maxTold], "") + "…"
	}
	return []Event{b.audit(event.Note{
		At: now, Kind: event.RequestAudited, Subject: event.Subject{Part: event.Account, ID: c.Account},
		Args: []string{c.Method, target, strconv.Itoa(c.Status), c.User, c.Session, c.From},
	})}, nil
}

// AmendAuditRecord puts another status to an act that is recorded: it went otherwise
// than was to be expected.
type AmendAuditRecord struct {
	ID     uint64
	Status int
}

func (c AmendAuditRecord) apply(b *BMC, _ time.Time) ([]Event, error) {
	if e, ok := b.st.Audit.Entry(c.ID); !ok || e.Kind != event.RequestAudited {
		return nil, fmt.Errorf("%w: act %d", ErrNotFound, c.ID)
	}
	return b.amend(AuditLog, c.ID, func(e *Entry) *Entry {
		e.Args = slices.Clone(e.Args)
		e.Args[2] = strconv.Itoa(c.Status)
		return e
	})
}

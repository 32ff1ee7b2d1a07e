package bmc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// maxTarget is the longest AuditRecord.Target in bytes.
const maxTarget = 256

// auditAccount writes an account's change into the audit log.
func (b *BMC) auditAccount(at time.Time, k event.Kind, account string, args ...string) Event {
	return b.audit(event.Note{At: at, Kind: k, Subject: event.Subject{Part: event.Account, ID: account}, Args: args})
}

// AuditRecord is a request that could change something. It has no body, which
// could hold secrets.
type AuditRecord struct {
	Method, Target string // HTTP method and request target; with another protocol the command and its subject
	Status         int
	Account, User  string // ID and name; "" when unauthenticated
	Session        string // ID; "" without one
	From           string // address of the client
}

// AddAuditRecord writes a record into the audit log. The event Audited reports
// the entry's ID.
type AddAuditRecord struct{ AuditRecord }

func (c AddAuditRecord) apply(b *BMC, now time.Time) ([]Event, error) {
	target := c.Target
	if len(target) > maxTarget {
		target = strings.ToValidUTF8(target[:maxTarget], "") + "…"
	}
	return []Event{b.audit(event.Note{
		At: now, Kind: event.RequestAudited, Subject: event.Subject{Part: event.Account, ID: c.Account},
		Args: []string{c.Method, target, strconv.Itoa(c.Status), c.User, c.Session, c.From},
	})}, nil
}

// AmendAuditRecord changes the status of a record whose request ended otherwise
// than expected.
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

// Package session implements the sessions of one BMC: the handshakes of IPMI
// 1.5 and 2.0, packet integrity and encryption, sequence windows, time-outs and
// limits. It is stepped: packets and time go in, message bodies and responses
// come out. It knows neither commands nor accounts, which an Authenticator
// provides, and has no socket, goroutine or clock. All its times are client times
// (see package clock): nothing in a session waits for the machine.
//
// Sections are those of IPMI v2.0 rev 1.1.
//
// RAKP Message 2 carries a code keyed with the user's password before the
// client has proved anything (§13.21): whoever knows a user name can guess
// passwords offline. The protocol is like that, which is one reason to listen
// on loopback only.
package session

import (
	"crypto/rand"
	"encoding/binary"
	"io"
	"iter"
	"net/netip"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/ipmi/wire"
)

// Authenticator is what sessions need to know from their BMC.
type Authenticator interface {
	// GUID returns the GUID of RAKP 2, in wire order.
	GUID() [16]byte
	// KG returns the BMC key, of 20 bytes; nil when there is none and the
	// user's key is used instead (§13.31).
	KG() []byte
	// Suites returns the supported cipher suites, preferred first.
	Suites() []Suite
	// AuthTypes returns the IPMI 1.5 authentication types for sessions up to a
	// privilege level, or for any when it is 0; an empty set means no IPMI 1.5
	// sessions.
	AuthTypes(up wire.Privilege) wire.AuthTypes
	// Limit returns the channel's privilege limit.
	Limit() wire.Privilege
	// User looks up a user by name alone, or by name and privilege level
	// (§13.20). A user that may not log in is not found.
	User(name string, role wire.Privilege, byName bool) (User, bool)
	// Admit counts a login attempt, proved or not. It may refuse a proved one.
	Admit(u User, proved bool, from netip.AddrPort) bool
}

// FaultyAuthenticator is the Authenticator of a BMC with faults.
type FaultyAuthenticator interface {
	Authenticator
	Faults() Faults
}

// Faults are a BMC's deviations from the standard in logins.
type Faults struct {
	OpenSessionRole bool // codes use the role of Open Session instead of RAKP 1's
	RAKP4Code       bool // RAKP 4 carries a code although the suite has none
	RAKP2ExtraByte  bool // an extra byte follows the code of RAKP 2
	// PaddedNames computes codes over names padded to 16 bytes, except RAKP
	// 3's, which is computed as if the lookup were by name and role; truncates
	// passwords for HMAC-MD5; computes RAKP 4 with the integrity algorithm; and
	// makes Open Session answer the requested role.
	PaddedNames bool
	// Of packets of IPMI 1.5:
	ZeroSessionID   bool // session ID 0
	SwappedSequence bool // sequence number most significant byte first
	WrongCode       bool // wrong AuthCode
}

func faults(r Authenticator) Faults {
	if f, ok := r.(FaultyAuthenticator); ok {
		return f.Faults()
	}
	return Faults{}
}

// Suite is a supported cipher suite (table 22-20).
type Suite struct {
	ID    byte
	Limit wire.Privilege // highest privilege level of sessions with it
}

// User is the owner of a session.
type User struct {
	ID           byte
	Account      string // as the Authenticator names it
	Name         string
	Password     string
	LongPassword bool // a password of more than 16 bytes, for IPMI 2.0 only (§22.30)
	Limit        wire.Privilege
}

// Defaults of Config.
const (
	DefaultOpen = 16
	// DefaultPending is more than DefaultOpen because many concurrent
	// handshakes evict each other (§6.12a).
	DefaultPending = 64
	DefaultIdle    = 60 * time.Second // §6.12.15
)

const (
	// MaxOpen is the number of session handles: FFh is reserved (§22.20).
	MaxOpen = 254
	// maxCount is the highest session count of Get Session Info, which has 6
	// bits.
	maxCount = 63
)

// Config sets the limits of a Table.
type Config struct {
	Open    int           // open sessions; 0: DefaultOpen; MaxOpen at most
	Pending int           // sessions in their handshake; 0: DefaultPending
	Idle    time.Duration // inactivity time-out; 0: DefaultIdle
	Rand    io.Reader     // source of session IDs, random numbers and challenges; nil: crypto/rand
}

// Table holds the sessions of a BMC. It is not safe for concurrent use.
type Table struct {
	c          Config
	open       []*Session        // by handle
	openIDs    []uint32          // IDs of open, in the same order
	everOpened uint32            // sessions ever opened
	pending    []*pendingSession // least recently used first
}

// New returns an empty table.
func New(c Config) *Table {
	if c.Open <= 0 {
		c.Open = DefaultOpen
	}
	c.Open = min(c.Open, MaxOpen)
	if c.Pending <= 0 {
		c.Pending = DefaultPending
	}
	if c.Idle <= 0 {
		c.Idle = DefaultIdle
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return &Table{c: c}
}

// Session is an open session. The exported fields are read-only, except for
// Privilege, which Set Session Privilege Level changes.
type Session struct {
	ID        uint32 // managed system session ID
	Console   uint32 // remote console session ID; equal to ID with IPMI 1.5
	Handle    byte
	Number    uint32 // counts the sessions of this BMC; unlike ID it is not random
	User      User
	Limit     wire.Privilege // highest value of Privilege
	Privilege wire.Privilege // 0 while the session is not open
	From      netip.AddrPort // source of the last packet
	Suite     byte           // cipher suite of an IPMI 2.0 session
	V15       bool
	Auth      wire.AuthType // authentication type of an IPMI 1.5 session
	Opened    time.Time
	LastUsed  time.Time

	keys          keys
	sequences     [2]uint32 // last outbound sequence number: unauthenticated, authenticated (§6.12.13)
	window        [2]window // inbound, likewise
	solProtection protection
	opening       *pendingSession // until the session's first packet
	history       responseHistory
}

// protection is how packets of a payload type are protected.
type protection struct{ authenticated, encrypted bool }

// Find returns the open session with an ID; nil when there is none.
func (t *Table) Find(id uint32) *Session {
	if i := slices.Index(t.openIDs, id); i >= 0 {
		return t.open[i]
	}
	return nil
}

// All yields the open sessions by handle.
func (t *Table) All() iter.Seq[*Session] { return slices.Values(t.open) }

// Max returns the maximum number of sessions, as Get Session Info reports it.
func (t *Table) Max() byte { return byte(min(t.c.Open, maxCount)) }

// Len returns the number of open sessions.
func (t *Table) Len() int { return len(t.open) }

// Close ends a session without notice to the client; false when there is none.
func (t *Table) Close(id uint32) bool {
	i := slices.Index(t.openIDs, id)
	if i < 0 {
		return false
	}
	t.open, t.openIDs = slices.Delete(t.open, i, i+1), slices.Delete(t.openIDs, i, i+1)
	t.shrink()
	return true
}

// Drop ends, without notice, the sessions that gone returns true for, and the
// pending ones of such users.
func (t *Table) Drop(gone func(*Session) bool) {
	t.end(gone)
	t.pending = slices.DeleteFunc(t.pending, func(h *pendingSession) bool { return h.session != nil && gone(h.session) })
	t.shrink()
}

// Reset ends all sessions, as a restart of the BMC does.
func (t *Table) Reset() { t.open, t.openIDs, t.pending = nil, nil, nil }

// Advance ends the sessions whose inactivity time-out has passed, and returns
// them.
func (t *Table) Advance(now time.Time) []*Session {
	old := func(used time.Time) bool { return now.Sub(used) >= t.c.Idle }
	ended := t.end(func(s *Session) bool { return old(s.LastUsed) })
	n := 0
	for n < len(t.pending) && old(t.pending[n].lastUsed) {
		n++
	}
	if n > 0 {
		t.pending = slices.Delete(t.pending, 0, n)
	}
	t.shrink()
	return ended
}

// Deadline returns when Advance next ends a session; false when there is none.
func (t *Table) Deadline() (at time.Time, ok bool) {
	for _, s := range t.open {
		if !ok || s.LastUsed.Before(at) {
			at, ok = s.LastUsed, true
		}
	}
	if len(t.pending) > 0 && (!ok || t.pending[0].lastUsed.Before(at)) {
		at, ok = t.pending[0].lastUsed, true
	}
	return at.Add(t.c.Idle), ok
}

// end removes sessions and returns them.
func (t *Table) end(gone func(*Session) bool) (ended []*Session) {
	stays := 0
	for i, s := range t.open {
		if gone(s) {
			ended = append(ended, s)
			continue
		}
		t.open[stays], t.openIDs[stays] = s, t.openIDs[i]
		stays++
	}
	clear(t.open[stays:])
	t.open, t.openIDs = t.open[:stays], t.openIDs[:stays]
	return ended
}

// shrink frees memory that is no longer used.
func (t *Table) shrink() {
	if len(t.open) == 0 {
		t.open, t.openIDs = nil, nil
	}
	if len(t.pending) == 0 {
		t.pending = nil
	}
}

// admit adds a session to the open ones, with the lowest free handle (1 and up,
// §22.20).
func (t *Table) admit(now time.Time, s *Session) {
	i := 0
	for i < len(t.open) && t.open[i].Handle == byte(i+1) {
		i++
	}
	t.everOpened++
	s.Handle, s.Number, s.Opened, s.LastUsed = byte(i+1), t.everOpened, now, now
	s.Privilege = min(s.Limit, wire.User) // §6.12.16
	t.open, t.openIDs = slices.Insert(t.open, i, s), slices.Insert(t.openIDs, i, s.ID)
}

func (t *Table) full() bool { return len(t.open) >= t.c.Open }

// fullFor is full, without counting sessions that the same client has
// abandoned.
func (t *Table) fullFor(from netip.AddrPort, console uint32) bool {
	return t.full() && !slices.ContainsFunc(t.open, func(s *Session) bool { return s.abandoned(from, console) })
}

// abandoned reports whether a client has given up a session that it never used
// by opening another with the same console ID. ipmitool starts over when the
// response to RAKP 3 is lost, and would use up all sessions on a bad network.
func (s *Session) abandoned(from netip.AddrPort, console uint32) bool {
	return s.opening != nil && !s.V15 && s.Console == console && s.opening.from == from
}

// newID returns an unused session ID; false when the source of random numbers
// fails.
func (t *Table) newID() (uint32, bool) {
	const tries = 8
	for range tries {
		var b [4]byte
		if _, err := io.ReadFull(t.c.Rand, b[:]); err != nil {
			return 0, false
		}
		id := binary.LittleEndian.Uint32(b[:])
		taken := slices.ContainsFunc(t.pending, func(h *pendingSession) bool { return h.id == id })
		if id != 0 && !taken && t.Find(id) == nil {
			return id, true
		}
	}
	return 0, false
}

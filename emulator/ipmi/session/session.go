// Package session is the sessions of one BMC: the handshakes of IPMI 1.5 and
// 2.0, integrity and encryption of packets, their sequence windows, time-outs
// and limits. It is stepped: packets and time go in, bodies and answers come
// out. It knows neither commands nor accounts, which a Realm stands for, and
// has no socket, goroutine or clock.
//
// Sections are those of IPMI v2.0 rev 1.1.
//
// RAKP Message 2 carries a code that is keyed by the user's password, before
// the client has proved anything (§13.21): whoever knows a user's name can try
// passwords on it at leisure. That is the protocol, and so listens to loopback.
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

// Realm is what sessions ask of their BMC.
type Realm interface {
	// GUID is that of RAKP 2, in the order of the wire.
	GUID() [16]byte
	// KG is the BMC's key, of 20 bytes; nil when there is none, and the user's
	// stands for it (§13.31).
	KG() []byte
	// Suites are the cipher suites that are taken, the best first.
	Suites() []Suite
	// AuthTypes are those of IPMI 1.5 that are taken for sessions up to a
	// privilege, or, if that is 0, for any; without any there are no sessions of
	// IPMI 1.5.
	AuthTypes(up wire.Privilege) wire.AuthTypes
	// Limit is that of the channel.
	Limit() wire.Privilege
	// User finds a user by name alone, or by name and limit (§13.20). Who may
	// not log in is not found.
	User(name string, role wire.Privilege, byName bool) (User, bool)
	// Admit counts a login, proved or not. It may refuse one that is proved.
	Admit(u User, proved bool, from netip.AddrPort) bool
}

// Faulty is a Realm whose BMC has faults.
type Faulty interface {
	Realm
	Faults() Faults
}

// Faults are what a BMC gets wrong in a login.
type Faults struct {
	OpenRole bool // codes are made with the role of Open Session, not with that of RAKP 1
	Code     bool // RAKP 4 has one even where the suite has none
	Long     bool // the code of RAKP 2 is followed by a byte that is none of it
	// Padded makes codes of names with 16 bytes, but for that of RAKP 3, which is
	// made as if the user were looked up by name and role; cuts passwords for
	// HMAC-MD5; makes RAKP 4 by the integrity algorithm; and has Open Session tell
	// of the role that was asked for.
	Padded bool
	// Of packets of IPMI 1.5:
	NoID    bool // their session ID is 0
	Swapped bool // their sequence number has its highest byte first
	Wrong   bool // their code is not right
}

func faultsOf(r Realm) Faults {
	if f, ok := r.(Faulty); ok {
		return f.Faults()
	}
	return Faults{}
}

// Suite is a cipher suite (table 22-20) that is taken.
type Suite struct {
	ID    byte
	Limit wire.Privilege // of sessions with it
}

// User is whom a session belongs to.
type User struct {
	ID       byte
	Account  string // as the realm has it
	Name     string
	Password string
	Long     bool // the password is one of IPMI 2.0 alone (§22.30)
	Limit    wire.Privilege
}

// What holds where Config says nothing.
const (
	DefaultOpen = 16
	// DefaultHalf is more than DefaultOpen: sessions that are being opened by
	// many at once push each other out (§6.12a).
	DefaultHalf = 64
	DefaultIdle = 60 * time.Second // §6.12.15
)

const (
	// MaxOpen is how many sessions have handles: FFh is none (§22.20).
	MaxOpen = 254
	// maxCount is how many sessions Get Session Info can count, in 6 bits.
	maxCount = 63
)

// Config sets limits.
type Config struct {
	Open int           // sessions; 0: DefaultOpen; MaxOpen at most
	Half int           // sessions that are being opened; 0: DefaultHalf
	Idle time.Duration // after which a session ends; 0: DefaultIdle
	Rand io.Reader     // of session IDs, random numbers, challenges; nil: crypto/rand
}

// Table is the sessions of a BMC. It is not safe for concurrent use.
type Table struct {
	c      Config
	open   []*Session // by handle
	opened []uint32   // their IDs, in the same order
	begun  uint32     // sessions that were ever open
	half   []*half    // the least recently used first
}

// New makes an empty table.
func New(c Config) *Table {
	if c.Open <= 0 {
		c.Open = DefaultOpen
	}
	c.Open = min(c.Open, MaxOpen)
	if c.Half <= 0 {
		c.Half = DefaultHalf
	}
	if c.Idle <= 0 {
		c.Idle = DefaultIdle
	}
	if c.Rand == nil {
		c.Rand = rand.Reader
	}
	return &Table{c: c}
}

// Session is an open session. The exported fields are to be read, but for
// Privilege, which Set Session Privilege Level sets.
type Session struct {
	ID        uint32 // the BMC's
	Console   uint32 // the client's; that of the BMC with IPMI 1.5
	Handle    byte
	Number    uint32 // of all that this BMC has opened: unlike the ID no chance
	User      User
	Limit     wire.Privilege // that Privilege can be raised to
	Privilege wire.Privilege // 0 while the session is not open
	From      netip.AddrPort // of the last packet
	Suite     byte           // of IPMI 2.0
	V15       bool
	Auth      wire.AuthType // of IPMI 1.5
	Begun     time.Time
	Used      time.Time

	keys    keys
	sent    [2]uint32 // last sequence number: plain, signed (§6.12.13)
	window  [2]window // likewise
	sol     guard
	opening *half // until the first packet of the session
	past    past
}

// guard is how packets of a payload type are protected.
type guard struct{ signed, sealed bool }

// Find is an open session; nil when there is none with that ID.
func (t *Table) Find(id uint32) *Session {
	if i := slices.Index(t.opened, id); i >= 0 {
		return t.open[i]
	}
	return nil
}

// All are the open sessions, by handle.
func (t *Table) All() iter.Seq[*Session] { return slices.Values(t.open) }

// Most is how many there can be, as far as Get Session Info can tell.
func (t *Table) Most() byte { return byte(min(t.c.Open, maxCount)) }

// Len is how many there are.
func (t *Table) Len() int { return len(t.open) }

// Close ends a session without a word; false when there is none.
func (t *Table) Close(id uint32) bool {
	i := slices.Index(t.opened, id)
	if i < 0 {
		return false
	}
	t.open, t.opened = slices.Delete(t.open, i, i+1), slices.Delete(t.opened, i, i+1)
	t.shrink()
	return true
}

// Drop ends the sessions that gone is true for, without a word, and those that
// are being opened by a user that it is true for.
func (t *Table) Drop(gone func(*Session) bool) {
	t.end(gone)
	t.half = slices.DeleteFunc(t.half, func(h *half) bool { return h.s != nil && gone(h.s) })
	t.shrink()
}

// Reset ends everything, as a restart of the BMC does.
func (t *Table) Reset() { t.open, t.opened, t.half = nil, nil, nil }

// Advance ends the sessions that nobody has used for too long, and returns
// them.
func (t *Table) Advance(now time.Time) []*Session {
	old := func(used time.Time) bool { return now.Sub(used) >= t.c.Idle }
	ended := t.end(func(s *Session) bool { return old(s.Used) })
	n := 0
	for n < len(t.half) && old(t.half[n].used) {
		n++
	}
	if n > 0 {
		t.half = slices.Delete(t.half, 0, n)
	}
	t.shrink()
	return ended
}

// Deadline is when Advance has something to do; false when there is nothing.
func (t *Table) Deadline() (at time.Time, ok bool) {
	for _, s := range t.open {
		if !ok || s.Used.Before(at) {
			at, ok = s.Used, true
		}
	}
	if len(t.half) > 0 && (!ok || t.half[0].used.Before(at)) {
		at, ok = t.half[0].used, true
	}
	return at.Add(t.c.Idle), ok
}

// end ends sessions and returns them.
func (t *Table) end(gone func(*Session) bool) (ended []*Session) {
	stays := 0
	for i, s := range t.open {
		if gone(s) {
			ended = append(ended, s)
			continue
		}
		t.open[stays], t.opened[stays] = s, t.opened[i]
		stays++
	}
	clear(t.open[stays:])
	t.open, t.opened = t.open[:stays], t.opened[:stays]
	return ended
}

// shrink gives memory back that nothing is in.
func (t *Table) shrink() {
	if len(t.open) == 0 {
		t.open, t.opened = nil, nil
	}
	if len(t.half) == 0 {
		t.half = nil
	}
}

// admit makes a session one of the open ones, with the lowest handle that is
// free (1 and up, §22.20).
func (t *Table) admit(now time.Time, s *Session) {
	i := 0
	for i < len(t.open) && t.open[i].Handle == byte(i+1) {
		i++
	}
	t.begun++
	s.Handle, s.Number, s.Begun, s.Used = byte(i+1), t.begun, now, now
	s.Privilege = min(s.Limit, wire.User) // §6.12.16
	t.open, t.opened = slices.Insert(t.open, i, s), slices.Insert(t.opened, i, s.ID)
}

func (t *Table) full() bool { return len(t.open) >= t.c.Open }

// fullFor is full, but for sessions that the same client has given up.
func (t *Table) fullFor(from netip.AddrPort, console uint32) bool {
	return t.full() && !slices.ContainsFunc(t.open, func(s *Session) bool { return s.abandoned(from, console) })
}

// abandoned says whether a client has given a session up, when it opens another
// with the same ID of its own: it has never used it. ipmitool begins anew when
// the answer to RAKP 3 is lost, and would take all places on a bad network.
func (s *Session) abandoned(from netip.AddrPort, console uint32) bool {
	return s.opening != nil && !s.V15 && s.Console == console && s.opening.from == from
}

// fresh is a session ID that nobody has; false when there is no chance left.
func (t *Table) fresh() (uint32, bool) {
	const tries = 8
	for range tries {
		var b [4]byte
		if _, err := io.ReadFull(t.c.Rand, b[:]); err != nil {
			return 0, false
		}
		id := binary.LittleEndian.Uint32(b[:])
		taken := slices.ContainsFunc(t.half, func(h *half) bool { return h.id == id })
		if id != 0 && !taken && t.Find(id) == nil {
			return id, true
		}
	}
	return 0, false
}

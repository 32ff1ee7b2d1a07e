// Package bmc is a management controller without its network: accounts,
// sessions and virtual media. It is stepped like the machine: commands and time go in,
// events come out. It refuses to know the protocols that speak for it, and it
// never fetches anything: MediaWanted asks for that, MediaArrived or MediaLost
// answers.
package bmc

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Errors that services map to their own codes.
var (
	ErrNotFound = errors.New("bmc: no such thing")
	// ErrInUse means that a slot holds an image already.
	ErrInUse = errors.New("bmc: in use")
	// ErrFull means that no further session fits.
	ErrFull = errors.New("bmc: no room")
	// ErrMedia means that an image could not be fetched; the text says why.
	ErrMedia = errors.New("bmc: virtual media")
)

// Role is what an account may do (DSP0266, predefined roles).
type Role string

// The roles.
const (
	Administrator Role = "Administrator"
	Operator      Role = "Operator"
	ReadOnly      Role = "ReadOnly"
)

// Account is a user of the BMC.
type Account struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Password string `json:"password"` // in the clear: IPMI's RAKP needs it so
	Role     Role   `json:"role"`
	Enabled  bool   `json:"enabled"`
}

// Session is a login that a token stands for.
type Session struct {
	ID      string
	Account string // ID of its account
	User    string // name of its account
	Role    Role
	Since   time.Time
	Used    time.Time // last time that its token was shown
	From    string    // address of the client
	token   [sha256.Size]byte
}

// SlotSpec is a virtual drive that a BMC has.
type SlotSpec struct {
	ID    string   // "Cd"
	Name  string   // for people
	Types []string // what it can be: CD, DVD, Floppy, USBStick
}

// Slot is a virtual drive and what it holds.
type Slot struct {
	ID             string    `json:"id"`
	Image          string    `json:"image,omitempty"` // URL, "" when empty
	Inserted       bool      `json:"inserted,omitempty"`
	WriteProtected bool      `json:"writeProtected,omitempty"`
	User           string    `json:"user,omitempty"`
	Password       string    `json:"password,omitempty"` // for the image's server
	Fetch          uint64    `json:"fetch,omitempty"`    // number of the fetch that filled it or is under way
	Size           int64     `json:"size,omitempty"`     // bytes, once fetched
	Since          time.Time `json:"since,omitzero"`
}

// Spec is what a kind of BMC has.
type Spec struct {
	Slots          []SlotSpec
	Sessions       int           // at most
	SessionTimeout time.Duration // without use
}

// BMC is one management controller. It is not safe for concurrent use.
type BMC struct {
	spec     *Spec
	st       State
	secrets  [][sha256.Size]byte // of st.Accounts, in their order
	sessions []Session           // not kept across a restart: a BMC forgets them too
	logins   uint64
}

// State is what a BMC must remember across a restart of the lab.
type State struct {
	Accounts       []Account     `json:"accounts"`
	Slots          []Slot        `json:"slots"`
	Fetches        uint64        `json:"fetches"` // begun since the BMC was made
	SessionTimeout time.Duration `json:"sessionTimeout"`
}

// View is a BMC as it stands, without secrets. It shares nothing that changes.
type View struct {
	Spec           *Spec
	Accounts       []Account // passwords blanked
	Slots          []Slot    // passwords blanked
	Sessions       []Session
	SessionTimeout time.Duration
}

// New makes a BMC with the given accounts, or restores one from what State
// returned.
func New(s *Spec, accounts []Account, st *State) *BMC {
	b := &BMC{spec: s}
	if st != nil {
		b.st = *st
	} else {
		b.st = State{Accounts: slices.Clone(accounts), SessionTimeout: s.SessionTimeout}
	}
	for _, a := range b.st.Accounts {
		b.secrets = append(b.secrets, secretOf(a.Name, a.Password))
	}
	for _, spec := range s.Slots {
		if b.slot(spec.ID) == nil {
			b.st.Slots = append(b.st.Slots, Slot{ID: spec.ID})
		}
	}
	return b
}

// State returns what New needs to restore the BMC.
func (b *BMC) State() State {
	st := b.st
	st.Accounts, st.Slots = slices.Clone(st.Accounts), slices.Clone(st.Slots)
	return st
}

// View returns the BMC as it stands.
func (b *BMC) View() View {
	st := b.State()
	for i := range st.Accounts {
		st.Accounts[i].Password = ""
	}
	for i := range st.Slots {
		st.Slots[i].Password = ""
	}
	return View{Spec: b.spec, Accounts: st.Accounts, Slots: st.Slots, Sessions: slices.Clone(b.sessions), SessionTimeout: st.SessionTimeout}
}

// Deadline is when the next session expires; false when none does.
func (b *BMC) Deadline() (time.Time, bool) {
	var first time.Time
	for _, s := range b.sessions {
		if end := s.Used.Add(b.st.SessionTimeout); first.IsZero() || end.Before(first) {
			first = end
		}
	}
	return first, !first.IsZero()
}

// Advance moves the BMC to now: sessions expire.
func (b *BMC) Advance(now time.Time) []Event {
	b.sessions = slices.DeleteFunc(b.sessions, func(s Session) bool {
		return !now.Before(s.Used.Add(b.st.SessionTimeout))
	})
	return nil
}

// Apply carries out a command at now, after advancing to it.
func (b *BMC) Apply(now time.Time, c Command) ([]Event, error) {
	evs := b.Advance(now)
	more, err := c.apply(b, now)
	return append(evs, more...), err
}

// Login checks a name and a password. It takes the same time whether the name
// or the password is wrong.
func (b *BMC) Login(name, password string) (Account, bool) {
	var hit Account
	found := 0
	given := secretOf(name, password)
	for i, a := range b.st.Accounts {
		if subtle.ConstantTimeCompare(b.secrets[i][:], given[:]) == 1 && a.Enabled {
			hit, found = a, 1
		}
	}
	hit.Password = ""
	return hit, found == 1
}

// secretOf is a digest of what a login consists of: of equal length for all, so
// that comparing tells nothing, and made once per account, because clients
// that use Basic authentication log in with every request.
func secretOf(name, password string) [sha256.Size]byte {
	return sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(name), name, password))
}

// Resume finds the session that a token stands for, and counts as its use.
func (b *BMC) Resume(now time.Time, token string) (Session, bool) {
	b.Advance(now)
	sum := sha256.Sum256([]byte(token))
	for i := range b.sessions {
		if subtle.ConstantTimeCompare(b.sessions[i].token[:], sum[:]) == 1 {
			b.sessions[i].Used = now
			return b.sessions[i], true
		}
	}
	return Session{}, false
}

func (b *BMC) slot(id string) *Slot {
	for i := range b.st.Slots {
		if b.st.Slots[i].ID == id {
			return &b.st.Slots[i]
		}
	}
	return nil
}

// Command is something that can be done to a BMC.
type Command interface {
	apply(b *BMC, now time.Time) ([]Event, error)
}

// OpenSession logs an account in. The token is the caller's to make and to
// hand out; the BMC keeps a digest of it.
type OpenSession struct {
	Account Account
	Token   string
	From    string
}

func (c OpenSession) apply(b *BMC, now time.Time) ([]Event, error) {
	if b.spec.Sessions > 0 && len(b.sessions) >= b.spec.Sessions {
		return nil, fmt.Errorf("%w: %d sessions are open", ErrFull, len(b.sessions))
	}
	b.logins++
	s := Session{
		ID: fmt.Sprint(b.logins), Account: c.Account.ID, User: c.Account.Name, Role: c.Account.Role,
		Since: now, Used: now, From: c.From, token: sha256.Sum256([]byte(c.Token)),
	}
	b.sessions = append(b.sessions, s)
	return []Event{SessionOpened{At: now, Session: s}}, nil
}

// CloseSession logs out.
type CloseSession struct{ ID string }

func (c CloseSession) apply(b *BMC, now time.Time) ([]Event, error) {
	n := len(b.sessions)
	b.sessions = slices.DeleteFunc(b.sessions, func(s Session) bool { return s.ID == c.ID })
	if len(b.sessions) == n {
		return nil, fmt.Errorf("%w: session %s", ErrNotFound, c.ID)
	}
	return nil, nil
}

// SetSessionTimeout sets how long a session lives without use.
type SetSessionTimeout struct{ After time.Duration }

func (c SetSessionTimeout) apply(b *BMC, _ time.Time) ([]Event, error) {
	b.st.SessionTimeout = c.After
	return nil, nil
}

// InsertMedia puts an image into a slot. The slot shows the image once it was
// fetched; until then it is in use.
type InsertMedia struct {
	Slot           string
	Image          string // URL
	WriteProtected bool
	User, Password string // for the image's server
}

func (c InsertMedia) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.Image != "" {
		return nil, fmt.Errorf("%w: media slot %s", ErrInUse, c.Slot)
	}
	b.st.Fetches++
	*s = Slot{
		ID: s.ID, Image: c.Image, WriteProtected: c.WriteProtected,
		User: c.User, Password: c.Password, Fetch: b.st.Fetches, Since: now,
	}
	return []Event{MediaWanted{At: now, Slot: *s}}, nil
}

// MediaArrived answers MediaWanted: the image is here.
type MediaArrived struct {
	Slot  string
	Fetch uint64 // of the event
	Size  int64  // bytes
}

func (c MediaArrived) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil || s.Fetch != c.Fetch || s.Image == "" {
		return nil, fmt.Errorf("%w: fetch %d of media slot %s", ErrNotFound, c.Fetch, c.Slot)
	}
	s.Inserted, s.Size = true, c.Size
	return []Event{MediaInserted{At: now, Slot: c.Slot, Image: s.Image}}, nil
}

// MediaLost answers MediaWanted: the image cannot be had. The slot is empty
// again.
type MediaLost struct {
	Slot  string
	Fetch uint64
}

func (c MediaLost) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil || s.Fetch != c.Fetch {
		return nil, fmt.Errorf("%w: fetch %d of media slot %s", ErrNotFound, c.Fetch, c.Slot)
	}
	return b.empty(s, now), nil
}

// EjectMedia empties a slot; an empty one is no error.
type EjectMedia struct{ Slot string }

func (c EjectMedia) apply(b *BMC, now time.Time) ([]Event, error) {
	s := b.slot(c.Slot)
	if s == nil {
		return nil, fmt.Errorf("%w: media slot %s", ErrNotFound, c.Slot)
	}
	if s.Image == "" {
		return nil, nil
	}
	return b.empty(s, now), nil
}

func (b *BMC) empty(s *Slot, now time.Time) []Event {
	ev := MediaEjected{At: now, Slot: s.ID, Fetch: s.Fetch}
	*s = Slot{ID: s.ID}
	return []Event{ev}
}

// Event is something that happened to a BMC.
type Event interface{ Time() time.Time }

// SessionOpened tells the session that OpenSession made.
type SessionOpened struct {
	At      time.Time
	Session Session
}

// MediaWanted asks for the image of a slot to be fetched.
type MediaWanted struct {
	At   time.Time
	Slot Slot // with the password
}

// MediaInserted tells that the machine can see the image.
type MediaInserted struct {
	At          time.Time
	Slot, Image string
}

// MediaEjected tells that the machine cannot see the image any longer.
type MediaEjected struct {
	At    time.Time
	Slot  string
	Fetch uint64 // that filled it
}

// Time implements Event.
func (e SessionOpened) Time() time.Time { return e.At }

// Time implements Event.
func (e MediaWanted) Time() time.Time { return e.At }

// Time implements Event.
func (e MediaInserted) Time() time.Time { return e.At }

// Time implements Event.
func (e MediaEjected) Time() time.Time { return e.At }

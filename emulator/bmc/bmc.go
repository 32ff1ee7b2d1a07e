// Package bmc is a management controller without its network: accounts,
// sessions, virtual media, the event log and jobs. It is stepped like the
// machine: commands and time go in, events come out, and Hear tells it what its
// machine did. It refuses to know the protocols that speak for it, and it
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

	"github.com/metalab-dev/metalab/emulator/machine/event"
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
	Keep           Keep          // of jobs
}

// BMC is one management controller. It is not safe for concurrent use.
type BMC struct {
	spec     *Spec
	st       State
	secrets  [][sha256.Size]byte // of st.Access.Accounts, in their order
	sessions []Session           // not kept across a restart: a BMC forgets them too
	logins   uint64

	// What View shows of what it may not show as it is, made when it changes.
	access *Access
	media  *Media
	shown  State // what access and media were made from
	open   *Logins
}

// State is what a BMC must remember across a restart of the lab, in parts. What
// a part leads to is never changed: a step that changes a part makes a new one,
// so that a part is as it was if and only if its pointer is.
type State struct {
	Access *Access `json:"access"`
	Media  *Media  `json:"media"`
	Log    *Log    `json:"log,omitempty"`  // nil: empty
	Jobs   *Jobs   `json:"jobs,omitempty"` // nil: none
}

// Access is who may log in, and how long that lasts.
type Access struct {
	Accounts       []Account     `json:"accounts"`
	SessionTimeout time.Duration `json:"sessionTimeout"`
}

// Media is what the virtual drives hold.
type Media struct {
	Slots   []Slot `json:"slots"`
	Fetches uint64 `json:"fetches"` // begun since the BMC was made
}

// Logins are the sessions that are open.
type Logins struct{ Sessions []Session }

// View is a BMC as it stands, without secrets. It shares nothing that changes,
// and two views have the same part if nothing in it has changed between them.
type View struct {
	Spec    *Spec
	*Access // passwords blanked
	*Media  // passwords blanked
	*Logins // open sessions, in the order of their opening
	Log     *Log
	Jobs    *Jobs
}

// New makes a BMC with the given accounts, or restores one from what State
// returned. Parts that it lacks are as new.
func New(s *Spec, accounts []Account, st *State) *BMC {
	b := &BMC{spec: s, open: noSessions}
	if st != nil {
		b.st = *st
	}
	if b.st.Access == nil {
		b.st.Access = &Access{Accounts: slices.Clone(accounts), SessionTimeout: s.SessionTimeout}
	}
	if b.st.Media == nil {
		b.st.Media = new(Media)
	}
	b.keySecrets()
	for _, spec := range s.Slots {
		if b.slot(spec.ID) == nil {
			m := b.forkMedia()
			m.Slots = append(m.Slots, Slot{ID: spec.ID})
		}
	}
	return b
}

func (b *BMC) keySecrets() {
	b.secrets = nil
	for _, a := range b.st.Access.Accounts {
		b.secrets = append(b.secrets, secretOf(a.Name, a.Password))
	}
}

// State returns what New needs to restore the BMC.
func (b *BMC) State() State { return b.st }

// Restore puts a BMC back to a state that it had. Sessions stay.
func (b *BMC) Restore(st State) {
	rekey := b.st.Access != st.Access
	b.st = st
	if rekey {
		b.keySecrets()
	}
}

var noSessions = new(Logins)

// View returns the BMC as it stands.
func (b *BMC) View() View {
	if b.access == nil || b.shown.Access != b.st.Access {
		b.access = new(*b.st.Access)
		b.access.Accounts = slices.Clone(b.access.Accounts)
		for i := range b.access.Accounts {
			b.access.Accounts[i].Password = ""
		}
	}
	if b.media == nil || b.shown.Media != b.st.Media {
		b.media = new(*b.st.Media)
		b.media.Slots = slices.Clone(b.media.Slots)
		for i := range b.media.Slots {
			b.media.Slots[i].Password = ""
		}
	}
	b.shown = b.st
	return View{Spec: b.spec, Access: b.access, Media: b.media, Logins: b.open, Log: b.st.Log, Jobs: b.st.Jobs}
}

// showSessions makes the sessions as they are what a View shows.
func (b *BMC) showSessions() {
	b.open = noSessions
	if len(b.sessions) > 0 {
		b.open = &Logins{slices.Clone(b.sessions)}
	}
}

// forkMedia is a copy of the slots that a step may write.
func (b *BMC) forkMedia() *Media {
	m := *b.st.Media
	m.Slots = slices.Clone(m.Slots)
	b.st.Media = &m
	return &m
}

// Deadline is when the BMC next changes by itself; false when it waits for a
// command.
func (b *BMC) Deadline() (time.Time, bool) {
	first := b.nextOfJobs()
	for _, s := range b.sessions {
		first = sooner(first, s.Used.Add(b.st.Access.SessionTimeout))
	}
	return first, !first.IsZero()
}

// Advance moves the BMC to now: sessions expire, and jobs are forgotten.
func (b *BMC) Advance(now time.Time) []Event {
	n := len(b.sessions)
	b.sessions = slices.DeleteFunc(b.sessions, func(s Session) bool {
		return !now.Before(s.Used.Add(b.st.Access.SessionTimeout))
	})
	if len(b.sessions) != n {
		b.showSessions()
	}
	b.ageJobs(now)
	return nil
}

// Hear tells the BMC what happened to its machine: what belongs into the log is
// written there, and jobs go on.
func (b *BMC) Hear(now time.Time, evs []event.Event) []Event {
	var out []Event
	for _, ev := range evs {
		switch ev := ev.(type) {
		case event.Note:
			out = append(out, b.log(ev))
		case event.Running:
			out = append(out, b.running(ev)...)
		case event.Waiting:
			out = append(out, b.waiting(ev)...)
		case event.Told:
			out = append(out, b.told(ev)...)
		case event.Paused:
			out = append(out, b.paused(ev)...)
		case event.Done:
			out = append(out, b.done(ev)...)
		}
	}
	return out
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
	for i, a := range b.st.Access.Accounts {
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
	for i := range b.st.Media.Slots {
		if b.st.Media.Slots[i].ID == id {
			return &b.st.Media.Slots[i]
		}
	}
	return nil
}

// setSlot puts s in the place of the slot with its ID.
func (b *BMC) setSlot(s Slot) {
	b.forkMedia()
	*b.slot(s.ID) = s
}

// Command is something that can be done to a BMC.
type Command interface {
	apply(b *BMC, now time.Time) ([]Event, error)
}

// Event is something that happened to a BMC.
type Event = event.Event

// Package bmc is a management controller without its network: accounts and
// roles, sessions, virtual media, the event and audit logs, and jobs. It is stepped like the
// machine: commands and time go in, events come out, and Hear tells it what its
// machine did. It refuses to know the protocols that speak for it, and it
// never fetches anything: MediaWanted asks for that, MediaArrived or MediaLost
// answers.
package bmc

import (
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Errors that services map to their own codes.
var (
	ErrNotFound = errors.New("bmc: no such thing")
	// ErrInUse means that a slot holds an image already.
	ErrInUse = errors.New("bmc: in use")
	// ErrFull means that no further one of its kind fits.
	ErrFull = errors.New("bmc: no room")
	// ErrMedia means that an image could not be fetched; the text says why.
	ErrMedia = errors.New("bmc: virtual media")
)

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
	Transfer       Transfer  `json:"transfer,omitempty"`
	Verify         bool      `json:"verify,omitempty"` // the certificate of the image's server; stays when the image goes
	User           string    `json:"user,omitempty"`
	Password       string    `json:"password,omitempty"` // for the image's server
	Fetch          uint64    `json:"fetch,omitempty"`    // number of the fetch that filled it or is under way
	Size           int64     `json:"size,omitempty"`     // bytes, once fetched
	Since          time.Time `json:"since,omitzero"`
	// Leaves is after how many starts of the machine the image goes; 0: it stays.
	EjectAfterBoots int `json:"leaves,omitempty"`
}

// Spec is what a kind of BMC has.
type Spec struct {
	Slots          []SlotSpec
	VerifyMedia    bool          // whether slots begin with Slot.Verify
	Sessions       int           // at most
	SessionTimeout time.Duration // without use
	TaskRetention  TaskRetention // of jobs
	Accounts       AccountSpec
	Log, Audit     LogSpec
	Collect        time.Duration // that a dump takes
	Key            KeyKind       // of the certificate that it comes with
	Life           LifeSpec
	Network        Network // as new
	Channel        Channel // as new
}

// BMC is one management controller. It is not safe for concurrent use.
type BMC struct {
	spec    *Spec
	factory []Account        // that it has as new
	place   *NetworkDefaults // nil: unknown
	st      State
	secrets [][sha256.Size]byte // of st.Access.Accounts, in their order
	// accountsDue is when time next changes an account; zero: never.
	accountsDue time.Time
	sessions    []Session // not kept across a restart: a BMC forgets them too
	logins      uint64
	streams     []Subscription // as little

	// What View shows of what it may not show as it is, made when it changes.
	access       *Access
	media        *Media
	certificates *Certificates
	lan          *Channel
	shown        State // what they were made from
	open         *Logins
	heard        *Subscribers
}

// State is what a BMC must remember across a restart of the lab, in parts. What
// a part leads to is never changed: a step that changes a part makes a new one,
// so that a part is as it was if and only if its pointer is.
type State struct {
	Access        *Access        `json:"access"`
	Media         *Media         `json:"media"`
	Log           *Log           `json:"log,omitempty"`   // nil: empty
	Audit         *Log           `json:"audit,omitempty"` // nil: empty
	Dumps         *Dumps         `json:"dumps,omitempty"` // nil: none
	Tasks         *Tasks         `json:"jobs,omitempty"`  // nil: none; stored as "jobs" since the first format
	LoginFailures *LoginFailures `json:"locks,omitempty"` // nil: no login failed
	Clock         *Clock         `json:"clock,omitempty"` // nil: right
	Life          *Life          `json:"life,omitempty"`  // nil: up since it was made

	Net  *Network `json:"network,omitempty"` // nil: as the Spec says
	Jobs *Jobs    `json:"plans,omitempty"`   // nil: none; stored as "plans" likewise

	Channel  *Channel  `json:"channel,omitempty"`  // nil: as new
	SelfTest *SelfTest `json:"selfTest,omitempty"` // nil: passed
	Serial   *SOL      `json:"sol,omitempty"`      // nil: as it comes

	Subscriptions *Subscriptions       `json:"subscriptions,omitempty"` // nil: never any
	Updates       *Updates             `json:"updates,omitempty"`       // nil: as it comes
	Chassis       *ChassisCapabilities `json:"chassis,omitempty"`       // nil: as it was built
	PEF           *PEF                 `json:"alerting,omitempty"`      // nil: as it comes
	DCMI          *DCMISettings        `json:"caps,omitempty"`          // nil: nobody set any
	SDRs          *SDRChanges          `json:"records,omitempty"`       // nil: those that the server came with
	// Certificates is nil where nobody gave the BMC any.
	Certificates *Certificates `json:"certificates,omitempty"`
	OEM          *OEMValues    `json:"oem,omitempty"` // nil: nothing
}

// Media is what the virtual drives hold.
type Media struct {
	Slots   []Slot `json:"slots"`
	Fetches uint64 `json:"fetches"` // begun since the BMC was made
}

// View is a BMC as it stands, without secrets. It shares nothing that changes,
// and two views have the same part if nothing in it has changed between them.
type View struct {
	Spec            *Spec
	*Access         // passwords blanked; the policy is never nil
	*Media          // passwords blanked
	*Logins         // open sessions, in the order of their opening
	Log             *Log
	Audit           *Log
	Dumps           *Dumps
	Tasks           *Tasks
	LoginFailures   *LoginFailures
	Clock           *Clock
	Life            *Life
	Net             *Network // nil: as the Spec says; Network tells which that is
	NetworkDefaults *NetworkDefaults
	Serial          *SOL     // nil: as it comes; SOL tells which that is
	Jobs            *Jobs    // with the bodies of their requests, which may hold secrets
	Channel         *Channel // without its key, and never nil
	// SelfTest is nil when it was passed.
	SelfTest *SelfTest

	Subscribers *Subscribers         // subscriptions, without their headers
	Updates     *Updates             // never nil
	Chassis     *ChassisCapabilities // never nil
	PEF         *PEF                 // nil: as it comes
	DCMI        *DCMISettings        // never nil
	SDRs        *SDRChanges          // nil: those that the server came with
	// Certificates are without private keys, and never nil.
	Certificates *Certificates
	OEM          *OEMValues // nil: nothing
}

// New makes a BMC with the given accounts, or restores one from what State
// returned. Parts that it lacks are as new.
func New(s *Spec, accounts []Account, st *State) *BMC {
	b := &BMC{spec: s, factory: accounts, open: noSessions}
	if st != nil {
		b.st = *st
	}
	if b.st.Access == nil {
		b.st.Access = b.newAccess()
	}
	if b.st.Media == nil {
		b.st.Media = new(Media)
	}
	b.keyed()
	for _, spec := range s.Slots {
		if b.slot(spec.ID) == nil {
			m := b.forkMedia()
			m.Slots = append(m.Slots, Slot{ID: spec.ID, Verify: s.VerifyMedia})
		}
	}
	return b
}

// ChangeSpec makes it a BMC of another kind, as an update of its firmware may. What
// it holds stays; of what it can hold less now, the rest goes as it is used up.
// Network services and accounts are as they were set.
func (b *BMC) ChangeSpec(s *Spec) {
	b.spec = s
	b.access, b.lan = nil, nil // what is as new may be otherwise
	for _, spec := range s.Slots {
		if b.slot(spec.ID) == nil {
			m := b.forkMedia()
			m.Slots = append(m.Slots, Slot{ID: spec.ID, Verify: s.VerifyMedia})
		}
	}
}

// newAccess is who may log in as new.
func (b *BMC) newAccess() *Access {
	return &Access{Accounts: slices.Clone(b.factory), SessionTimeout: b.spec.SessionTimeout}
}

// State returns what New needs to restore the BMC.
func (b *BMC) State() State { return b.st }

// Restore puts a BMC back to a state that it had. Sessions stay.
func (b *BMC) Restore(st State) {
	rekey := b.st.Access != st.Access
	b.st = st
	b.keepStreams(st)
	if rekey {
		b.keyed()
	}
}

// View returns the BMC as it stands.
func (b *BMC) View() View {
	if b.access == nil || b.shown.Access != b.st.Access {
		b.access = b.blank()
	}
	if b.media == nil || b.shown.Media != b.st.Media {
		b.media = new(*b.st.Media)
		b.media.Slots = slices.Clone(b.media.Slots)
		for i := range b.media.Slots {
			b.media.Slots[i].Password = ""
		}
	}
	if b.heard == nil || !sameAudience(b.shown.Subscriptions, b.st.Subscriptions) {
		b.heard = b.audience()
	}
	if b.certificates == nil || b.shown.Certificates != b.st.Certificates {
		b.certificates = b.st.Certificates.public()
	}
	if b.lan == nil || b.shown.Channel != b.st.Channel {
		b.lan = b.shownChannel()
	}
	b.shown = b.st
	return View{
		Spec: b.spec, Access: b.access, Media: b.media, Logins: b.open, Log: b.st.Log, Audit: b.st.Audit,
		Dumps: b.st.Dumps, Tasks: b.st.Tasks, LoginFailures: b.st.LoginFailures, Clock: b.st.Clock, Life: b.st.Life,
		Net: b.st.Net, NetworkDefaults: b.place, Jobs: b.st.Jobs, Channel: b.lan, SelfTest: b.st.SelfTest, Serial: b.st.Serial,
		Subscribers: b.heard, Updates: b.updates(), Chassis: b.chassis(), PEF: b.st.PEF, DCMI: b.caps(), SDRs: b.st.SDRs,
		Certificates: b.certificates, OEM: b.st.OEM,
	}
}

// forkMedia is a copy of the slots that a step may write.
func (b *BMC) forkMedia() *Media {
	m := *b.st.Media
	m.Slots = slices.Clone(m.Slots)
	b.st.Media = &m
	return &m
}

// AwaitedDeadline is when the BMC next does what somebody may be waiting for; false when
// that is nothing.
func (b *BMC) AwaitedDeadline() (time.Time, bool) {
	once, _ := b.jobsDue()
	first := sooner(sooner(b.nextOfLife(), b.nextOfWork()), once)
	return first, !first.IsZero()
}

// Deadline is when the BMC next changes by itself; false when it waits for a
// command.
func (b *BMC) Deadline() (time.Time, bool) {
	first, _ := b.AwaitedDeadline()
	_, again := b.jobsDue()
	first = sooner(first, again)
	first = sooner(sooner(first, b.nextTaskDeadline()), sooner(sooner(b.accountsDue, b.locksDue()), b.alertsDue()))
	first = sooner(first, b.SessionsDue())
	if beat, ok := b.nextBeat(); ok {
		first = sooner(first, beat)
	}
	return first, !first.IsZero()
}

// Advance moves the BMC to now: its own work is done, it goes down and comes up,
// sessions, passwords, accounts and locks expire, jobs are forgotten, signs of
// life fall due.
func (b *BMC) Advance(now time.Time) []Event {
	evs := append(b.age(now), b.carryOut(now)...)
	b.expireSessions(now)
	b.expireTasks(now)
	return slices.Concat(evs, b.awaitAlerts(now), b.expireLocks(now), b.expireAccounts(now), b.heartbeats(now))
}

// age does the BMC's own work and lives its life, in their order.
func (b *BMC) age(now time.Time) []Event {
	var evs []Event
	for {
		at := sooner(b.nextOfLife(), b.nextOfWork())
		if at.IsZero() || now.Before(at) {
			return evs
		}
		evs = append(append(evs, b.work(at)...), b.grow(at)...)
	}
}

// ObserveMachine tells the BMC what happened to its machine: what belongs into the log is
// written there, and jobs go on.
func (b *BMC) ObserveMachine(now time.Time, evs []event.Event) []Event {
	var out []Event
	for _, ev := range evs {
		switch ev := ev.(type) {
		case event.Note:
			out = append(out, b.log(ev))
			if ev.Kind == event.PowerOff {
				out = append(out, b.rebooted(ev.At)...)
			}
		case event.Boot:
			out = append(out, b.rebooted(ev.At)...)
		case event.ACPower:
			out = append(out, b.mains(ev)...)
		case event.Restart:
			if ev.Subject.Part == event.BMC && b.st.Life.Is() == Up {
				more, _ := b.restart(ev.At, GracefulRestart, "") // it is up
				out = append(out, more...)
			}
		case event.TaskRunning:
			b.outlives(ev.Task)
			out = append(out, b.running(ev)...)
		case event.TaskWaiting:
			b.outlives(ev.Task)
			out = append(out, b.waiting(ev)...)
		case event.TaskMessage:
			out = append(out, b.told(ev)...)
		case event.TaskPaused:
			b.outlives(ev.Task)
			out = append(out, b.paused(ev)...)
		case event.TaskDone:
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

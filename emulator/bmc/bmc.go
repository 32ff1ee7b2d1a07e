// Package bmc models a management controller without its network: accounts and
// roles, sessions, virtual media, logs, tasks and jobs. It is stepped like the
// machine: commands and time go in, events come out, and ObserveMachine passes
// it the machine's events. It does not know the protocols above it, and fetches
// nothing: MediaRequested asks for an image, MediaFetched or MediaFetchFailed
// answers.
//
// Events, log entries and the BMC's own work have lab time. Deadlines of clients
// have client time (see package clock), which SetClientTime sets: the time-outs
// of sessions, the locks of accounts and addresses, the retention of tasks that
// have ended, and heartbeats.
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
	// ErrInUse means that a slot already holds an image.
	ErrInUse = errors.New("bmc: in use")
	// ErrStorageFull means that there is no space to store a change.
	ErrStorageFull = errors.New("bmc: no space left to store the change")
	// ErrFull means that there is no room for another one.
	ErrFull = errors.New("bmc: no room")
	// ErrMedia means that an image could not be fetched; the text says why.
	ErrMedia = errors.New("bmc: virtual media")
)

// SlotSpec is a virtual media slot of a kind of BMC.
type SlotSpec struct {
	ID    string   // "Cd"
	Name  string   // for display
	Types []string // Redfish MediaTypes: CD, DVD, Floppy, USBStick
}

// Slot is a virtual media slot and its content.
type Slot struct {
	ID             string    `json:"id"`
	Image          string    `json:"image,omitempty"` // URL, "" when empty
	Inserted       bool      `json:"inserted,omitempty"`
	WriteProtected bool      `json:"writeProtected,omitempty"`
	Transfer       Transfer  `json:"transfer,omitempty"`
	Verify         bool      `json:"verify,omitempty"` // verify the certificate of the image's server; stays when the image is ejected
	User           string    `json:"user,omitempty"`
	Password       string    `json:"password,omitempty"` // for the image's server
	Fetch          uint64    `json:"fetch,omitempty"`    // number of the fetch that filled it or is in progress
	Size           int64     `json:"size,omitempty"`     // bytes, once fetched
	Since          time.Time `json:"since,omitzero"`
	// EjectAfterBoots is the number of starts of the machine after which the
	// image is ejected; 0: it stays.
	EjectAfterBoots int `json:"leaves,omitempty"`
}

// Spec describes a kind of BMC.
type Spec struct {
	Slots          []SlotSpec    // virtual media
	VerifyMedia    bool          // slots verify the certificates of image servers by default
	Sessions       int           // maximum number of sessions
	SessionTimeout time.Duration // idle time after which a session ends
	TaskRetention  TaskRetention // how long ended tasks remain
	Accounts       AccountSpec   // local accounts and their policy
	Log            LogSpec       // event log
	Audit          LogSpec       // audit log
	Collect        time.Duration // duration of collecting a dump
	Key            KeyKind       // key of the factory certificate
	Life           LifeSpec      // durations of a restart
	Network        Network       // default settings
	Channel        Channel       // default settings
}

// BMC is one management controller. It is not safe for concurrent use.
type BMC struct {
	spec            *Spec
	factory         []Account        // factory accounts
	networkDefaults *NetworkDefaults // nil: unknown
	st              State
	secrets         [][sha256.Size]byte // digests of st.Access.Accounts, in order
	// accountsDue is when an account next changes by time; zero: never.
	accountsDue time.Time
	client      time.Time // client time; zero: it is lab time
	sessions    []Session // lost in a restart, as on real BMCs
	logins      uint64
	streams     []Subscription // likewise

	// What View shows in place of secret or derived parts, rebuilt when they
	// change.
	access       *Access
	media        *Media
	certificates *Certificates
	lan          *Channel
	shown        State // the state that they were built from
	open         *Logins
	subscribers  *Subscribers
}

// State is the state of a BMC that outlives a restart of the rack, in parts. A part is
// immutable: a step that changes a part replaces it, so that equal pointers
// mean equal content.
type State struct {
	Access        *Access        `json:"access"`
	Media         *Media         `json:"media"`
	Log           *Log           `json:"log,omitempty"`   // nil: empty
	Audit         *Log           `json:"audit,omitempty"` // nil: empty
	Dumps         *Dumps         `json:"dumps,omitempty"` // nil: none
	Tasks         *Tasks         `json:"jobs,omitempty"`  // nil: none; stored as "jobs" since the first format
	LoginFailures *LoginFailures `json:"locks,omitempty"` // nil: no failed logins
	Clock         *Clock         `json:"clock,omitempty"` // nil: correct
	Life          *Life          `json:"life,omitempty"`  // nil: up since it was created

	Net  *Network `json:"network,omitempty"` // nil: the Spec's
	Jobs *Jobs    `json:"plans,omitempty"`   // nil: none; stored as "plans" since the first format

	Channel  *Channel  `json:"channel,omitempty"`  // nil: defaults
	SelfTest *SelfTest `json:"selfTest,omitempty"` // nil: passed
	Serial   *SOL      `json:"sol,omitempty"`      // nil: defaults

	Subscriptions *Subscriptions       `json:"subscriptions,omitempty"` // nil: never any
	Updates       *Updates             `json:"updates,omitempty"`       // nil: defaults
	Chassis       *ChassisCapabilities `json:"chassis,omitempty"`       // nil: defaults
	PEF           *PEF                 `json:"alerting,omitempty"`      // nil: defaults
	DCMI          *DCMISettings        `json:"caps,omitempty"`          // nil: defaults
	SDRs          *SDRChanges          `json:"records,omitempty"`       // nil: the server's own records
	// Certificates is nil when none was installed.
	Certificates *Certificates `json:"certificates,omitempty"`
	OEM          *OEMValues    `json:"oem,omitempty"` // nil: none
}

// Media holds the virtual media slots.
type Media struct {
	Slots   []Slot `json:"slots"`
	Fetches uint64 `json:"fetches"` // fetches since the BMC was created
}

// View is a snapshot of a BMC without secrets. It is immutable, and two views
// share a part exactly when the part did not change between them.
type View struct {
	Spec            *Spec
	*Access         // without passwords; the policy is never nil
	*Media          // without passwords
	*Logins         // open sessions in the order of their opening
	Log             *Log
	Audit           *Log
	Dumps           *Dumps
	Tasks           *Tasks
	LoginFailures   *LoginFailures
	Clock           *Clock
	Life            *Life
	Net             *Network // nil: the Spec's; see Network
	NetworkDefaults *NetworkDefaults
	Serial          *SOL     // nil: defaults; see SOL
	Jobs            *Jobs    // with the bodies of their requests, which may hold secrets
	Channel         *Channel // without K_G; never nil
	// SelfTest is nil when the self test passed.
	SelfTest *SelfTest

	Subscribers *Subscribers         // subscriptions, without header values
	Updates     *Updates             // never nil
	Chassis     *ChassisCapabilities // never nil
	PEF         *PEF                 // nil: defaults
	DCMI        *DCMISettings        // never nil
	SDRs        *SDRChanges          // nil: the server's own records
	// Certificates are without private keys; never nil.
	Certificates *Certificates
	OEM          *OEMValues // nil: none
}

// New creates a BMC with these accounts, or restores one from what State
// returned. Missing parts have their defaults.
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
	b.refreshLogins()
	for _, spec := range s.Slots {
		if b.slot(spec.ID) == nil {
			m := b.forkMedia()
			m.Slots = append(m.Slots, Slot{ID: spec.ID, Verify: s.VerifyMedia})
		}
	}
	return b
}

// ChangeSpec makes the BMC one of another kind, as a firmware update may.
// Stored settings stay; what exceeds new limits is dropped as it is used up.
func (b *BMC) ChangeSpec(s *Spec) {
	b.spec = s
	b.access, b.lan = nil, nil // defaults may have changed
	for _, spec := range s.Slots {
		if b.slot(spec.ID) == nil {
			m := b.forkMedia()
			m.Slots = append(m.Slots, Slot{ID: spec.ID, Verify: s.VerifyMedia})
		}
	}
}

// newAccess returns the default accounts.
func (b *BMC) newAccess() *Access {
	return &Access{Accounts: slices.Clone(b.factory), SessionTimeout: b.spec.SessionTimeout}
}

// State returns what New needs to restore the BMC.
func (b *BMC) State() State { return b.st }

// Restore sets a BMC back to an earlier state. Sessions stay.
func (b *BMC) Restore(st State) {
	rekey := b.st.Access != st.Access
	b.st = st
	b.keepStreams(st)
	if rekey {
		b.refreshLogins()
	}
}

// View returns a snapshot of the BMC.
func (b *BMC) View() View {
	if b.access == nil || b.shown.Access != b.st.Access {
		b.access = b.publicAccess()
	}
	if b.media == nil || b.shown.Media != b.st.Media {
		b.media = new(*b.st.Media)
		b.media.Slots = slices.Clone(b.media.Slots)
		for i := range b.media.Slots {
			b.media.Slots[i].Password = ""
		}
	}
	if b.subscribers == nil || !sameSubscribers(b.shown.Subscriptions, b.st.Subscriptions) {
		b.subscribers = b.publicSubscribers()
	}
	if b.certificates == nil || b.shown.Certificates != b.st.Certificates {
		b.certificates = b.st.Certificates.public()
	}
	if b.lan == nil || b.shown.Channel != b.st.Channel {
		b.lan = b.publicChannel()
	}
	b.shown = b.st
	return View{
		Spec: b.spec, Access: b.access, Media: b.media, Logins: b.open, Log: b.st.Log, Audit: b.st.Audit,
		Dumps: b.st.Dumps, Tasks: b.st.Tasks, LoginFailures: b.st.LoginFailures, Clock: b.st.Clock, Life: b.st.Life,
		Net: b.st.Net, NetworkDefaults: b.networkDefaults, Jobs: b.st.Jobs, Channel: b.lan, SelfTest: b.st.SelfTest, Serial: b.st.Serial,
		Subscribers: b.subscribers, Updates: b.updates(), Chassis: b.chassis(), PEF: b.st.PEF, DCMI: b.dcmi(), SDRs: b.st.SDRs,
		Certificates: b.certificates, OEM: b.st.OEM,
	}
}

// forkMedia returns a copy of the slots that a step may change.
func (b *BMC) forkMedia() *Media {
	m := *b.st.Media
	m.Slots = slices.Clone(m.Slots)
	b.st.Media = &m
	return &m
}

// AwaitedDeadline returns when the BMC next does something that a client may
// wait for; false when there is nothing.
func (b *BMC) AwaitedDeadline() (time.Time, bool) {
	once, _ := b.jobsDue()
	first := earlier(earlier(b.lifeDue(), b.workDue()), once)
	return first, !first.IsZero()
}

// Deadline returns the lab time at which the BMC next changes without a command;
// false when there is none.
func (b *BMC) Deadline() (time.Time, bool) {
	first, _ := b.AwaitedDeadline()
	_, again := b.jobsDue()
	first = earlier(first, again)
	first = earlier(first, earlier(b.accountsDue, b.pefDue()))
	return first, !first.IsZero()
}

// ClientDeadline returns the next client time at which something is due, as Deadline does
// for lab time.
func (b *BMC) ClientDeadline() (time.Time, bool) {
	first := earlier(earlier(b.SessionsDue(), b.locksDue()), b.nextTaskDeadline())
	if beat, ok := b.nextBeat(); ok {
		first = earlier(first, beat)
	}
	return first, !first.IsZero()
}

// SetClientTime sets the client time at which the BMC is advanced next, and at
// which the commands until then are applied. A BMC that has never got one takes
// lab time for client time.
func (b *BMC) SetClientTime(client time.Time) { b.client = client }

// clientTime returns the client time of a step at a lab time.
func (b *BMC) clientTime(now time.Time) time.Time {
	if b.client.IsZero() {
		return now
	}
	return b.client
}

// Advance moves the BMC to now, and to the client time that was set: work ends,
// it goes down and comes up, sessions, passwords, accounts and locks expire,
// tasks are forgotten, heartbeats fall due.
func (b *BMC) Advance(now time.Time) []Event {
	evs := append(b.age(now), b.carryOut(now)...)
	b.expireSessions(b.clientTime(now))
	b.expireTasks(b.clientTime(now))
	return slices.Concat(evs, b.advancePEF(now), b.expireLocks(now), b.expireAccounts(now), b.heartbeats(now))
}

// age ends due work and advances the BMC's life cycle, in order of time.
func (b *BMC) age(now time.Time) []Event {
	var evs []Event
	for {
		at := earlier(b.lifeDue(), b.workDue())
		if at.IsZero() || now.Before(at) {
			return evs
		}
		evs = append(append(evs, b.work(at)...), b.advanceLife(at)...)
	}
}

// ObserveMachine passes the machine's events to the BMC: it logs them and
// updates tasks.
func (b *BMC) ObserveMachine(now time.Time, evs []event.Event) []Event {
	var out []Event
	for _, ev := range evs {
		switch ev := ev.(type) {
		case event.Note:
			out = append(out, b.log(ev))
			if ev.Kind == event.PowerOff {
				out = append(out, b.endVolatileChannel(ev.At)...)
			}
		case event.Boot:
			out = append(out, b.endVolatileChannel(ev.At)...)
		case event.ACPower:
			out = append(out, b.handleACPower(ev)...)
		case event.Restart:
			if ev.Subject.Part == event.BMC && b.st.Life.Is() == Up {
				more, _ := b.restart(ev.At, GracefulRestart, "") // the BMC is up
				out = append(out, more...)
			}
		case event.TaskRunning:
			b.outlives(ev.Task)
			out = append(out, b.taskRunning(ev)...)
		case event.TaskWaiting:
			b.outlives(ev.Task)
			out = append(out, b.taskWaiting(ev)...)
		case event.TaskMessage:
			out = append(out, b.taskMessage(ev)...)
		case event.TaskPaused:
			b.outlives(ev.Task)
			out = append(out, b.taskPaused(ev)...)
		case event.TaskDone:
			out = append(out, b.taskDone(ev)...)
		}
	}
	return out
}

// Apply advances the BMC to now and applies a command.
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

// setSlot replaces the slot with the same ID.
func (b *BMC) setSlot(s Slot) {
	b.forkMedia()
	*b.slot(s.ID) = s
}

// Command is a change that can be applied to a BMC.
type Command interface {
	apply(b *BMC, now time.Time) ([]Event, error)
}

// Event is something that happened to a BMC.
type Event = event.Event

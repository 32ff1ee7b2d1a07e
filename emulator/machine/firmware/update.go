package firmware

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Update is an image on its way into components. Updates that have ended are
// forgotten; what they have done is in the slots of the components.
type Update struct {
	ID       string    `json:"id"`
	Task     string    `json:"job,omitempty"`
	Image    Image     `json:"image"`
	Defect   Defect    `json:"defect,omitempty"`  // that its verification finds
	Only     []string  `json:"only,omitempty"`    // components that it is for; none: all that it fits
	Not      []string  `json:"not,omitempty"`     // those of them that it is not for
	Targets  []string  `json:"targets,omitempty"` // components that verification has chosen
	At       int       `json:"at,omitempty"`      // place in Targets of the one that is being written
	Force    bool      `json:"force,omitempty"`   // whatever the versions are
	Stage    bool      `json:"stage,omitempty"`   // write it, and leave it to Activate to run it
	Restore  bool      `json:"restore,omitempty"` // Activate: what runs is what a slot holds already
	When     When      `json:"when"`
	Phase    Phase     `json:"phase"`
	Deadline time.Time `json:"deadline,omitzero"`
	InPOST   bool      `json:"inPOST,omitempty"` // it is written while POST waits
	Breaks   bool      `json:"breaks,omitempty"` // the phase ends badly
}

// has tells whether an update has a component for itself.
func (u *Update) has(component string) bool { return slices.Contains(u.Targets, component) }

// UpdateTimes are the apply times of updates, in the order in which services
// list them.
var UpdateTimes = []ApplyTime{Immediate, OnReset, AtMaintenanceWindowStart, InMaintenanceWindowOnReset, OnStartUpdateRequest}

// Phase is how far an update is. Values are stored.
type Phase string

// The phases.
const (
	Received   Phase = "received"   // the image goes to the component
	Verifying  Phase = "verifying"  // which looks at it
	Scheduled  Phase = "scheduled"  // it waits for a time
	Waiting    Phase = "waiting"    // it waits for a reset of the host
	Held       Phase = "held"       // it waits to be started
	Applying   Phase = "applying"   // it is being written
	Restarting Phase = "restarting" // the component starts with it
	Awaiting   Phase = "awaiting"   // it was written, and runs from the next reset of the host
	Finished   Phase = "finished"
	Failed     Phase = "failed"
	Cancelled  Phase = "cancelled"
)

// trigger moves an update from one phase to another.
type trigger string

const (
	elapsed   trigger = "time is up"
	refused   trigger = "image refused"
	needless  trigger = "nothing to do"
	atOnce    trigger = "to be written now"
	atReset   trigger = "to be written at a reset"
	atTime    trigger = "to be written at a time"
	atRequest trigger = "to be written on request"
	hostReset trigger = "host was reset"
	started   trigger = "start requested"
	further   trigger = "written, and more components to come"
	restarts  trigger = "written, and the component restarts"
	needsHost trigger = "written, and the host has to be reset"
	kept      trigger = "written, to be activated later"
	broke     trigger = "it went wrong"
	cutOff    trigger = "the power went"
	expired   trigger = "the maintenance window has ended"
	cancelled trigger = "cancelled"
)

type move struct {
	from Phase
	on   trigger
}

// moves is the life of an update. A pair that is absent does not happen; where
// a command asks for it, it is refused with ErrBusy.
var moves = map[move]Phase{
	{Received, elapsed}:    Verifying,
	{Received, broke}:      Failed,
	{Verifying, refused}:   Failed,
	{Verifying, broke}:     Failed,
	{Verifying, needless}:  Finished,
	{Verifying, atOnce}:    Applying,
	{Verifying, atReset}:   Waiting,
	{Verifying, atTime}:    Scheduled,
	{Verifying, atRequest}: Held,
	{Scheduled, elapsed}:   Applying,
	{Scheduled, atReset}:   Waiting, // the component has no power
	{Held, started}:        Applying,
	{Held, atReset}:        Waiting,
	{Waiting, hostReset}:   Applying,
	{Waiting, expired}:     Failed,
	{Applying, further}:    Applying,
	{Applying, restarts}:   Restarting,
	{Applying, needsHost}:  Awaiting,
	{Applying, kept}:       Finished,
	{Applying, broke}:      Failed,
	{Applying, cutOff}:     Failed,
	{Awaiting, hostReset}:  Finished,
	{Restarting, elapsed}:  Finished,
	{Restarting, broke}:    Failed,
	{Received, cancelled}:  Cancelled,
	{Verifying, cancelled}: Cancelled,
	{Scheduled, cancelled}: Cancelled,
	{Held, cancelled}:      Cancelled,
	{Waiting, cancelled}:   Cancelled,
	{Awaiting, cancelled}:  Cancelled,
}

// lasts tells how long a phase takes a component; nil lasts until something
// happens.
var lasts = map[Phase]func(Timings) time.Duration{
	Received:   func(t Timings) time.Duration { return t.Transfer },
	Verifying:  func(t Timings) time.Duration { return t.Verify },
	Applying:   func(t Timings) time.Duration { return t.Apply },
	Restarting: func(t Timings) time.Duration { return t.Restart },
}

// told is the note with which a phase begins in an update's job.
var told = map[Phase]event.Kind{
	Received:   event.UpdateTransferring,
	Verifying:  event.UpdateVerifying,
	Applying:   event.UpdateInstalling,
	Restarting: event.UpdateActivating,
	Scheduled:  event.UpdateAwaitsTime,
	Waiting:    event.UpdateAwaitsReset,
	Held:       event.UpdateAwaitsStart,
	Awaiting:   event.UpdateAwaitsActivation,
}

// ended tells whether a phase is the last.
func (p Phase) ended() bool { return p == Finished || p == Failed || p == Cancelled }

// maxUpdates bounds how many updates are under way in one machine.
const maxUpdates = 32

// Stage begins an update with an image that the BMC holds. What is wrong with
// the image, or between it and the components, fails the update when it is
// verified, as it does where nobody can look into an image before.
type Stage struct {
	ID     string // of the update; new
	Task   string
	Image  Image
	Defect Defect   // that reading the image has found
	Only   []string // IDs of components; none: all that the image fits
	Not    []string
	Force  bool
	Keep   bool // write it, and leave it to Activate to run it
	When   When // no Apply: Immediate
}

func (c Stage) apply(f *Firmware, now time.Time) ([]event.Event, error) {
	if c.When.Apply == "" {
		c.When.Apply = Immediate
	}
	if err := c.When.check(now, UpdateTimes); err != nil {
		return nil, err
	}
	for _, id := range slices.Concat(c.Only, c.Not) {
		if f.model.component(id) == nil {
			return nil, fmt.Errorf("%w: component %q", ErrUnknown, id)
		}
	}
	return f.begin(now, Update{
		ID: c.ID, Task: c.Task, Image: c.Image, Defect: c.Defect, Only: c.Only, Not: c.Not,
		Force: c.Force, Stage: c.Keep, When: c.When, Phase: Received,
	})
}

// Slot is one of the two slots from which Activate takes what is to run.
type Slot string

// The slots.
const (
	StagedSlot Slot = "staged"
	BackupSlot Slot = "backup"
)

// Activate makes components run what they hold in another slot.
type Activate struct {
	ID   string // of the update; new
	Task string
	Slot Slot
	On   []string // components
	When When     // no Apply: Immediate
}

func (c Activate) apply(f *Firmware, now time.Time) ([]event.Event, error) {
	if c.When.Apply == "" {
		c.When.Apply = Immediate
	}
	if err := c.When.check(now, UpdateTimes); err != nil {
		return nil, err
	}
	var what *Release
	for _, id := range c.On {
		x, ok := f.View().Component(id)
		release := x.Staged
		if c.Slot == BackupSlot {
			release = x.Backup
		}
		switch {
		case !ok || release == nil:
			return nil, fmt.Errorf("%w: component %q with a %s image", ErrUnknown, id, c.Slot)
		case x.Update != "":
			return nil, fmt.Errorf("%w: component %s: update %s is under way", ErrBusy, id, x.Update)
		case what != nil && (what.Version != release.Version || !x.alike(f.model.component(c.On[0]))):
			return nil, fmt.Errorf("%w: components hold different images", ErrUnknown)
		}
		what = release
	}
	if what == nil {
		return nil, fmt.Errorf("%w: no component", ErrUnknown)
	}
	first := f.model.component(c.On[0])
	u := Update{
		ID: c.ID, Task: c.Task, Only: slices.Clone(c.On), Restore: true, When: c.When, Phase: Verifying,
		Image: Image{
			Kind: first.Kind, Vendor: first.Vendor, Model: first.Model, Version: what.Version,
			Lowest: what.Lowest, Released: what.Released, Size: what.Size, SHA256: what.SHA256,
		},
	}
	return f.begin(now, u)
}

func (f *Firmware) begin(now time.Time, u Update) ([]event.Event, error) {
	var all []Update
	if f.st != nil {
		all = f.st.Updates
	}
	if u.ID == "" || slices.ContainsFunc(all, func(o Update) bool { return o.ID == u.ID }) {
		return nil, fmt.Errorf("%w: update %q: its ID must be new", ErrBusy, u.ID)
	}
	if len(all) >= maxUpdates {
		return nil, fmt.Errorf("%w: %d updates are under way", ErrBusy, len(all))
	}
	st := f.edit()
	st.Updates = append(slices.Clone(all), u)
	f.keep(st)
	return f.enter(now, u), nil
}

// StartUpdates starts what is held until it is asked for.
type StartUpdates struct{}

func (c StartUpdates) apply(f *Firmware, now time.Time) ([]event.Event, error) {
	var evs []event.Event
	for _, u := range f.updates() {
		if u.Phase == Held {
			evs = append(evs, f.write(now, u, started)...)
		}
	}
	return evs, nil
}

// CancelUpdate gives up the update that has an ID or is of a job, unless it is
// being written.
type CancelUpdate struct{ ID, Task string }

func (c CancelUpdate) apply(f *Firmware, now time.Time) ([]event.Event, error) {
	for _, u := range f.updates() {
		if u.ID != c.ID && (c.Task == "" || u.Task != c.Task) {
			continue
		}
		if _, ok := moves[move{u.Phase, cancelled}]; !ok {
			return nil, fmt.Errorf("%w: update %s is %s", ErrBusy, u.ID, u.Phase)
		}
		return f.step(now, u, cancelled, ""), nil
	}
	return nil, fmt.Errorf("%w: update %q", ErrUnknown, c.ID+c.Task)
}

// Break makes the next update of a component go wrong in the middle of a phase:
// received, verifying, applying or restarting.
type Break struct {
	Component string
	Phase     Phase
	At        int `json:"At,omitempty"` // percent of the phase, from 1; 0 is half of it
}

func (c Break) apply(f *Firmware, _ time.Time) ([]event.Event, error) {
	_, can := moves[move{c.Phase, broke}]
	if c.At == 0 {
		c.At = 50
	}
	if f.model.component(c.Component) == nil || !can || c.At < 1 || c.At > 100 {
		return nil, fmt.Errorf("%w: component %q that can break while %q", ErrUnknown, c.Component, c.Phase)
	}
	st := f.edit()
	st.Breaks = append(slices.Clone(st.Breaks), c)
	f.keep(st)
	return nil, nil
}

// updates are the updates as they stand, to be ranged over while they change.
func (f *Firmware) updates() []Update {
	if f.st == nil {
		return nil
	}
	return f.st.Updates
}

package firmware

import (
	"fmt"
	"slices"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// Update is a firmware update in progress. An update that has ended is removed;
// its result is in the components' slots.
type Update struct {
	ID       string    `json:"id"`
	Task     string    `json:"job,omitempty"`
	Image    Image     `json:"image"`
	Defect   Defect    `json:"defect,omitempty"`  // found by its verification
	Only     []string  `json:"only,omitempty"`    // IDs of components to update; none: all that it fits
	Not      []string  `json:"not,omitempty"`     // IDs of components not to update
	Targets  []string  `json:"targets,omitempty"` // IDs of components that verification has chosen
	At       int       `json:"at,omitempty"`      // index in Targets of the one being written
	Force    bool      `json:"force,omitempty"`   // regardless of versions
	Stage    bool      `json:"stage,omitempty"`   // write only; Activate runs it
	Restore  bool      `json:"restore,omitempty"` // by Activate: runs an image that a slot already holds
	When     When      `json:"when"`
	Phase    Phase     `json:"phase"`
	Deadline time.Time `json:"deadline,omitzero"`
	InPOST   bool      `json:"inPOST,omitempty"` // written while POST waits
	Breaks   bool      `json:"breaks,omitempty"` // the phase will fail
}

// has reports whether an update has exclusive use of a component.
func (u *Update) has(component string) bool { return slices.Contains(u.Targets, component) }

// UpdateTimes lists the apply times of updates in the order in which services
// list them.
var UpdateTimes = []ApplyTime{Immediate, OnReset, AtMaintenanceWindowStart, InMaintenanceWindowOnReset, OnStartUpdateRequest}

// Phase is the state of an update. Values are stored.
type Phase string

// The phases.
const (
	Received   Phase = "received"   // the image is transferred to the component
	Verifying  Phase = "verifying"  // the component verifies it
	Scheduled  Phase = "scheduled"  // waits for a time
	Waiting    Phase = "waiting"    // waits for a reset of the host
	Held       Phase = "held"       // waits for StartUpdates
	Applying   Phase = "applying"   // is written
	Restarting Phase = "restarting" // the component restarts
	Awaiting   Phase = "awaiting"   // written, runs after the next reset of the host
	Finished   Phase = "finished"
	Failed     Phase = "failed"
	Cancelled  Phase = "cancelled"
)

// trigger causes a transition between phases.
type trigger string

const (
	elapsed      trigger = "time is up"
	refused      trigger = "image refused"
	needless     trigger = "nothing to do"
	atOnce       trigger = "to be written now"
	atReset      trigger = "to be written at a reset"
	atTime       trigger = "to be written at a time"
	atRequest    trigger = "to be written on request"
	hostReset    trigger = "host was reset"
	started      trigger = "start requested"
	further      trigger = "written, and more components to come"
	restarts     trigger = "written, and the component restarts"
	needsHost    trigger = "written, and the host has to be reset"
	notActivated trigger = "written, to be activated later"
	broke        trigger = "it went wrong"
	cutOff       trigger = "the power went"
	expired      trigger = "the maintenance window has ended"
	cancelled    trigger = "cancelled"
)

type move struct {
	from Phase
	on   trigger
}

// moves is the state machine of updates. A missing pair does not happen; a
// command that needs it answers ErrBusy.
var moves = map[move]Phase{
	{Received, elapsed}:      Verifying,
	{Received, broke}:        Failed,
	{Verifying, refused}:     Failed,
	{Verifying, broke}:       Failed,
	{Verifying, needless}:    Finished,
	{Verifying, atOnce}:      Applying,
	{Verifying, atReset}:     Waiting,
	{Verifying, atTime}:      Scheduled,
	{Verifying, atRequest}:   Held,
	{Scheduled, elapsed}:     Applying,
	{Scheduled, atReset}:     Waiting, // the component has no power
	{Held, started}:          Applying,
	{Held, atReset}:          Waiting,
	{Waiting, hostReset}:     Applying,
	{Waiting, expired}:       Failed,
	{Applying, further}:      Applying,
	{Applying, restarts}:     Restarting,
	{Applying, needsHost}:    Awaiting,
	{Applying, notActivated}: Finished,
	{Applying, broke}:        Failed,
	{Applying, cutOff}:       Failed,
	{Awaiting, hostReset}:    Finished,
	{Restarting, elapsed}:    Finished,
	{Restarting, broke}:      Failed,
	{Received, cancelled}:    Cancelled,
	{Verifying, cancelled}:   Cancelled,
	{Scheduled, cancelled}:   Cancelled,
	{Held, cancelled}:        Cancelled,
	{Waiting, cancelled}:     Cancelled,
	{Awaiting, cancelled}:    Cancelled,
}

// lasts returns a phase's duration for a component; nil lasts until an event.
var lasts = map[Phase]func(Timings) time.Duration{
	Received:   func(t Timings) time.Duration { return t.Transfer },
	Verifying:  func(t Timings) time.Duration { return t.Verify },
	Applying:   func(t Timings) time.Duration { return t.Apply },
	Restarting: func(t Timings) time.Duration { return t.Restart },
}

// phaseMessages maps phases to the messages of an update's task.
var phaseMessages = map[Phase]event.Kind{
	Received:   event.UpdateTransferring,
	Verifying:  event.UpdateVerifying,
	Applying:   event.UpdateInstalling,
	Restarting: event.UpdateActivating,
	Scheduled:  event.UpdateAwaitsTime,
	Waiting:    event.UpdateAwaitsReset,
	Held:       event.UpdateAwaitsStart,
	Awaiting:   event.UpdateAwaitsActivation,
}

// ended reports whether a phase is final.
func (p Phase) ended() bool { return p == Finished || p == Failed || p == Cancelled }

// maxUpdates is the maximum number of updates in progress per machine.
const maxUpdates = 32

// Stage begins an update with an image that the BMC has. An image that is
// invalid or does not fit fails the update at its verification.
type Stage struct {
	ID     string // ID of the update; must be new
	Task   string
	Image  Image
	Defect Defect   // found when the image was read
	Only   []string // IDs of components; none: all that the image fits
	Not    []string
	Force  bool
	Keep   bool // write only; Activate runs it
	When   When // zero: Immediate
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

// Slot is a slot whose image Activate runs.
type Slot string

// The slots.
const (
	StagedSlot Slot = "staged"
	BackupSlot Slot = "backup"
)

// Activate makes components run the image in another slot.
type Activate struct {
	ID   string // ID of the update; must be new
	Task string
	Slot Slot
	On   []string // IDs of components
	When When     // zero: Immediate
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

// StartUpdates starts the updates that are held.
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

// CancelUpdate cancels the update with that ID or task, unless it is being
// written.
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

// Break makes the next update of a component fail in a phase: received,
// verifying, applying or restarting.
type Break struct {
	Component string
	Phase     Phase
	At        int `json:"At,omitempty"` // percent of the phase, from 1; 0: 50
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

// updates returns the updates, for iterating while they change.
func (f *Firmware) updates() []Update {
	if f.st == nil {
		return nil
	}
	return f.st.Updates
}

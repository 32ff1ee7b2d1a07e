package firmware

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
	"github.com/metalab-dev/metalab/emulator/natural"
)

// step makes one transition of an update; only it assigns the phase. A missing
// transition changes nothing.
func (f *Firmware) step(now time.Time, u Update, on trigger, fault string) []event.Event {
	to, ok := moves[move{u.Phase, on}]
	if !ok {
		return nil
	}
	u.Phase, u.Deadline, u.Breaks = to, time.Time{}, false
	return f.enter(now, u, fault)
}

// enter carries out the beginning of a new phase of an update.
func (f *Firmware) enter(now time.Time, u Update, fault ...string) []event.Event {
	why := strings.Join(fault, "")
	if u.Phase.ended() {
		return f.end(now, u, why)
	}
	c := f.now(u)
	if last := lasts[u.Phase]; last != nil {
		var d time.Duration
		if c != nil && !(u.Restore && u.Phase == Applying) {
			d = last(c.Timings)
		}
		if at := f.breaks(c, &u); at > 0 {
			d = d * time.Duration(at) / 100
		}
		u.Deadline = now.Add(d)
	}
	switch u.Phase {
	case Scheduled:
		if u.Deadline = u.When.Start; now.After(u.Deadline) {
			u.Deadline = now
		}
	case Waiting:
		if u.When.Apply == InMaintenanceWindowOnReset {
			u.Deadline = u.When.end()
		}
	}
	f.put(u)
	subject := ""
	if c != nil {
		subject = c.ID
	}
	evs := f.taskMessage(now, u, phaseMessages[u.Phase], subject)
	if u.Task == "" {
		return evs
	}
	if lasts[u.Phase] == nil {
		return append(evs, event.TaskWaiting{At: now, Task: u.Task})
	}
	return append(evs, event.TaskRunning{At: now, Task: u.Task, Until: now.Add(f.rest(u))})
}

// now returns the component that an update is working on; before its targets
// are chosen, the first one that the image fits; nil when there is none.
func (f *Firmware) now(u Update) *Component {
	if len(u.Targets) > 0 {
		return f.model.component(u.Targets[min(u.At, len(u.Targets)-1)])
	}
	for i := range f.model.Components {
		if c := &f.model.Components[i]; c.takes(u) {
			return c
		}
	}
	return nil
}

// takes reports whether an update's image fits a component that it is for.
func (c *Component) takes(u Update) bool {
	return c.Kind == u.Image.Kind && c.Vendor == u.Image.Vendor && c.Model == u.Image.Model && !c.Fixed &&
		(len(u.Only) == 0 || slices.Contains(u.Only, c.ID)) && !slices.Contains(u.Not, c.ID)
}

// rest returns how long an update takes from the beginning of its phase,
// without waiting times.
func (f *Firmware) rest(u Update) time.Duration {
	c := f.now(u)
	if c == nil {
		return 0
	}
	left := time.Duration(max(1, len(u.Targets)-u.At))
	t := c.Timings
	switch u.Phase {
	case Received:
		return t.Transfer + t.Verify + left*t.Apply + t.Restart
	case Verifying:
		return t.Verify + left*t.Apply + t.Restart
	case Applying:
		return left*t.Apply + t.Restart
	}
	return t.Restart
}

// breaks returns the percentage of the phase after which a Break fails it, and
// removes the Break; 0: none.
func (f *Firmware) breaks(c *Component, u *Update) int {
	if c == nil || f.st == nil {
		return 0
	}
	i := slices.IndexFunc(f.st.Breaks, func(b Break) bool { return b.Component == c.ID && b.Phase == u.Phase })
	if i < 0 {
		return 0
	}
	at := f.st.Breaks[i].At
	if at == 0 { // stored by a release in which all Breaks were at half
		at = 50
	}
	st := f.edit()
	if st.Breaks = slices.Delete(slices.Clone(st.Breaks), i, i+1); len(st.Breaks) == 0 {
		st.Breaks = nil
	}
	f.keep(st)
	u.Breaks = true
	return at
}

// due advances an update whose deadline has passed.
func (f *Firmware) due(at time.Time, u Update) []event.Event {
	if u.Breaks {
		return f.fail(at, u, broke)
	}
	switch u.Phase {
	case Verifying:
		return f.verified(at, u)
	case Scheduled:
		evs := f.write(at, u, elapsed)
		return append(evs, f.wantReset(at, u)...)
	case Waiting:
		return f.step(at, u, expired, "the maintenance window ended before a reset")
	case Applying:
		return f.written(at, u)
	}
	return f.step(at, u, elapsed, "")
}

// wantReset asks for a reset of the host, when an update at a maintenance
// window needs one.
func (f *Firmware) wantReset(at time.Time, u Update) []event.Event {
	i := slices.IndexFunc(f.updates(), func(o Update) bool { return o.ID == u.ID })
	if i < 0 || f.updates()[i].Phase != Waiting {
		return nil
	}
	return []event.Event{ResetWanted{At: at}}
}

// verified decides how an update continues after the verification of its image.
func (f *Firmware) verified(at time.Time, u Update) []event.Event {
	if u.Defect != "" {
		evs := f.taskMessage(at, u, event.UpdateNotVerified, "")
		return append(evs, f.step(at, u, refused, "the image was refused: "+string(u.Defect))...)
	}
	var evs []event.Event
	fits, low := false, false
	for i := range f.model.Components {
		c := &f.model.Components[i]
		if !c.takes(u) {
			continue
		}
		fits = true
		x := f.View().inventory(c)
		switch {
		case x.Update != "":
			evs = append(evs, f.taskMessage(at, u, event.UpdateSkipped, c.ID)...)
			return append(evs, f.step(at, u, refused, "component "+c.ID+" is being updated already")...)
		case u.Restore || u.Force:
			u.Targets = append(u.Targets, c.ID)
		case x.Active.Lowest != "" && natural.Compare(u.Image.Version, x.Active.Lowest) < 0:
			low = true
			evs = append(evs, f.taskMessage(at, u, event.UpdateTooLow, c.ID)...)
		case x.Active.Version == u.Image.Version && !x.Broken && !x.Saved:
			evs = append(evs, f.taskMessage(at, u, event.UpdateSame, c.ID)...)
		default:
			u.Targets = append(u.Targets, c.ID)
		}
	}
	switch {
	case !fits:
		evs = append(evs, f.taskMessage(at, u, event.UpdateNotApplicable, strings.Join(u.Only, ", "))...)
		return append(evs, f.step(at, u, refused, "no component takes images for "+u.Image.Model+" of "+u.Image.Vendor)...)
	case len(u.Targets) == 0 && low:
		return append(evs, f.step(at, u, refused, "version "+u.Image.Version+" is below the lowest that is supported")...)
	case len(u.Targets) == 0:
		return append(evs, f.step(at, u, needless, "")...)
	}
	switch u.When.Apply {
	case OnReset, InMaintenanceWindowOnReset:
		return append(evs, f.step(at, u, atReset, "")...)
	case AtMaintenanceWindowStart:
		return append(evs, f.step(at, u, atTime, "")...)
	case OnStartUpdateRequest:
		return append(evs, f.step(at, u, atRequest, "")...)
	}
	return append(evs, f.write(at, u, atOnce)...)
}

// write begins to write, or waits for the host when components need host power
// and it is off.
func (f *Firmware) write(at time.Time, u Update, on trigger) []event.Event {
	if c := f.now(u); c != nil && c.HostPower && !f.on {
		on = atReset
	}
	return f.step(at, u, on, "")
}

// written stages the image of one component, and continues with the next
// or activates all.
func (f *Firmware) written(at time.Time, u Update) []event.Event {
	c := f.now(u)
	x := f.st.slots(c.ID)
	if !u.Restore {
		x.Staged = &Release{
			Version: u.Image.Version, Lowest: u.Image.Lowest, Released: u.Image.Released,
			Size: u.Image.Size, SHA256: u.Image.SHA256, At: at,
		}
		st := f.edit()
		st.set(x)
		f.keep(st)
	}
	if u.At+1 < len(u.Targets) {
		u.At++
		return f.step(at, u, further, "")
	}
	switch {
	case u.Stage:
		return f.step(at, u, notActivated, "")
	case c.Activation == ByHost && !u.InPOST:
		evs := f.step(at, u, needsHost, "")
		if u.When.Apply == AtMaintenanceWindowStart {
			evs = append(evs, ResetWanted{At: at})
		}
		return evs
	}
	evs := f.step(at, u, restarts, "")
	if c.Activation == ByBMC {
		evs = append(evs, event.Restart{At: at, Subject: event.Subject{Part: event.BMC}})
	}
	return evs
}

// fail ends an update that failed, and leaves the component in the resulting
// state.
func (f *Firmware) fail(at time.Time, u Update, on trigger) []event.Event {
	c := f.now(u)
	fault := map[Phase]string{
		Received:   "the image did not reach the component",
		Verifying:  "the image was damaged on its way to the component",
		Applying:   "writing the image was interrupted",
		Restarting: "the component does not start with the image",
	}[u.Phase]
	kind := map[Phase]event.Kind{
		Received: event.UpdateNotTransferred, Verifying: event.UpdateNotVerified,
		Applying: event.UpdateNotInstalled, Restarting: event.UpdateNotActivated,
	}[u.Phase]
	evs := f.taskMessage(at, u, kind, c.ID)
	if u.Phase == Applying || u.Phase == Restarting {
		x := f.st.slots(c.ID)
		x.Staged, x.Broken = nil, true
		st := f.edit()
		st.set(x)
		f.keep(st)
		state := event.ComponentBroken
		if c.Backup != "" {
			state = event.ComponentSaved
		}
		evs = append(evs, f.note(at, state, subject(c), c.ID)...)
	}
	return append(evs, f.step(at, u, on, fault)...)
}

// end removes an update, and activates what was written if it succeeded.
func (f *Firmware) end(now time.Time, u Update, fault string) []event.Event {
	st := f.edit()
	st.Updates = slices.DeleteFunc(slices.Clone(st.Updates), func(o Update) bool { return o.ID == u.ID })
	if len(st.Updates) == 0 {
		st.Updates = nil
	}
	f.keep(st)
	var evs []event.Event
	switch {
	case u.Phase == Finished && !u.Stage:
		for _, id := range u.Targets {
			evs = append(evs, f.activate(now, u, f.model.component(id))...)
		}
	case u.Phase == Cancelled:
		f.unstage(u)
		if u.Task != "" {
			return []event.Event{event.TaskDone{At: now, Task: u.Task, Cancelled: true}}
		}
	case u.Phase == Failed:
		f.unstage(u)
		evs = append(evs, f.note(now, event.UpdateFailed, event.Subject{Part: event.Component, ID: strings.Join(u.Targets, ", ")}, u.Image.Name(), fault)...)
	}
	return append(evs, done(now, u.Task, fault)...)
}

// activate makes a component run its staged or backup image.
func (f *Firmware) activate(now time.Time, u Update, c *Component) []event.Event {
	was := f.View().inventory(c)
	x := f.st.slots(c.ID)
	runs := x.Staged
	if u.Restore && (runs == nil || runs.Version != u.Image.Version) {
		runs = was.Backup
	}
	if runs == nil {
		return nil
	}
	old := was.Active
	if c.Backup != "" && !x.Broken {
		x.Backup = &old
	}
	if runs == x.Staged {
		x.Staged = nil
	}
	x.Active, x.Broken = runs, false
	st := f.edit()
	st.set(x)
	f.keep(st)
	evs := f.taskMessage(now, u, event.UpdateDone, c.ID)
	return append(evs, f.note(now, event.ComponentUpdated, subject(c), c.ID, old.Version, runs.Version)...)
}

// unstage drops what an update has written and nothing runs.
func (f *Firmware) unstage(u Update) {
	if u.Restore {
		return // what it was to activate was there before
	}
	st := f.edit()
	for _, id := range u.Targets {
		if x := st.slots(id); x.Staged != nil && x.Staged.SHA256 == u.Image.SHA256 {
			x.Staged = nil
			st.set(x)
		}
	}
	f.keep(st)
}

// put replaces an update.
func (f *Firmware) put(u Update) {
	st := f.edit()
	st.Updates = slices.Clone(st.Updates)
	for i := range st.Updates {
		if st.Updates[i].ID == u.ID {
			st.Updates[i] = u
		}
	}
	f.keep(st)
}

// taskMessage returns a message of an update's task.
func (f *Firmware) taskMessage(at time.Time, u Update, k event.Kind, component string) []event.Event {
	if u.Task == "" || k == "" {
		return nil
	}
	return []event.Event{event.TaskMessage{Task: u.Task, Note: event.Note{
		At: at, Kind: k, Subject: event.Subject{Part: event.Component, ID: component}, Args: []string{u.Image.Name(), cmp.Or(component, updateService)},
	}}}
}

// updateService has an image until it is verified: only then it is known which
// component takes it.
const updateService = "the update service"

func subject(c *Component) event.Subject { return event.Subject{Part: event.Component, ID: c.ID} }

package firmware

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/metalab-dev/metalab/emulator/machine/event"
)

// ApplyTime says when something takes effect; the values are Redfish's
// (DSP2046, Settings.ApplyTime and UpdateService.ApplyTime).
type ApplyTime string

// The apply times.
const (
	Immediate                  ApplyTime = "Immediate"                  // at once
	OnReset                    ApplyTime = "OnReset"                    // at the next reset of the system
	AtMaintenanceWindowStart   ApplyTime = "AtMaintenanceWindowStart"   // when the maintenance window begins
	InMaintenanceWindowOnReset ApplyTime = "InMaintenanceWindowOnReset" // at a reset within the maintenance window
	OnStartUpdateRequest       ApplyTime = "OnStartUpdateRequest"       // updates only
)

// SettingsTimes lists the apply times of settings in the order in which
// services list them.
var SettingsTimes = []ApplyTime{OnReset, Immediate, AtMaintenanceWindowStart, InMaintenanceWindowOnReset}

// When says when something takes effect.
type When struct {
	Apply  ApplyTime     `json:"apply"`
	Start  time.Time     `json:"start,omitzero"`   // start of the maintenance window
	Length time.Duration `json:"length,omitempty"` // length of the maintenance window
}

// windowed reports whether the apply time has a maintenance window.
func (w When) windowed() bool {
	return w.Apply == AtMaintenanceWindowStart || w.Apply == InMaintenanceWindowOnReset
}

func (w When) end() time.Time { return w.Start.Add(w.Length) }

// within reports whether the window is open.
func (w When) within(now time.Time) bool { return !now.Before(w.Start) && now.Before(w.end()) }

// check checks that an apply time is one of those known and possible.
func (w When) check(now time.Time, known []ApplyTime) error {
	switch {
	case !slices.Contains(known, w.Apply):
		return fmt.Errorf("%w: %q: must be one of %v", ErrWhen, w.Apply, known)
	case !w.windowed():
		return nil
	case w.Start.IsZero() || w.Length <= 0:
		return fmt.Errorf("%w: %s: must have a maintenance window with a start and a length", ErrWhen, w.Apply)
	case !now.Before(w.end()):
		return fmt.Errorf("%w: %s: the maintenance window was over at %s", ErrWhen, w.Apply, w.end().Format(time.RFC3339))
	}
	return nil
}

// Pending holds settings that wait to be applied.
type Pending struct {
	Defaults bool          `json:"defaults,omitempty"` // reset to defaults first
	Settings Settings      `json:"settings,omitempty"` // requested values that change something
	When     When          `json:"when"`
	Held     bool          `json:"held,omitempty"` // no reset applies it until an apply time is given
	Due      bool          `json:"due,omitempty"`  // the window is open: the next reset applies it
	Since    time.Time     `json:"since,omitzero"`
	Tasks    []string      `json:"jobs,omitempty"`  // tasks that end with it
	Takes    time.Duration `json:"takes,omitempty"` // duration of applying it, if there are tasks
	Lag      int           `json:"lag,omitempty"`   // number of settings at the end that turn out to be unknown
}

// Finishing holds tasks whose settings were applied, until POST has finished
// with them.
type Finishing struct {
	Tasks []string  `json:"jobs"`
	At    time.Time `json:"at"`
}

// Applied holds what was applied last.
type Applied struct {
	At       time.Time `json:"at"`
	Defaults bool      `json:"defaults,omitempty"`
	Settings Settings  `json:"settings,omitempty"` // requested
	Unknown  Settings  `json:"unknown,omitempty"`  // requested, but unknown
	Expired  bool      `json:"expired,omitempty"`  // not applied: no reset came in the window
}

// SetAttributes changes settings: all of them or, with an AttributeErrors,
// none. Settings for later are added to the pending ones, and When applies to
// all of them.
type SetAttributes struct {
	Settings []Setting
	When     When   // zero: that of the pending settings, or OnReset
	Password string // password that protects the settings, where one is set
	Task     string // ends when the settings are applied; "": none
	// Hold keeps settings without an apply time until a change with one comes,
	// even an empty one.
	Hold  bool
	Takes time.Duration // how long POST takes to apply them, if there is a task
	Lag   int           // number of settings at the end, by name, that POST will not know
}

func (c SetAttributes) apply(f *Firmware, now time.Time) ([]event.Event, error) {
	p := f.pending()
	waits := p.Settings != nil || p.Defaults
	held := c.Hold && c.When.Apply == "" && (p.Held || !waits)
	if c.Hold && c.When.Apply != "" && len(c.Settings) == 0 && !waits {
		return nil, ErrNothing
	}
	if c.When.Apply == "" {
		if c.When = p.When; c.When.Apply == "" {
			c.When.Apply = OnReset
		}
	}
	if err := c.When.check(now, SettingsTimes); err != nil {
		return nil, err
	}
	if err := f.guard(c.Password); err != nil {
		return nil, err
	}
	if c.When.Apply == Immediate {
		return c.atOnce(f, now)
	}
	base := f.base(p.Defaults)
	if errs := f.judge(base, p.Settings, c.Settings, false); len(errs) > 0 {
		return nil, errs
	}
	for _, s := range c.Settings {
		if base(s.Name) == s.Value {
			p.Settings = p.Settings.without(s.Name)
		} else {
			p.Settings = p.Settings.with(s.Name, s.Value)
		}
	}
	p.Held, p.Takes, p.Lag = held, max(p.Takes, c.Takes), c.Lag
	return f.wait(now, p, c.When, c.Task), nil
}

func (c SetAttributes) atOnce(f *Firmware, now time.Time) ([]event.Event, error) {
	base := f.base(false)
	if errs := f.judge(base, nil, c.Settings, true); len(errs) > 0 {
		return nil, errs
	}
	var set Settings
	for _, s := range c.Settings {
		set = set.with(s.Name, s.Value)
	}
	st := f.edit()
	st.Values = f.differ(f.settle(base, set))
	st.Applied = &Applied{At: now, Settings: set}
	f.keep(st)
	evs := append(f.note(now, event.SettingsApplied, system, names(set)), done(now, c.Task, "")...)
	p := f.pending()
	left := p.Settings
	for _, s := range set {
		left = left.without(s.Name)
	}
	if len(left) == len(p.Settings) {
		return evs, nil
	}
	st = f.edit()
	if st.Pending = nil; left != nil || p.Defaults {
		p.Settings, st.Pending = left, &p
	}
	f.keep(st)
	if st.Pending == nil {
		evs = append(evs, give(now, p.Tasks, "")...)
	}
	return evs, nil
}

// ResetBIOS resets all settings to their defaults at the next reset. Pending
// settings are dropped.
type ResetBIOS struct{ Task string }

func (c ResetBIOS) apply(f *Firmware, now time.Time) ([]event.Event, error) {
	p := f.pending()
	evs := give(now, p.Tasks, "replaced by a reset to the defaults")
	p = Pending{Defaults: true}
	return append(evs, f.wait(now, p, When{Apply: OnReset}, c.Task)...), nil
}

// ClearPending drops all pending settings.
type ClearPending struct{}

func (c ClearPending) apply(f *Firmware, now time.Time) ([]event.Event, error) {
	p := f.pending()
	if f.st == nil || f.st.Pending == nil {
		return nil, nil
	}
	st := f.edit()
	st.Pending = nil
	f.keep(st)
	evs := f.note(now, event.SettingsCleared, system)
	for _, j := range p.Tasks {
		evs = append(evs, event.TaskDone{At: now, Task: j, Cancelled: true})
	}
	return evs, nil
}

// pending returns a copy of the pending settings.
func (f *Firmware) pending() Pending {
	if f.st == nil || f.st.Pending == nil {
		return Pending{}
	}
	p := *f.st.Pending
	p.Tasks = slices.Clone(p.Tasks)
	return p
}

// wait stores p as pending, or nothing when p changes nothing.
func (f *Firmware) wait(now time.Time, p Pending, when When, task string) []event.Event {
	st := f.edit()
	if p.Settings == nil && !p.Defaults {
		st.Pending = nil
		f.keep(st)
		return append(give(now, p.Tasks, ""), done(now, task, "")...)
	}
	p.When, p.Due, p.Since = when, false, now
	if task != "" {
		p.Tasks = append(p.Tasks, task)
	}
	st.Pending = &p
	f.keep(st)
	if p.Defaults && p.Settings == nil {
		return f.note(now, event.DefaultsPending, system)
	}
	return f.note(now, event.SettingsPending, system, names(p.Settings))
}

// base returns the values that a change starts from: the present ones, or the
// defaults, except for attributes that are unique to a system.
func (f *Firmware) base(defaults bool) func(string) Value {
	if !defaults {
		return f.View().value
	}
	return func(name string) Value {
		a := f.model.Registry().Attribute(name)
		if a == nil || a.Unique {
			return f.View().value(name)
		}
		return a.Default
	}
}

// over overlays values with others.
func over(base func(string) Value, set Settings) func(string) Value {
	return func(name string) Value {
		if v, ok := set.Lookup(name); ok {
			return v
		}
		return base(name)
	}
}

// judge checks a change together with the pending settings. The rules are those
// of the resulting values: a change may itself allow what it sets, unless the
// registry is strict.
func (f *Firmware) judge(base func(string) Value, pending Settings, change []Setting, atOnce bool) AttributeErrors {
	var errs AttributeErrors
	all := pending
	seen := map[string]bool{}
	for _, s := range change {
		a := f.model.Registry().Attribute(s.Name)
		switch {
		case a == nil:
			errs = append(errs, &AttributeError{Name: s.Name, Value: s.Value, Fault: Unknown})
		case seen[s.Name]:
			errs = append(errs, &AttributeError{Name: s.Name, Value: s.Value, Fault: Twice, Of: a})
		case a.Type == PasswordType:
			errs = append(errs, &AttributeError{Name: s.Name, Fault: ByAction, Of: a})
		default:
			seen[s.Name] = true
			all = all.with(s.Name, s.Value)
		}
	}
	u := f.model.Registry().rules(over(base, all))
	held := u
	if f.model.Registry().Strict {
		held = f.model.Registry().rules(base)
	}
	for _, s := range all {
		a := f.model.Registry().Attribute(s.Name)
		fault, by := u.judge(a, s.Value, base(s.Name))
		if governor, locked := held.locked(s.Name); fault == "" && locked && s.Value != base(s.Name) {
			fault, by = Governed, governor
		}
		if fault == "" && atOnce && a.ResetRequired && base(s.Name) != s.Value {
			fault = NeedsReset
		}
		if fault != "" {
			errs = append(errs, &AttributeError{Name: s.Name, Value: s.Value, Fault: fault, By: by, Of: a})
		}
	}
	return errs
}

// judge checks a value for an attribute, and returns the fault and the
// attribute that causes it. Setting the present value is no fault even if
// another attribute determines it.
func (u Rules) judge(a *Attribute, v, now Value) (fault Fault, by string) {
	by, locked := u.locked(a.Name)
	if a.Fact != "" || locked && by == "" {
		return Fixed, ""
	}
	if fault := u.fits(a, v); fault != "" {
		return fault, ""
	}
	if locked && v != now {
		return Governed, by
	}
	if u.Property(a.Name, CurrentValue) != v {
		return Governed, u.by[about{a.Name, CurrentValue}]
	}
	return "", ""
}

// settle returns the values after some are set and dependencies have changed
// others.
func (f *Firmware) settle(base func(string) Value, set Settings) func(string) Value {
	all := set
	for _, s := range f.model.Registry().rules(over(base, set)).forced() {
		all = all.with(s.Name, s.Value)
	}
	return over(base, all)
}

// differ returns the values that differ from the defaults.
func (f *Firmware) differ(value func(string) Value) Settings {
	var out Settings
	for i := range f.model.Registry().Attributes {
		a := &f.model.Registry().Attributes[i]
		if v := value(a.Name); a.Fact == "" && a.Type != PasswordType && v != a.Default {
			out = append(out, Setting{Name: a.Name, Value: v})
		}
	}
	slices.SortFunc(out, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// settings applies the pending settings if their time has come; POST calls it
// and waits for the returned time.
func (f *Firmware) settings(now time.Time) (evs []event.Event, hold time.Duration) {
	if f.st == nil || f.st.Pending == nil || f.st.Pending.Held {
		return nil, 0
	}
	p := f.st.Pending
	if p.When.Apply == InMaintenanceWindowOnReset && !p.When.within(now) || p.When.Apply == AtMaintenanceWindowStart && !p.Due {
		return nil, 0
	}
	st := f.edit()
	known := len(p.Settings) - min(p.Lag, len(p.Settings))
	st.Values = f.differ(f.settle(f.base(p.Defaults), p.Settings[:known:known]))
	st.Applied = &Applied{At: now, Defaults: p.Defaults, Settings: p.Settings[:known:known]}
	if known < len(p.Settings) {
		st.Applied.Unknown = p.Settings[known:]
	}
	st.Pending = nil
	later := len(p.Tasks) > 0 && p.Takes > 0
	if later {
		e := Finishing{Tasks: p.Tasks, At: now.Add(p.Takes)}
		if old := st.Finishing; old != nil { // its tasks end with the new ones
			e.Tasks = slices.Concat(old.Tasks, p.Tasks)
		}
		st.Finishing = &e
	}
	f.keep(st)
	if p.Defaults {
		evs = f.note(now, event.DefaultsApplied, system)
	}
	if known > 0 {
		evs = append(evs, f.note(now, event.SettingsApplied, system, names(p.Settings[:known]))...)
	}
	if !later {
		return append(evs, give(now, p.Tasks, "")...), 0
	}
	for _, j := range p.Tasks {
		evs = append(evs, event.TaskRunning{At: now, Task: j, Until: now.Add(p.Takes)})
	}
	return evs, p.Takes
}

// finish ends the tasks of applied settings.
func (f *Firmware) finish(now time.Time) []event.Event {
	st := f.edit()
	jobs := st.Finishing.Tasks
	st.Finishing = nil
	f.keep(st)
	return give(now, jobs, "")
}

// window handles the maintenance window of pending settings: its start asks for
// a reset, its end drops what no reset has applied.
func (f *Firmware) window(now time.Time) []event.Event {
	p := f.pending()
	st := f.edit()
	if p.When.Apply == AtMaintenanceWindowStart {
		p.Due = true
		st.Pending = &p
		f.keep(st)
		return []event.Event{ResetWanted{At: now}}
	}
	st.Pending, st.Applied = nil, &Applied{At: now, Settings: p.Settings, Expired: true}
	f.keep(st)
	evs := f.note(now, event.SettingsExpired, system, names(p.Settings))
	return append(evs, give(now, p.Tasks, "the maintenance window ended before a reset")...)
}

// due returns when the pending settings next change; zero: never.
func (p *Pending) due() time.Time {
	switch {
	case p == nil || p.Due:
	case p.When.Apply == AtMaintenanceWindowStart:
		return p.When.Start
	case p.When.Apply == InMaintenanceWindowOnReset:
		return p.When.end()
	}
	return time.Time{}
}

func names(s Settings) string {
	var all []string
	for _, one := range s {
		all = append(all, one.Name)
	}
	return strings.Join(all, ", ")
}

// give ends tasks.
func give(now time.Time, jobs []string, fault string) []event.Event {
	var evs []event.Event
	for _, j := range jobs {
		evs = append(evs, done(now, j, fault)...)
	}
	return evs
}

func done(now time.Time, task, fault string) []event.Event {
	if task == "" {
		return nil
	}
	return []event.Event{event.TaskDone{At: now, Task: task, Fault: fault}}
}

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
	Immediate                  ApplyTime = "Immediate"
	OnReset                    ApplyTime = "OnReset"
	AtMaintenanceWindowStart   ApplyTime = "AtMaintenanceWindowStart"
	InMaintenanceWindowOnReset ApplyTime = "InMaintenanceWindowOnReset"
	OnStartUpdateRequest       ApplyTime = "OnStartUpdateRequest" // updates only
)

// SettingsTimes are the apply times of settings, in the order in which
// services list them.
var SettingsTimes = []ApplyTime{OnReset, Immediate, AtMaintenanceWindowStart, InMaintenanceWindowOnReset}

// When says when something shall take effect.
type When struct {
	Apply  ApplyTime     `json:"apply"`
	Start  time.Time     `json:"start,omitzero"`   // of the maintenance window
	Length time.Duration `json:"length,omitempty"` // of it
}

// windowed tells whether an apply time speaks of a window.
func (w When) windowed() bool {
	return w.Apply == AtMaintenanceWindowStart || w.Apply == InMaintenanceWindowOnReset
}

func (w When) end() time.Time { return w.Start.Add(w.Length) }

// within tells whether the window is open.
func (w When) within(now time.Time) bool { return !now.Before(w.Start) && now.Before(w.end()) }

// check says what is wrong with a time, for things that know these.
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

// Pending is what waits to be applied.
type Pending struct {
	Defaults bool          `json:"defaults,omitempty"` // reset to them first
	Settings Settings      `json:"settings,omitempty"` // asked for, where they differ from what they change
	When     When          `json:"when"`
	Held     bool          `json:"held,omitempty"` // no reset applies it before somebody says when
	Due      bool          `json:"due,omitempty"`  // the window has begun: the next reset applies it
	Since    time.Time     `json:"since,omitzero"`
	Tasks    []string      `json:"jobs,omitempty"`  // that end with it
	Takes    time.Duration `json:"takes,omitempty"` // to apply it, if there are jobs
	Lag      int           `json:"lag,omitempty"`   // how many of the last settings turn out to be unknown
}

// Finishing are jobs whose settings were applied, until POST is done with that.
type Finishing struct {
	Tasks []string  `json:"jobs"`
	At    time.Time `json:"at"`
}

// Applied is what was applied last.
type Applied struct {
	At       time.Time `json:"at"`
	Defaults bool      `json:"defaults,omitempty"`
	Settings Settings  `json:"settings,omitempty"` // asked for
	Unknown  Settings  `json:"unknown,omitempty"`  // asked for, and then not known
	Expired  bool      `json:"expired,omitempty"`  // they were not applied: no reset came in the window
}

// SetAttributes changes settings: all of them or, with an AttributeErrors,
// none. Those that are to be applied later join what is pending already, and
// all of it then waits for When.
type SetAttributes struct {
	Settings []Setting
	When     When   // no Apply: that of what is pending, or OnReset
	Password string // that protects the settings, where one was set
	Task     string // ends when it was applied; "" when nobody asks
	// Hold keeps settings that come without an apply time until others, or none
	// at all, come with one.
	Hold  bool
	Takes time.Duration // for how long POST applies them, if there is a job
	Lag   int           // how many of the last of them, by name, POST will not know
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

// ResetBIOS gives all settings their defaults at the next reset. What was
// pending is given up.
type ResetBIOS struct{ Task string }

func (c ResetBIOS) apply(f *Firmware, now time.Time) ([]event.Event, error) {
	p := f.pending()
	evs := give(now, p.Tasks, "replaced by a reset to the defaults")
	p = Pending{Defaults: true}
	return append(evs, f.wait(now, p, When{Apply: OnReset}, c.Task)...), nil
}

// ClearPending gives up all that is pending.
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

// pending is a copy of what is pending, to be changed.
func (f *Firmware) pending() Pending {
	if f.st == nil || f.st.Pending == nil {
		return Pending{}
	}
	p := *f.st.Pending
	p.Tasks = slices.Clone(p.Tasks)
	return p
}

// wait makes p what is pending; nothing is when p changes nothing.
func (f *Firmware) wait(now time.Time, p Pending, when When, job string) []event.Event {
	st := f.edit()
	if p.Settings == nil && !p.Defaults {
		st.Pending = nil
		f.keep(st)
		return append(give(now, p.Tasks, ""), done(now, job, "")...)
	}
	p.When, p.Due, p.Since = when, false, now
	if job != "" {
		p.Tasks = append(p.Tasks, job)
	}
	st.Pending = &p
	f.keep(st)
	if p.Defaults && p.Settings == nil {
		return f.note(now, event.DefaultsPending, system)
	}
	return f.note(now, event.SettingsPending, system, names(p.Settings))
}

// base tells the values that a change starts from: those that hold, or the
// defaults, which leave alone what is of one system only.
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

// over tells values with others in their place.
func over(base func(string) Value, set Settings) func(string) Value {
	return func(name string) Value {
		if v, ok := set.Lookup(name); ok {
			return v
		}
		return base(name)
	}
}

// judge says what is wrong with a change that joins what is pending. Rules are
// those of all values together: a change may itself allow what it asks for,
// unless the registry is strict.
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
		if fault == "" && held.is(s.Name, ReadOnly) && s.Value != base(s.Name) {
			fault, by = Governed, held.governs(about{s.Name, ReadOnly})
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

// judge says what is wrong with a value of an attribute that has another one
// now, and which attribute makes it so. To set what is so already is not wrong
// because others govern it.
func (u Rules) judge(a *Attribute, v, now Value) (fault Fault, by string) {
	by = u.governs(about{a.Name, ReadOnly})
	locked := u.is(a.Name, ReadOnly)
	if a.Fact != "" || a.Immutable || locked && by == "" {
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

// settle is what values become when some are set: dependencies give others to
// further attributes.
func (f *Firmware) settle(base func(string) Value, set Settings) func(string) Value {
	all := set
	for _, s := range f.model.Registry().rules(over(base, set)).forced() {
		all = all.with(s.Name, s.Value)
	}
	return over(base, all)
}

// differ are the values that are not the defaults.
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

// settings applies what is pending if its time has come; POST calls it, and has
// to hold for as long as it returns.
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
		if old := st.Finishing; old != nil { // they end with these
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

// finish ends the jobs of settings that were applied.
func (f *Firmware) finish(now time.Time) []event.Event {
	st := f.edit()
	jobs := st.Finishing.Tasks
	st.Finishing = nil
	f.keep(st)
	return give(now, jobs, "")
}

// window moves what is pending with its maintenance window: the start asks for
// a reset, and the end gives up what no reset has applied.
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

// due is when what is pending next changes by itself; zero when it does not.
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

// give ends jobs.
func give(now time.Time, jobs []string, fault string) []event.Event {
	var evs []event.Event
	for _, j := range jobs {
		evs = append(evs, done(now, j, fault)...)
	}
	return evs
}

func done(now time.Time, job, fault string) []event.Event {
	if job == "" {
		return nil
	}
	return []event.Event{event.TaskDone{At: now, Task: job, Fault: fault}}
}

package sandbox

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// alarm is what makes a timer unit elapse (systemd.timer(5)).
type alarm struct {
	key     string        // "OnBootSec"
	span    time.Duration // since what the key names
	at      calendar      // of OnCalendar=
	elapsed bool          // it comes once, and has
}

// repeats reports whether an alarm elapses again and again.
func (a alarm) repeats() bool {
	return slices.Contains([]string{"OnCalendar", "OnUnitActiveSec", "OnUnitInactiveSec"}, a.key)
}

// alarms are the keys of a timer's alarms.
var alarms = []string{"OnActiveSec", "OnBootSec", "OnStartupSec", "OnUnitActiveSec", "OnUnitInactiveSec", "OnCalendar"}

// alarmsOf reads the alarms of a timer unit.
func (u unit) alarmsOf(zone *time.Location) (out []alarm, err error) {
	for _, key := range alarms {
		for _, v := range u.keys["Timer."+key] {
			a := alarm{key: key}
			if key == "OnCalendar" {
				a.at, err = parseCalendar(v, zone)
			} else if d, ok := parseSpan(v); ok {
				a.span = d
			} else {
				err = fmt.Errorf("%q is no time span", v)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %s=: %w", u.name, key, err)
			}
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has none of %s=", u.name, strings.Join(alarms, "=, "))
	}
	return out, nil
}

// moments are the times that a timer's alarms count from. Zero: it has not happened.
type moments struct{ boot, started, triggered, active, inactive time.Time }

// next returns when an alarm elapses next.
func (a alarm) next(m moments) (time.Time, bool) {
	base := time.Time{}
	switch a.key {
	case "OnActiveSec":
		base = m.started
	case "OnBootSec", "OnStartupSec":
		base = m.boot
	case "OnUnitActiveSec":
		base = later(m.active, m.triggered)
	case "OnUnitInactiveSec":
		base = m.inactive
	case "OnCalendar":
		if m.triggered.IsZero() {
			return a.at.next(m.started)
		}
		return a.at.next(m.triggered)
	}
	if a.elapsed || base.IsZero() && a.key != "OnBootSec" && a.key != "OnStartupSec" || a.span == infinity {
		return time.Time{}, false
	}
	return base.Add(a.span), true
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// shortest is the shortest time between two starts by a timer: systemd's AccuracySec= is a minute.
const shortest = time.Second

// zone returns the time zone of the system; UTC if /etc/localtime names none.
func (s *System) zone() *time.Location {
	zone := time.UTC
	_ = s.files(func(f files) error { // a system that is down has none
		if to, ok := f.link("etc/localtime"); ok {
			if _, name, ok := strings.Cut(to, "zoneinfo/"); ok {
				if z, err := time.LoadLocation(name); err == nil {
					zone = z
				}
			}
		}
		return nil
	})
	return zone
}

// startTimer begins to wait for the alarms of a timer unit.
func (s *System) startTimer(u unit) (*started, error) {
	all, err := u.alarmsOf(s.zone())
	if err != nil {
		return nil, err
	}
	if triggered(u) == u.name {
		return nil, fmt.Errorf("%s: Unit=%s: a timer does not start itself", u.name, u.name)
	}
	if _, err := s.readUnit(triggered(u)); err != nil {
		return nil, fmt.Errorf("%s: Unit=: %w", u.name, err)
	}
	x := newStarted(u, stateActive, "waiting")
	x.idle = true
	if ok, err := s.begin(x); !ok {
		return nil, err
	}
	x.start(nil)
	s.goOn(func() { s.tick(x, all) })
	return x, nil
}

// tick starts the unit of a timer at its alarms, until the timer stops.
func (s *System) tick(x *started, all []alarm) {
	target, told := triggered(x.unit), ""
	m := moments{boot: s.c.Boot.Time, started: s.now()}
	if x.unit.is("Timer.Persistent") { // what it has missed while the server was down makes it elapse at once
		m.triggered = s.stampOfTimer(x.unit.name, m.started)
	}
	for x.quit.Err() == nil {
		changed := s.units.changes()
		m.active, m.inactive = s.units.moments(s.canonical(target))
		at, repeats := earliest(all, m)
		s.units.setElapse(x, at)
		if at.IsZero() {
			if x.unit.isNot("Timer.RemainAfterElapse") && !m.triggered.IsZero() {
				s.halt(x, nil)
				return
			}
			s.set(x, stateActive, "elapsed")
			select {
			case <-changed:
			case <-x.quit.Done():
			}
			continue
		}
		s.set(x, stateActive, "waiting")
		if !s.reach(x.quit, at, repeats, changed) {
			continue
		}
		now := s.now()
		for i, a := range all {
			if at, ok := a.next(m); ok && !a.repeats() && !at.After(now) {
				all[i].elapsed = true
			}
		}
		m.triggered = now
		text := ""
		if err := s.trigger(x, target, now); err != nil {
			text = err.Error()
		}
		if text != "" && text != told { // not each second
			s.report("%s: %s", x.unit.name, text)
		}
		told = text
	}
}

// earliest returns when the first of some alarms elapses, and whether it is one that comes again. Zero:
// none does.
func earliest(all []alarm, m moments) (at time.Time, repeats bool) {
	for _, a := range all {
		next, ok := a.next(m)
		if !ok {
			continue
		}
		if a.repeats() && !m.triggered.IsZero() && a.key != "OnCalendar" {
			next = later(next, m.triggered.Add(shortest))
		}
		if at.IsZero() || next.Before(at) {
			at, repeats = next, a.repeats()
		}
	}
	return at, repeats
}

// trigger starts the unit of a timer, and returns when it has ended, or the reason why it has not
// started.
func (s *System) trigger(x *started, target string, now time.Time) error {
	s.set(x, stateActive, "running")
	s.units.setTriggered(x, now)
	if x.unit.is("Timer.Persistent") {
		if err := s.Put(Tree{stampFile(x.unit.name): File(0o644, now.UTC().Format(time.RFC3339)+"\n")}); err != nil {
			s.report("%s: Persistent=: %v", x.unit.name, err)
		}
	}
	err := s.startUnits(true, target)
	if y := s.units.find(s.canonical(target)); y != nil && running(s.units.state(y.unit.name)) {
		select {
		case <-y.done:
		case <-x.quit.Done():
		}
	}
	return err
}

// reach returns true at a time of the lab, false if something changes before or ctx ends. A clock at
// max speed does not jump to what comes again and again.
func (s *System) reach(ctx context.Context, at time.Time, repeats bool, changed <-chan struct{}) bool {
	d := at.Sub(s.now())
	if d <= 0 {
		return ctx.Err() == nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if repeats && s.c.After != nil {
		due := make(chan struct{})
		stop := s.c.After(d, func() { close(due) })
		defer stop()
		select {
		case <-due:
			return true
		case <-changed:
		case <-ctx.Done():
		}
		return false
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-changed:
			cancel()
		case <-over:
		}
	}()
	return s.c.Sleep(ctx, d) == nil
}

// stampFile has the time at which a timer with Persistent= has elapsed last.
func stampFile(name string) string { return path.Join("var/lib/systemd/timers", "stamp-"+name) }

// stampOfTimer returns that time. A timer that never was active begins now.
func (s *System) stampOfTimer(name string, now time.Time) time.Time {
	b, err := s.readAtMost(stampFile(name), maxConfig)
	if err == nil {
		if t, err := time.Parse(time.RFC3339, strings.TrimSpace(string(b))); err == nil {
			return t
		}
	}
	if err := s.Put(Tree{stampFile(name): File(0o644, now.UTC().Format(time.RFC3339)+"\n")}); err != nil {
		s.report("%s: Persistent=: %v", name, err)
	}
	return now
}

// changes returns a channel that is closed when a unit has started or ended.
func (u *units) changes() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.changed == nil {
		u.changed = make(chan struct{})
	}
	return u.changed
}

// tell closes the channel. The caller holds u.mu.
func (u *units) tell() {
	if u.changed != nil {
		close(u.changed)
		u.changed = nil
	}
}

// moments returns when a unit has started, and when it has ended, last.
func (u *units) moments(name string) (active, inactive time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x := u.all[name]
	if x == nil {
		return active, inactive
	}
	if !running(x.state) {
		inactive = x.since
	}
	return x.began, inactive
}

func (u *units) setElapse(x *started, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x.elapses = at
}

func (u *units) setTriggered(x *started, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x.triggered = at
}

// listTimers lists the timers that are active, the next first.
func (c *ctl) listTimers() {
	now := c.s.now()
	var rows [][]string
	names := c.s.units.names()
	if c.has("all") {
		names = slices.Concat(names, slices.DeleteFunc(c.files(), func(n string) bool { return kind(n) != "timer" || isTemplate(n) }))
		slices.Sort(names)
		names = slices.Compact(names)
	}
	type row struct {
		at    time.Time
		cells []string
	}
	var found []row
	for _, name := range names {
		if kind(name) != "timer" || !c.matches(name) {
			continue
		}
		x := c.s.look(name)
		if x.state != stateActive && !c.has("all") || x.err != nil {
			continue
		}
		cells := []string{"-", "-", "-", "-", name, triggered(x.unit)}
		if !x.elapses.IsZero() {
			cells[0], cells[1] = stampOf(x.elapses), formatSpan(x.elapses.Sub(now).Truncate(time.Second))+" left"
		}
		if !x.triggered.IsZero() {
			cells[2], cells[3] = stampOf(x.triggered), formatSpan(now.Sub(x.triggered).Truncate(time.Second))+" ago"
		}
		found = append(found, row{x.elapses, cells})
	}
	slices.SortStableFunc(found, func(a, b row) int {
		if a.at.IsZero() != b.at.IsZero() {
			return map[bool]int{true: 1, false: -1}[a.at.IsZero()]
		}
		return a.at.Compare(b.at)
	})
	for _, r := range found {
		rows = append(rows, r.cells)
	}
	footer := fmt.Sprintf("\n%d timers listed.", len(rows))
	if len(rows) == 0 {
		footer = "0 timers listed."
	}
	if !c.has("all") {
		footer += "\nPass --all to see loaded but inactive timers, too."
	}
	c.table([]string{"NEXT", "LEFT", "LAST", "PASSED", "UNIT", "ACTIVATES"}, rows, footer+"\n")
}

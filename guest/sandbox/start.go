package sandbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// startUnit starts a unit with all that it needs. It returns when its start has ended.
func (s *System) startUnit(name string) error { return s.startUnits(true, name) }

func (s *System) startUnits(wait bool, names ...string) error {
	var t *transaction
	err := s.withUnits(func(l *loader) (err error) { t, err = l.plan(false, names...); return err })
	if err != nil {
		return err
	}
	asked := s.run(t, names)
	if !wait {
		return nil
	}
	var errs []error
	for _, st := range asked {
		<-st.done
		errs = append(errs, st.err)
	}
	return errors.Join(errs...)
}

// bootTimeout is how long, in real time, a boot waits for oneshot services: one without an end must
// not hold what comes after the units.
const bootTimeout = 90 * time.Second

// Boot sets the values of sysctl.d, and starts the units that are enabled: the default target with all
// that it wants. Agents start in no other way.
func (s *System) Boot() error {
	if err := s.applySettings(); err != nil {
		return err
	}
	var t *transaction
	err := s.withUnits(func(l *loader) (err error) { t, err = l.plan(true, "default.target"); return err })
	if err != nil {
		return err
	}
	s.units.setBooting(true)
	defer s.units.setBooting(false)
	s.run(t, nil)
	timeout := time.NewTimer(bootTimeout)
	defer timeout.Stop()
	for _, st := range t.steps {
		select {
		case <-st.done:
		case <-timeout.C:
			s.report("the boot goes on while %s starts", st.unit.name)
			return nil
		}
	}
	return nil
}

func (u *units) setBooting(on bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.booting = on
}

// run takes the steps of a transaction, each when those that it waits for have ended, and returns
// those of names.
func (s *System) run(t *transaction, names []string) (asked []*step) {
	for _, r := range t.reports {
		s.report("%s", r)
	}
	for _, n := range names {
		asked = append(asked, t.by[n])
	}
	for _, st := range t.steps {
		direct := slices.Contains(asked, st)
		if slices.ContainsFunc(st.after, func(a *step) bool { return !isDone(a.done) }) {
			s.goOn(func() {
				for _, a := range st.after {
					<-a.done
				}
				s.take(st, direct)
			})
			continue
		}
		s.take(st, direct)
	}
	return asked
}

// take starts the unit of a step. The step is done when the start has ended.
func (s *System) take(st *step, direct bool) {
	x, err := s.launch(st, direct)
	if err == nil && x != nil && !isDone(x.begun) {
		s.goOn(func() {
			defer close(st.done)
			<-x.begun
			st.err = startError(x)
		})
		return
	}
	switch {
	case err != nil:
		st.err = err
		if !direct {
			s.report("%v", err)
		}
	case x != nil:
		st.err = startError(x)
	}
	close(st.done)
}

func startError(x *started) error {
	if x.err == nil {
		return nil
	}
	return fmt.Errorf("Job for %s failed: %w", x.unit.name, x.err)
}

// stateless are the types of units that a server has from the boot on.
var stateless = []string{"slice", "scope", "device", "mount", "automount", "swap"}

// launch starts a unit. There is none to wait for if it runs already, or if its conditions do not
// hold.
func (s *System) launch(st *step, direct bool) (*started, error) {
	u := st.unit
	if running(s.units.state(u.name)) {
		return nil, nil
	}
	for _, r := range st.requires {
		if slices.Contains(st.after, r) && r.err != nil {
			return nil, fmt.Errorf("%s: a unit that it requires has failed: %w", u.name, r.err)
		}
	}
	if st.missing != nil {
		return nil, fmt.Errorf("%s: a unit that it requires: %w", u.name, st.missing)
	}
	for _, name := range u.words("Unit.Requisite") {
		if r, err := s.readUnit(name); err != nil || s.units.state(r.name) != stateActive {
			return nil, fmt.Errorf("%s: Requisite=%s: it does not run", u.name, name)
		}
	}
	if direct && u.is("Unit.RefuseManualStart") {
		return nil, fmt.Errorf("Operation refused, unit %s may be requested by dependency only.", u.name) //nolint:revive // systemctl's words
	}
	s.tellProblems(u)
	if met, err := s.checks(u); err != nil || !met {
		return nil, err
	}
	for _, name := range s.units.conflicting(u) {
		if err := s.stopUnit(name); err != nil {
			return nil, err
		}
	}
	k := kind(u.name)
	start, ok := map[string]func(*System, unit) (*started, error){"service": (*System).startService, "path": (*System).startPath, "timer": (*System).startTimer, "target": (*System).startTarget}[k]
	switch {
	case ok:
		x, err := start(s, u)
		if x != nil {
			s.units.require(x, st)
		}
		return x, err
	case direct:
		return nil, fmt.Errorf("%s: units of the type %s are not started here: use .service, .path or .timer", u.name, k)
	case slices.Contains(stateless, k):
	default:
		s.report("%s: units of the type %s are not started here", u.name, k)
	}
	return nil, nil
}

// require remembers which units a unit requires by links.
func (u *units) require(x *started, st *step) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, r := range st.requires {
		x.requires = append(x.requires, r.unit.names...)
	}
}

// checks reports whether the conditions of a unit hold; that an assertion does not is an error.
func (s *System) checks(u unit) (met bool, err error) {
	has := false
	for key := range u.keys {
		has = has || strings.HasPrefix(key, "Unit.Condition") || strings.HasPrefix(key, "Unit.Assert")
	}
	if !has {
		return true, nil
	}
	var condition, assertion string
	err = s.withUnits(func(l *loader) error {
		condition, assertion = l.unmet(u, "Condition"), l.unmet(u, "Assert")
		return nil
	})
	switch {
	case err != nil:
		return false, err
	case assertion != "":
		return false, fmt.Errorf("Assertion failed on job for %s: %s", u.name, assertion)
	case condition != "":
		s.report("%s was skipped because of an unmet condition check (%s)", u.name, condition)
		return false, nil
	}
	return true, nil
}

// startTarget reaches a target: the units that it wants have their own steps.
func (s *System) startTarget(u unit) (*started, error) {
	x := newIdle(u)
	if ok, err := s.begin(x); !ok {
		return nil, err
	}
	return x, nil
}

// warnings are the console's lines about a unit when it is started, once in a boot.
func (u unit) warnings() (out []string) {
	out = append(out, u.problems...)
	if len(u.inert) > 0 {
		out = append(out, fmt.Sprintf("%s: no effect in a server of the lab: %s", u.name, strings.Join(u.inert, " ")))
	}
	return out
}

// ofDistribution reports whether the server has nothing of its own in a unit.
func (u unit) ofDistribution() bool {
	own := func(file string) bool { return file != "" && !strings.HasPrefix(file, vendorDir+"/") }
	return !own(u.file) && !slices.ContainsFunc(u.drops, own)
}

func (s *System) tellProblems(u unit) {
	text := strings.Join(u.warnings(), "\n")
	s.units.mu.Lock()
	told := text == "" || s.units.told[u.name+"\n"+text]
	if !told && len(s.units.told) < maxSteps {
		if s.units.told == nil {
			s.units.told = map[string]bool{}
		}
		s.units.told[u.name+"\n"+text] = true
	}
	s.units.mu.Unlock()
	if told || kind(u.name) == "target" && u.ofDistribution() {
		return
	}
	for _, w := range u.warnings() {
		s.report("%s", w)
	}
}

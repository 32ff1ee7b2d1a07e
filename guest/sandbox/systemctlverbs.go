package sandbox

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"syscall"
)

// names returns the names of the units that were started, sorted.
func (u *units) names() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.all))
}

// failedTo says why a job of a unit was not done, with systemctl's codes.
func (c *ctl) failedTo(name string, err error) {
	what := strings.TrimPrefix(c.verb, "try-")
	switch what {
	case "condrestart":
		what = "restart"
	case "isolate", "default", "rescue", "emergency":
		what = "start"
	}
	switch {
	case errors.As(err, new(*noUnitError)):
		c.fails(codeNotFound, "Failed to %s %s: %v", what, name, err)
	case strings.HasPrefix(err.Error(), "Job for "):
		c.fails(codeFailed, "%v\nSee \"systemctl status %s\" for details.", err, name)
	default:
		c.fails(codeFailed, "Failed to %s %s: %v", what, name, err)
	}
}

// warn says what of a unit has no effect.
func (c *ctl) warn(name string) {
	u, err := c.s.readUnit(name)
	if err != nil || c.has("quiet") || c.has("no-warn") || u.ofDistribution() {
		return
	}
	for _, w := range u.warnings() {
		c.complain("%s", w)
	}
}

func (c *ctl) start() {
	for _, name := range c.units() {
		if err := c.s.startUnits(!c.has("no-block"), name); err != nil {
			c.failedTo(name, err)
			continue
		}
		c.warn(name)
		if x := c.s.units.find(c.s.canonical(name)); x != nil && c.has("wait") {
			<-x.done
			if c.s.units.state(x.unit.name) == stateFailed {
				c.code = codeFailed
			}
		}
	}
}

func (c *ctl) stop() {
	for _, name := range c.units() {
		u, err := c.s.readUnit(name)
		switch {
		case errors.As(err, new(*noUnitError)) && c.s.units.find(name) == nil:
			c.fails(codeNotFound, "Failed to stop %s: Unit %s not loaded.", name, name)
		case err == nil && u.is("Unit.RefuseManualStop"):
			c.fails(codeFailed, "Failed to stop %s: Operation refused, unit %s may be requested by dependency only.", name, name)
		case c.has("no-block"):
			c.s.goOn(func() {
				if err := c.s.stopUnit(name); err != nil {
					c.s.report("%v", err)
				}
			})
		default:
			if err := c.s.stopUnit(name); err != nil {
				c.failedTo(name, err)
			}
		}
	}
}

// restart also does try-restart, which leaves those alone that do not run.
func (c *ctl) restart() {
	for _, name := range c.units() {
		if c.verb != "restart" && !running(c.s.units.state(c.s.canonical(name))) {
			continue
		}
		c.restartOne(name)
	}
}

func (c *ctl) restartOne(name string) {
	if u, err := c.s.readUnit(name); err != nil || u.mask {
		c.failedTo(name, errors.Join(c.s.startUnit(name)))
		return
	}
	if c.has("no-block") {
		c.s.goOn(func() {
			if err := c.s.restartUnit(name); err != nil {
				c.s.report("%v", err)
			}
		})
		return
	}
	if err := c.s.restartUnit(name); err != nil {
		c.failedTo(name, err)
		return
	}
	c.warn(name)
}

// reload also does those that restart a unit that cannot reload.
func (c *ctl) reload() {
	for _, name := range c.units() {
		u, err := c.s.readUnit(name)
		if err != nil {
			c.failedTo(name, err)
			continue
		}
		runs := running(c.s.units.state(u.name))
		switch {
		case c.verb == "reload" || runs && len(u.lines("ExecReload")) > 0:
			if err := c.s.reloadUnit(name); err != nil {
				c.failedTo(name, err)
			}
		case runs || c.verb == "reload-or-restart":
			c.restartOne(name)
		}
	}
}

// isolate starts a target and stops the units that it does not need.
func (c *ctl) isolate() {
	name := c.verb + ".target"
	if c.verb == "isolate" {
		if name = c.args[0]; !slices.Contains(unitTypes, kind(name)) {
			name += ".target"
		}
	}
	u, err := c.s.readUnit(name)
	if err != nil {
		c.failedTo(name, err)
		return
	}
	if _, known := builtinTargets[u.name]; !known && !u.is("Unit.AllowIsolate") {
		c.fails(codeFailed, "Failed to start %s: Operation refused, unit may not be isolated.", name)
		return
	}
	needed := map[string]bool{}
	err = c.s.withUnits(func(l *loader) error {
		t, err := l.plan(false, name)
		if err == nil {
			for _, st := range t.steps {
				needed[st.unit.name] = true
			}
		}
		return err
	})
	if err == nil {
		for _, n := range c.s.units.names() {
			if !needed[n] {
				err = errors.Join(err, c.s.stopUnit(n))
			}
		}
		err = errors.Join(err, c.s.startUnits(!c.has("no-block"), name))
	}
	if err != nil {
		c.failedTo(name, err)
	}
}

// kill sends a signal to the processes of units.
func (c *ctl) kill() {
	signal, whom := syscall.SIGTERM, ""
	if v := c.options["signal"]; len(v) > 0 {
		if signal = signalOf(v[len(v)-1], 0); signal == 0 {
			c.fails(codeFailed, "Failed to parse signal string %s.", v[len(v)-1])
			return
		}
	}
	if v := c.options["kill-whom"]; len(v) > 0 {
		whom = v[len(v)-1]
	}
	if !slices.Contains([]string{"", "all", "main", "control"}, whom) {
		c.fails(codeFailed, "--kill-whom=%s is not one of all, main, control", whom)
		return
	}
	for _, name := range c.units() {
		x := c.s.units.find(c.s.canonical(name))
		if x == nil {
			c.fails(codeFailed, "Failed to kill unit %s: Unit %s not loaded.", name, name)
			continue
		}
		c.s.units.mu.Lock()
		p := x.main
		c.s.units.mu.Unlock()
		switch {
		case whom == "control":
		case p == nil || p.hasEnded():
			c.fails(codeFailed, "Failed to kill unit %s: No main process to kill", name)
		case !p.signal(signal, attributes{MainOnly: whom == "main"}): // a program of the lab's has no signals
			p.cancel()
		}
	}
}

func (c *ctl) resetFailed() {
	names := c.units()
	if len(c.args) == 0 {
		names = c.s.units.names()
	}
	for _, name := range names {
		c.s.units.forget(c.s.canonical(name))
	}
}

// ask writes the states of units, and succeeds if one of them is fine.
func (c *ctl) ask(none int, state func(name string) (string, bool)) {
	good := false
	names := c.units()
	for _, name := range names {
		text, ok := state(name)
		good = good || ok
		if !c.has("quiet") && text != "" {
			c.print("%s\n", text)
		}
	}
	if !good {
		c.code = none
	}
}

// stateOf returns the state of a unit as is-active shows it.
func (s *System) stateOf(name string) string {
	if state := s.units.state(s.canonical(name)); state != "" {
		return state
	}
	return stateInactive
}

func (c *ctl) isActive() {
	c.ask(codeInactive, func(name string) (string, bool) {
		state := c.s.stateOf(name)
		return state, state == stateActive || state == "reloading"
	})
}

func (c *ctl) isFailed() {
	if len(c.args) == 0 {
		c.args = []string{"*"}
		c.options["quiet"] = []string{""}
	}
	c.ask(codeFailed, func(name string) (string, bool) {
		state := c.s.stateOf(name)
		return state, state == stateFailed
	})
}

// fine are the states of a unit file for which is-enabled succeeds (systemctl(1), table 1).
var fine = []string{"enabled", "enabled-runtime", "static", "indirect", "alias", "generated"}

func (c *ctl) isEnabled() {
	c.ask(codeFailed, func(name string) (string, bool) {
		state, err := c.s.fileState(name)
		if err != nil {
			if errors.As(err, new(*noUnitError)) {
				err = errors.New("No such file or directory")
			}
			c.complain("Failed to get unit file state for %s: %v", name, err)
			return "", false
		}
		return state, slices.Contains(fine, state)
	})
}

func (c *ctl) cat() {
	for i, name := range c.units() {
		u, err := c.s.readUnit(name)
		if err != nil {
			c.fails(codeFailed, "No files found for %s.", name)
			continue
		}
		if i > 0 {
			c.print("\n")
		}
		for j, file := range slices.Concat([]string{u.file}, u.drops) {
			if file == "" {
				continue
			}
			b, err := c.s.readAtMost(file, maxConfig)
			if err != nil && !u.mask {
				c.fails(codeFailed, "%v", err)
				continue
			}
			if j > 0 {
				c.print("\n")
			}
			c.print("# /%s\n%s", file, b)
		}
	}
}

func (c *ctl) help() {
	for _, name := range c.units() {
		u, err := c.s.readUnit(name)
		if err != nil {
			c.failedTo(name, err)
			continue
		}
		for _, d := range u.words("Unit.Documentation") {
			c.print("%s\n", d)
		}
	}
}

func (c *ctl) power() {
	do := reboot
	if c.verb != "reboot" {
		do = powerOff
	}
	text, code := do(c.s, nil)
	out, problems := streamsOf(text)
	c.out.WriteString(out)
	c.err.WriteString(problems)
	c.code = code
}

func (c *ctl) isSystemRunning() {
	state, _ := c.s.systemState()
	if !c.has("quiet") {
		c.print("%s\n", state)
	}
	if state != "running" {
		c.code = codeFailed
	}
}

// maxWarnings is how many units daemon-reload speaks of.
const maxWarnings = 50

// daemonReload says what of the units of the server has no effect: unit files are read when they are
// used.
func (c *ctl) daemonReload() {
	left := maxWarnings
	for _, name := range c.files() {
		if left == 0 || c.has("quiet") {
			return
		}
		u, err := c.s.readUnit(name)
		if err != nil || u.name != name || u.ofDistribution() {
			continue
		}
		for _, w := range u.warnings() {
			c.complain("%s", w)
			left = max(left-1, 0)
		}
	}
}

func (c *ctl) showEnvironment() {
	for _, e := range managerEnvironment {
		c.print("%s\n", e)
	}
}

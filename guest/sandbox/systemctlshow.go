package sandbox

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// property is a property of a unit or of the manager, as systemctl show writes it.
type property struct{ name, value string }

// shown is a unit as show and status see it.
type shown struct {
	asked    string
	unit     unit
	err      error // why it is not loaded
	file     string
	state    string
	sub      string
	result   string
	main     int // number of its main process
	exit     exit
	restarts int
	since    time.Time
	active   time.Time
	log      string

	elapses, triggered time.Time
}

// look returns a unit as it is now.
func (s *System) look(name string) shown {
	x := shown{asked: name, state: stateInactive, sub: "dead", result: "success"}
	if x.unit, x.err = s.readUnit(name); x.err == nil {
		x.file, _ = s.fileState(x.unit.name) // it was read just now
	} else {
		x.unit.name = name
	}
	s.units.mu.Lock()
	defer s.units.mu.Unlock()
	if y := s.units.all[x.unit.name]; y != nil {
		x.state, x.sub, x.result, x.exit, x.restarts, x.since, x.active, x.elapses, x.triggered = y.state, y.sub, y.result, y.exit, y.restarts, y.since, y.active, y.elapses, y.triggered
		x.main = y.main.number()
		if y.works != nil {
			x.log = y.log.text()
		}
	}
	return x
}

// load returns LoadState=.
func (x shown) load() string {
	switch {
	case errors.As(x.err, new(*noUnitError)):
		return "not-found"
	case x.err != nil:
		return "error"
	case x.unit.mask:
		return "masked"
	}
	for _, c := range x.unit.commands {
		if c.err != nil {
			return "bad-setting"
		}
	}
	return "loaded"
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// stamp writes a time as systemctl does.
func stampOf(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("Mon 2006-01-02 15:04:05 MST")
}

func (x shown) description() string {
	if d := x.unit.get("Unit.Description"); d != "" {
		return d
	}
	return x.unit.name
}

// properties returns the properties of a unit: those of the manager, then the keys of its file.
func (x shown) properties() []property {
	u := x.unit
	var out []property
	add := func(name string, value any) { out = append(out, property{name, fmt.Sprint(value)}) }
	if kind(u.name) == "service" {
		or := func(key, none string) string {
			if v := u.get("Service." + key); v != "" {
				return v
			}
			return none
		}
		span := func(keys ...string) string {
			d := startLimit
			if keys[0] == "TimeoutStopSec" {
				d = stopTimeout
			} else if keys[0] == "RestartSec" {
				d = restartDelay
			} else if u.serviceType() == "oneshot" {
				d = infinity
			}
			for _, k := range slices.Backward(keys) {
				d = u.duration("Service."+k, d)
			}
			return formatSpan(d)
		}
		add("Type", u.serviceType())
		add("Restart", or("Restart", "no"))
		add("PIDFile", or("PIDFile", ""))
		add("NotifyAccess", or("NotifyAccess", "none"))
		add("RestartUSec", span("RestartSec"))
		add("TimeoutStartUSec", span("TimeoutStartSec", "TimeoutSec"))
		add("TimeoutStopUSec", span("TimeoutStopSec", "TimeoutSec"))
		add("RemainAfterExit", yes(u.is("Service.RemainAfterExit")))
		add("GuessMainPID", yes(!u.isNot("Service.GuessMainPID")))
		add("MainPID", x.main)
		add("ControlPID", 0)
		add("Result", x.result)
		add("NRestarts", x.restarts)
		code, status := 0, x.exit.code
		if x.exit.signal != 0 {
			code, status = 2, int(x.exit.signal)
		} else if !x.since.IsZero() && x.main == 0 {
			code = 1
		}
		add("ExecMainStartTimestamp", stampOf(x.active))
		add("ExecMainPID", x.main)
		add("ExecMainCode", code)
		add("ExecMainStatus", status)
		for _, key := range []string{"ExecCondition", "ExecStartPre", "ExecStart", "ExecStartPost", "ExecReload", "ExecStop", "ExecStopPost"} {
			for _, c := range u.lines(key) {
				if c.err == nil {
					add(key, fmt.Sprintf("{ path=%s ; argv[]=%s ; ignore_errors=%s ; start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }", c.args[0], strings.Join(c.args, " "), yes(c.ignore)))
				}
			}
		}
		add("Slice", "system.slice")
		add("MemoryCurrent", "[not set]")
		add("TasksCurrent", "[not set]")
		add("UMask", or("UMask", "0022"))
		add("StandardInput", or("StandardInput", "null"))
		add("StandardOutput", or("StandardOutput", "journal"))
		add("StandardError", or("StandardError", "inherit"))
		add("KillMode", or("KillMode", "control-group"))
		add("KillSignal", int(signalOf(u.get("Service.KillSignal"), syscall.SIGTERM)))
		if len(u.environment) > 0 {
			add("Environment", strings.Join(u.environment, " "))
		}
		for _, v := range u.keys["Service.EnvironmentFile"] {
			file, optional := strings.CutPrefix(v, "-")
			add("EnvironmentFiles", fmt.Sprintf("%s (ignore_errors=%s)", file, yes(optional)))
		}
	}
	add("Id", u.name)
	names := u.names
	if len(names) == 0 {
		names = []string{u.name}
	}
	add("Names", strings.Join(slices.Compact(slices.Sorted(slices.Values(names))), " "))
	for _, key := range []string{"Requires", "Requisite", "Wants", "BindsTo", "PartOf", "Upholds", "Conflicts", "Before", "After", "OnFailure", "OnSuccess"} {
		if words := u.words("Unit." + key); len(words) > 0 {
			add(key, strings.Join(words, " "))
		}
	}
	if d := u.keys["Unit.Documentation"]; len(d) > 0 {
		add("Documentation", strings.Join(d, " "))
	}
	add("Description", x.description())
	add("LoadState", x.load())
	add("ActiveState", x.state)
	add("FreezerState", "running")
	add("SubState", x.sub)
	if u.file != "" {
		add("FragmentPath", "/"+u.file)
	}
	if len(u.drops) > 0 {
		add("DropInPaths", "/"+strings.Join(u.drops, " /"))
	}
	add("UnitFileState", x.file)
	if x.file != "" {
		add("UnitFilePreset", "enabled")
	}
	add("StateChangeTimestamp", stampOf(x.since))
	add("ActiveEnterTimestamp", stampOf(x.active))
	add("CanStart", yes(x.err == nil && !u.mask && !u.is("Unit.RefuseManualStart")))
	add("CanStop", yes(x.err == nil && !u.is("Unit.RefuseManualStop")))
	add("CanReload", yes(len(u.lines("ExecReload")) > 0))
	add("CanIsolate", yes(u.is("Unit.AllowIsolate")))
	add("NeedDaemonReload", "no")
	add("Transient", yes(strings.HasPrefix(u.file, "run/systemd/transient/")))
	switch kind(u.name) {
	case "timer", "path":
		target := triggered(u)
		add("Unit", target)
		add("Triggers", target)
	}
	if kind(u.name) == "timer" {
		add("NextElapseUSecRealtime", stampOf(x.elapses))
		add("LastTriggerUSec", stampOf(x.triggered))
	}
	if errors.As(x.err, new(*noUnitError)) {
		add("LoadError", fmt.Sprintf("org.freedesktop.systemd1.NoSuchUnit \"%v\"", x.err))
	} else if x.err != nil {
		add("LoadError", fmt.Sprintf("org.freedesktop.DBus.Error.InvalidArgs \"%v\"", x.err))
	}
	var keys []string
	for key := range u.keys {
		section, name, _ := strings.Cut(key, ".")
		done := slices.ContainsFunc(out, func(p property) bool { return p.name == name }) || strings.HasPrefix(name, "Exec")
		if title := kind(u.name); !done && title != "" && section == strings.ToUpper(title[:1])+title[1:] && len(u.keys[key]) > 0 {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	for _, key := range keys {
		_, name, _ := strings.Cut(key, ".")
		add(name, strings.Join(u.keys[key], " "))
	}
	return out
}

// triggered returns the unit that a path or timer unit starts.
func triggered(u unit) string {
	section := map[string]string{"path": "Path", "timer": "Timer"}[kind(u.name)]
	if target := u.get(section + ".Unit"); target != "" {
		return target
	}
	return strings.TrimSuffix(u.name, path.Ext(u.name)) + ".service"
}

// systemState returns the state of the manager (systemctl(1), "is-system-running"), and how many units
// have failed.
func (s *System) systemState() (state string, failed int) {
	s.units.mu.Lock()
	defer s.units.mu.Unlock()
	for _, x := range s.units.all {
		if x.state == stateFailed {
			failed++
		}
	}
	switch {
	case s.units.booting:
		return "starting", failed
	case failed > 0:
		return "degraded", failed
	}
	return "running", failed
}

// managerProperties are those of show without a unit.
func (c *ctl) managerProperties() []property {
	state, failed := c.s.systemState()
	names := c.s.units.names()
	return []property{
		{"Version", "252 (metalab)"}, {"Architecture", c.about('a')}, {"NNames", strconv.Itoa(len(names))}, {"NFailedUnits", strconv.Itoa(failed)}, {"NJobs", "0"},
		{"Environment", strings.Join(managerEnvironment, " ")}, {"UnitPath", "/" + strings.Join(unitDirs, " /")},
		{"DefaultTimeoutStartUSec", formatSpan(startLimit)}, {"DefaultTimeoutStopUSec", formatSpan(stopTimeout)}, {"DefaultRestartUSec", formatSpan(restartDelay)},
		{"DefaultStartLimitIntervalUSec", formatSpan(startInterval)}, {"DefaultStartLimitBurst", strconv.Itoa(startBurst)}, {"SystemState", state},
	}
}

func (c *ctl) about(specifier byte) (value string) {
	_ = c.s.withUnits(func(l *loader) error { value = l.about[specifier]; return nil }) // else it is empty
	return value
}

func (c *ctl) show() {
	wanted := c.list("property")
	bare := c.has("value")
	if c.has("value-of") {
		wanted, bare = append(wanted, c.list("value-of")...), true
	}
	write := func(all []property) {
		for _, p := range all {
			switch {
			case len(wanted) > 0 && !slices.Contains(wanted, p.name), len(wanted) == 0 && p.value == "" && !c.has("all"):
			case bare:
				c.print("%s\n", p.value)
			default:
				c.print("%s=%s\n", p.name, p.value)
			}
		}
	}
	if len(c.args) == 0 {
		write(c.managerProperties())
		return
	}
	for i, name := range c.units() {
		if i > 0 {
			c.print("\n")
		}
		if err := checkName(name); err != nil {
			c.fails(codeFailed, "Failed to get properties: %v", err)
			continue
		}
		write(c.s.look(name).properties())
	}
}

// dots are the marks of units' states.
var dots = map[string]string{stateActive: "●", stateFailed: "×", stateInactive: "○", stateActivating: "●", stateDeactivating: "●"}

func (c *ctl) status() {
	if len(c.args) == 0 {
		state, _ := c.s.systemState()
		c.print("● %s\n    State: %s\n    Units: %d loaded\n     Jobs: 0 queued\n", c.about('H'), state, len(c.s.units.names()))
		return
	}
	codes := map[int]bool{}
	for i, name := range c.units() {
		x := c.s.look(name)
		if x.load() == "not-found" && x.state == stateInactive {
			c.complain("Unit %s could not be found.", name)
			codes[codeNoUnit] = true
			continue
		}
		if i > 0 {
			c.print("\n")
		}
		if x.state != stateActive && x.state != stateActivating && x.state != "reloading" {
			codes[codeInactive] = true
		}
		c.describe(x)
	}
	switch {
	case codes[codeNoUnit]:
		c.code = codeNoUnit
	case codes[codeInactive]:
		c.code = codeInactive
	}
}

// describe writes a unit as status shows it.
func (c *ctl) describe(x shown) {
	u := x.unit
	title := u.name
	if d := u.get("Unit.Description"); d != "" {
		title += " - " + d
	}
	c.print("%s %s\n", dots[x.state], title)
	switch {
	case x.load() == "loaded" && u.file != "":
		c.print("     Loaded: loaded (/%s; %s; preset: enabled)\n", u.file, x.file)
	case x.load() == "loaded":
		c.print("     Loaded: loaded\n")
	case x.err != nil:
		c.print("     Loaded: %s (Reason: %v)\n", x.load(), x.err)
	default:
		c.print("     Loaded: %s (Reason: Unit %s is %s.)\n", x.load(), u.name, x.load())
	}
	last := ""
	for _, d := range u.drops {
		if dir := path.Dir(d); dir != last {
			c.print("    Drop-In: /%s\n", dir)
			last = dir
		}
		c.print("             └─%s\n", path.Base(d))
	}
	state := fmt.Sprintf("%s (%s)", x.state, x.sub)
	if x.state == stateFailed {
		state = fmt.Sprintf("failed (Result: %s)", x.result)
	}
	if !x.since.IsZero() {
		state += " since " + stampOf(x.since)
	}
	c.print("     Active: %s\n", state)
	if !x.elapses.IsZero() {
		c.print("    Trigger: %s\n", stampOf(x.elapses))
	}
	if k := kind(u.name); k == "timer" || k == "path" {
		c.print("   Triggers: ● %s\n", triggered(u))
	}
	for _, d := range u.words("Unit.Documentation") {
		c.print("       Docs: %s\n", d)
	}
	if x.main != 0 {
		c.print("   Main PID: %d\n", x.main)
	}
	for _, w := range u.warnings() {
		c.print("    Warning: %s\n", w)
	}
	lines := strings.Split(strings.TrimRight(x.log, "\n"), "\n")
	most := 10
	if v := c.options["lines"]; len(v) > 0 {
		most = number(v[0], most)
	}
	if x.log != "" && most > 0 {
		c.print("\n%s\n", strings.Join(lines[max(0, len(lines)-most):], "\n"))
	}
}

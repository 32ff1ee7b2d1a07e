package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// builtinTargets are what the well-known targets want (systemd.special(7)), where a server has no
// file of them. The targets of a boot that need devices or other services of the machine are
// reached at once.
var builtinTargets = map[string][]string{
	"default.target":        {"graphical.target"},
	"graphical.target":      {"multi-user.target"},
	"multi-user.target":     {"basic.target", "getty.target", "remote-fs.target", "cloud-init.target", "machines.target"},
	"basic.target":          {"sysinit.target", "sockets.target", "timers.target", "paths.target", "slices.target"},
	"sysinit.target":        {"local-fs.target", "swap.target", "cryptsetup.target"},
	"rescue.target":         {"sysinit.target"},
	"network-online.target": {"network.target"},
	"cloud-init.target":     {"cloud-config.target"},
	"timers.target":         nil, "paths.target": nil, "sockets.target": nil, "slices.target": nil, "getty.target": nil, "local-fs.target": nil,
	"local-fs-pre.target": nil, "remote-fs.target": nil, "remote-fs-pre.target": nil, "swap.target": nil, "cryptsetup.target": nil,
	"cryptsetup-pre.target": nil, "network.target": nil, "network-pre.target": nil, "nss-lookup.target": nil, "nss-user-lookup.target": nil,
	"time-sync.target": nil, "time-set.target": nil, "rpcbind.target": nil, "machines.target": nil, "cloud-config.target": nil,
	"emergency.target": nil, "first-boot-complete.target": nil, "boot-complete.target": nil, "veritysetup.target": nil,
	"integritysetup.target": nil, "initrd.target": nil, "printer.target": nil, "sound.target": nil, "bluetooth.target": nil, "smartcard.target": nil,
}

// A step of a transaction starts a unit, after those that it is ordered behind.
type step struct {
	unit     unit
	after    []*step
	requires []*step
	missing  error // why a unit that it requires cannot start
	done     chan struct{}
	err      error // set before done is closed
}

// maxSteps is how many units start together.
const maxSteps = 512

// transaction is the units that start together: those that were asked for and those that they need.
type transaction struct {
	l       *loader
	steps   []*step
	by      map[string]*step // also by aliases
	reports []string
	boot    bool            // the services of the distribution do not start by themselves
	left    map[string]bool // those, of an image's own root
}

// plan returns the steps of units and all that they need, each behind those that it waits for.
// Units that are wanted alone may be absent.
func (l *loader) plan(boot bool, names ...string) (*transaction, error) {
	t := &transaction{l: l, by: map[string]*step{}, boot: boot, left: map[string]bool{}}
	for _, n := range names {
		if _, err := t.add(n); err != nil {
			return nil, err
		}
	}
	for i := 0; i < len(t.steps); i++ { // it grows
		if err := t.needs(t.steps[i]); err != nil {
			return nil, err
		}
	}
	t.order()
	t.reportLeft()
	return t, nil
}

// reportLeft says which units of an image's distribution do not start at a boot.
func (t *transaction) reportLeft() {
	maps.DeleteFunc(t.left, func(_ string, ofImage bool) bool { return !ofImage })
	if len(t.left) > 0 {
		t.reports = append(t.reports, fmt.Sprintf("not started at a boot, since a server costs no process before something runs: %s; use systemctl start", strings.Join(slices.Sorted(maps.Keys(t.left)), ", ")))
	}
}

// add adds a unit to a transaction.
func (t *transaction) add(name string) (*step, error) {
	if st := t.by[name]; st != nil {
		return st, nil
	}
	u, err := t.l.load(name)
	switch {
	case err != nil:
		return nil, err
	case u.mask:
		return nil, fmt.Errorf("Unit %s is masked.", name) //nolint:revive // systemctl's words
	case isTemplate(u.name):
		return nil, fmt.Errorf("Unit name %s is missing the instance name.", name) //nolint:revive // as above
	case len(t.steps) == maxSteps:
		return nil, fmt.Errorf("%s needs more than %d units", t.steps[0].unit.name, maxSteps)
	}
	st := t.by[u.name]
	if st == nil {
		st = &step{unit: u, done: make(chan struct{})}
		t.steps = append(t.steps, st)
	}
	for _, n := range append(u.names, name) {
		t.by[n] = st
	}
	return st, nil
}

// needs adds the units that a unit starts with it.
func (t *transaction) needs(st *step) error {
	requires, wants := t.dependencies(st.unit)
	for _, name := range requires {
		other, err := t.add(name)
		if err != nil {
			st.missing = err
			continue
		}
		if other != st {
			st.requires = append(st.requires, other)
		}
	}
	for _, name := range wants {
		_, err := t.add(name)
		switch {
		case err == nil, errors.As(err, new(*noUnitError)):
		case len(t.steps) == maxSteps:
			return err
		default:
			t.reports = append(t.reports, fmt.Sprintf("%s wants %s: %v", st.unit.name, name, err))
		}
	}
	return nil
}

// needed returns the names of the units that a unit starts with it.
func (t *transaction) needed(u unit) []string {
	requires, wants := t.dependencies(u)
	return append(requires, wants...)
}

// dependencies returns the names of the units that a unit requires and wants.
func (t *transaction) dependencies(u unit) (requires, wants []string) {
	requires, wants = u.words("Unit.Requires", "Unit.BindsTo"), u.words("Unit.Wants", "Unit.Upholds")
	if strings.HasPrefix(u.file, vendorDir+"/") && kind(u.name) == "target" {
		// The targets of this machine want its own daemons, as the links in /usr/lib do.
		machine := func(name string) bool { return kind(name) != "target" }
		requires, wants = slices.DeleteFunc(requires, machine), slices.DeleteFunc(wants, machine)
	}
	requires = append(requires, t.linked(u, ".requires")...)
	wants = slices.Concat(wants, t.linked(u, ".wants"), t.linked(u, ".upholds"))
	for _, n := range u.names {
		wants = append(wants, builtinTargets[n]...)
	}
	return requires, wants
}

// linked returns the units that have a link in the directories of a unit. Those of /usr/lib are for
// the machine's own devices and daemons, which a server does not have.
func (t *transaction) linked(u unit, suffix string) (out []string) {
	for _, name := range u.names {
		for i, dir := range unitDirs {
			if dir == vendorDir || !t.l.dirs[i][name+suffix] {
				continue
			}
			at := path.Join(dir, name+suffix)
			links, err := t.l.f.names(at)
			if err != nil {
				continue
			}
			slices.Sort(links)
			for _, l := range links {
				if t.boot && t.ofDistribution(path.Join(at, l)) {
					t.left[l] = t.l.root.root != nil
					continue
				}
				out = append(out, l)
			}
		}
	}
	return out
}

// ofDistribution reports whether a link is one that a fresh installation has, to a unit of the
// distribution's /usr: its services are enabled and do not start by themselves, as a server costs no
// process before something runs.
func (t *transaction) ofDistribution(link string) bool {
	was, ok := t.l.installed(link)
	target, _ := t.l.f.link(link)
	if !ok || was.Link != target {
		return false
	}
	u, err := t.l.load(path.Base(link))
	if err != nil {
		return true
	}
	_, own := t.l.base[u.file]
	return strings.HasPrefix(u.file, vendorDir+"/") && !own && kind(u.name) != "target"
}

// order sorts the steps: those first that others are ordered behind, else by name. A cycle is
// broken by not waiting.
func (t *transaction) order() {
	weak := map[*step]map[*step]bool{}
	behind := func(st, first *step, implicit bool) {
		if st == nil || first == nil || st == first || slices.Contains(st.after, first) {
			return
		}
		st.after = append(st.after, first)
		if implicit {
			if weak[st] == nil {
				weak[st] = map[*step]bool{}
			}
			weak[st][first] = true
		}
	}
	slices.SortStableFunc(t.steps, func(a, b *step) int { return strings.Compare(a.unit.name, b.unit.name) })
	for _, st := range t.steps {
		for _, n := range st.unit.words("Unit.After") {
			behind(st, t.by[n], false)
		}
		for _, n := range st.unit.words("Unit.Before") {
			behind(t.by[n], st, false)
		}
	}
	for _, st := range t.steps { // the default dependencies (systemd.target(5), systemd.service(5))
		switch kind(st.unit.name) {
		case "target":
			for _, n := range t.needed(st.unit) {
				behind(st, t.by[n], true)
			}
		case "service":
			if !st.unit.isNot("Unit.DefaultDependencies") {
				behind(st, t.by["basic.target"], true)
			}
		}
	}
	var out []*step
	state := map[*step]int{} // 1: on the way, 2: done
	var visit func(st *step)
	visit = func(st *step) {
		state[st] = 1
		kept := st.after[:0:0]
		for _, a := range slices.Concat(strong(st, weak), weakOf(st, weak)) {
			if state[a] == 0 {
				visit(a)
			}
			switch {
			case state[a] == 2:
				kept = append(kept, a)
			case !weak[st][a]:
				t.reports = append(t.reports, fmt.Sprintf("%s: Found ordering cycle on %s/start: it does not wait for it", st.unit.name, a.unit.name))
			}
		}
		st.after = kept
		state[st] = 2
		out = append(out, st)
	}
	for _, st := range t.steps {
		if state[st] == 0 {
			visit(st)
		}
	}
	t.steps = out
}

// strong returns the steps that a step is ordered behind by its unit or another's, weakOf those by
// default.
func strong(st *step, weak map[*step]map[*step]bool) []*step {
	return slices.DeleteFunc(slices.Clone(st.after), func(a *step) bool { return weak[st][a] })
}

func weakOf(st *step, weak map[*step]map[*step]bool) []*step {
	return slices.DeleteFunc(slices.Clone(st.after), func(a *step) bool { return !weak[st][a] })
}

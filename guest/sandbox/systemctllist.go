package sandbox

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// table writes rows below each other, with a header and what follows it unless --no-legend is given.
func (c *ctl) table(header []string, rows [][]string, footer string) {
	legend := !c.has("no-legend") && (len(c.options["legend"]) == 0 || isTrue(c.options["legend"][0]))
	all := rows
	if legend && len(rows) > 0 {
		all = append([][]string{header}, rows...)
	}
	widths := make([]int, len(header))
	for _, r := range all {
		for i, cell := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range all {
		var b strings.Builder
		for i, cell := range r {
			b.WriteString(cell)
			if i < len(r)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)+1))
			}
		}
		c.print("%s\n", strings.TrimRight(b.String(), " "))
	}
	if legend {
		c.print("%s", footer)
	}
}

// matches reports whether a unit is one of those that --type and patterns mean.
func (c *ctl) matches(name string) bool {
	if types := c.list("type"); len(types) > 0 && !slices.Contains(types, kind(name)) {
		return false
	}
	return len(c.args) == 0 || slices.ContainsFunc(c.args, func(a string) bool {
		ok, _ := path.Match(unitPattern(a), name)
		return ok
	})
}

// listUnits lists the units of this boot: those that run or have failed, with --all also those that
// the default target wants and that are down.
func (c *ctl) listUnits() {
	if types := c.list("type"); slices.Contains(types, "help") {
		c.print("%s\n", strings.Join(unitTypes, "\n"))
		return
	}
	all := map[string]bool{}
	for _, n := range c.s.units.names() {
		all[n] = true
	}
	missing := map[string]bool{}
	if c.has("all") || c.has("state") {
		err := c.s.withUnits(func(l *loader) error {
			t, err := l.plan(false, "default.target")
			if err != nil {
				return err
			}
			for _, st := range t.steps {
				all[st.unit.name] = true
				for _, n := range st.unit.words("Unit.Wants", "Unit.Requires", "Unit.After", "Unit.Before") {
					if _, err := l.load(n); err != nil && checkName(n) == nil && len(missing) < maxSteps {
						missing[n] = true
					}
				}
			}
			return nil
		})
		if err != nil {
			c.fails(codeFailed, "Failed to list units: %v", err)
			return
		}
		maps.Copy(all, missing)
	}
	states := c.list("state")
	if c.has("failed") {
		states = append(states, stateFailed)
	}
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !c.matches(name) {
			continue
		}
		x := c.s.look(name)
		load := x.load()
		if len(states) > 0 && !slices.ContainsFunc(states, func(st string) bool { return st == x.state || st == x.sub || st == load }) {
			continue
		}
		if len(states) == 0 && !c.has("all") && x.state == stateInactive {
			continue
		}
		mark := " "
		if load == "not-found" || load == "masked" || x.state == stateFailed {
			mark = "●"
		}
		row := []string{mark, name, load, x.state, x.sub, x.description()}
		if c.has("plain") || c.has("no-legend") && mark == " " {
			row = row[1:]
		}
		rows = append(rows, row)
	}
	header := []string{"UNIT", "LOAD", "ACTIVE", "SUB", "DESCRIPTION"}
	if !c.has("plain") && (len(rows) == 0 || len(rows[0]) == len(header)+1) {
		header = append([]string{" "}, header...)
	}
	for i, r := range rows {
		if len(r) < len(header) {
			rows[i] = append([]string{" "}, r...)
		}
	}
	footer := fmt.Sprintf("\nLOAD   = Reflects whether the unit definition was properly loaded.\nACTIVE = The high-level unit activation state, i.e. generalization of SUB.\nSUB    = The low-level unit activation state, values depend on unit type.\n%d loaded units listed.", len(rows))
	if len(rows) == 0 {
		footer = "0 loaded units listed."
	}
	if !c.has("all") {
		footer += " Pass --all to see loaded but inactive units, too."
	}
	c.table(header, rows, footer+"\nTo show all installed unit files use 'systemctl list-unit-files'.\n")
}

// files returns the names of all unit files, sorted.
func (c *ctl) files() []string {
	found := map[string]bool{}
	_ = c.s.withUnits(func(l *loader) error { // else there are none
		for _, names := range l.dirs {
			for n := range names {
				if checkName(n) == nil {
					found[n] = true
				}
			}
		}
		return nil
	})
	return slices.Sorted(maps.Keys(found))
}

func (c *ctl) listFiles() {
	var rows [][]string
	names := c.files()
	states := c.list("state")
	err := c.s.withUnits(func(l *loader) error {
		for _, name := range names {
			if !c.matches(name) {
				continue
			}
			state, err := l.fileState(name)
			if err != nil {
				state = "bad"
			}
			if len(states) > 0 && !slices.Contains(states, state) {
				continue
			}
			preset := "-"
			if slices.Contains([]string{"enabled", "disabled", "masked", "linked", "indirect"}, state) {
				preset = "enabled"
			}
			rows = append(rows, []string{name, state, preset})
		}
		return nil
	})
	if err != nil {
		c.fails(codeFailed, "Failed to list unit files: %v", err)
		return
	}
	if len(rows) == 0 && len(c.args) > 0 {
		c.code = codeFailed
	}
	c.table([]string{"UNIT FILE", "STATE", "PRESET"}, rows, fmt.Sprintf("\n%d unit files listed.\n", len(rows)))
}

// listDependencies lists what a unit needs, or with --reverse what needs it.
func (c *ctl) listDependencies() {
	names := c.units()
	if len(names) == 0 {
		names = []string{"default.target"}
	}
	for _, name := range names {
		err := c.s.withUnits(func(l *loader) error {
			t, err := l.plan(false, name)
			if err != nil {
				return err
			}
			c.print("%s\n", name)
			var write func(st *step, indent string, above []string)
			write = func(st *step, indent string, above []string) {
				var below []*step
				for _, n := range t.needed(st.unit) {
					if other := t.by[n]; other != nil && other != st && !slices.Contains(below, other) {
						below = append(below, other)
					}
				}
				slices.SortFunc(below, func(a, b *step) int { return strings.Compare(a.unit.name, b.unit.name) })
				for i, b := range below {
					branch, deeper := "├─", "│ "
					if i == len(below)-1 {
						branch, deeper = "└─", "  "
					}
					mark := dots[stateInactive] + " "
					if running(c.s.units.state(b.unit.name)) {
						mark = dots[stateActive] + " "
					}
					if c.has("plain") {
						branch, mark, deeper = "  ", "", "  "
					}
					c.print("%s%s%s%s\n", mark, indent, branch, b.unit.name)
					if (kind(b.unit.name) == "target" || c.has("all")) && !slices.Contains(above, b.unit.name) && c.out.Len() < maxConfig {
						write(b, indent+deeper, append(above, b.unit.name))
					}
				}
			}
			write(t.by[name], "", []string{name})
			return nil
		})
		if err != nil {
			c.failedTo(name, err)
		}
	}
}

func (c *ctl) listJobs() { c.print("No jobs running.\n") }

func (c *ctl) listNone() { c.print("0 %s listed.\n", strings.TrimPrefix(c.verb, "list-")) }

func (c *ctl) listPaths() {
	var rows [][]string
	for _, name := range c.s.units.names() {
		x := c.s.units.find(name)
		if x == nil || x.paths == nil || !running(c.s.units.state(name)) {
			continue
		}
		for _, key := range []string{"PathExists", "PathExistsGlob", "PathChanged", "PathModified", "DirectoryNotEmpty"} {
			for _, p := range x.unit.keys["Path."+key] {
				rows = append(rows, []string{p, key, name, triggered(x.unit)})
			}
		}
	}
	c.table([]string{"PATH", "CONDITION", "UNIT", "ACTIVATES"}, rows, fmt.Sprintf("\n%d paths listed.\n", len(rows)))
}

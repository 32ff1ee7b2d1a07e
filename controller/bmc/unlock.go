package bmc

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A LockedError reports a setting that cannot have a value because of the values of
// others.
type LockedError struct {
	Name   string
	Forced any      // value that the others give it; nil if they only make it read-only
	While  []Change // present values of what Unlock changes
	Unlock []Change // changes after which it can have the value; none: none are known
}

// Change is one change of a setting.
type Change struct {
	Name  string
	Value any
}

func (e *LockedError) Error() string {
	join := func(all []Change, verb, word string) string {
		var out []string
		for _, c := range all {
			out = append(out, strings.Join(strings.Fields(fmt.Sprintf("%s %s %s %s", verb, c.Name, word, FormatValue(c.Value))), " "))
		}
		return strings.Join(out, " and ")
	}
	why := "it is ReadOnly"
	if e.Forced != nil {
		why = "it is " + FormatValue(e.Forced)
	}
	switch {
	case len(e.Unlock) > 0:
		why += " while " + join(e.While, "", "is") + ": " + join(e.Unlock, "set", "to") + " first"
	case e.Forced != nil:
		why += " by the values of other settings"
	}
	return fmt.Sprintf("Setting %s is invalid, %s", e.Name, why)
}

const (
	// maxConditions bounds the conditions that are evaluated to find what unlocks
	// settings: a BMC sends as many rows as it likes.
	maxConditions = 2 << 20
	// maxDepth bounds the settings that unlock each other in turn.
	maxDepth = 3
)

// Locks returns the wanted settings that other settings do not allow, by name. The rules
// are those of the present settings with the wanted ones: what one change unlocks may be
// set together with it. A setting that keeps its value, or that others give the wanted
// value, is allowed.
func (r *AttributeRegistry) Locks(present, wanted Settings) map[string]*LockedError {
	if r == nil || len(r.Dependencies) == 0 {
		return nil
	}
	after := maps.Clone(present)
	if after == nil {
		after = Settings{}
	}
	maps.Copy(after, wanted)
	s := &search{r: r, rows: r.rowsByTarget(), left: maxConditions}
	u, now := s.rules(after), s.rules(present)
	out := map[string]*LockedError{}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if !u.refuses(name, present[name], wanted[name]) {
			continue
		}
		if SameValue(r.Attribute(name), present[name], wanted[name]) && now.refuses(name, present[name], wanted[name]) {
			continue // it has the value in spite of the registry, which is no reason to change it
		}
		e := &LockedError{Name: name}
		e.Forced, _ = u.Forced(name)
		e.Unlock = s.unlock(after, name, wanted[name], maxDepth)
		for _, c := range e.Unlock {
			e.While = append(e.While, Change{c.Name, after[c.Name]})
		}
		out[name] = e
	}
	return out
}

// refuses reports whether the rules do not let a setting have a value.
func (u *Rules) refuses(name string, present, wanted any) bool {
	a := u.r.Attribute(name)
	if a == nil {
		return false
	}
	if forced, ok := u.Forced(name); ok {
		return !SameValue(a, forced, wanted)
	}
	return u.Attribute(name).ReadOnly && !SameValue(a, present, wanted)
}

// search looks for the changes that unlock settings.
type search struct {
	r    *AttributeRegistry
	rows map[string][]*Dependency // rows that decide whether an attribute can be set
	left int                      // conditions that may still be evaluated
}

func (r *AttributeRegistry) rowsByTarget() map[string][]*Dependency {
	out := map[string][]*Dependency{}
	for i := range r.Dependencies {
		switch d := &r.Dependencies[i]; d.Property {
		case ReadOnly, Immutable, CurrentValue:
			out[d.Attribute] = append(out[d.Attribute], d)
		}
	}
	return out
}

// rules evaluates the rules for some values, and counts the work.
func (s *search) rules(values Settings) *Rules {
	u := s.r.Rules(values)
	for i := range s.r.Dependencies {
		s.left -= u.passes * (1 + len(s.r.Dependencies[i].If))
	}
	return u
}

// accepted reports whether a setting can have a value among others.
func (s *search) accepted(values Settings, name string, value any) bool {
	return !s.rules(values).refuses(name, nil, value)
}

// unlock returns the fewest changes after which a setting can have a value, those that
// must come first first; nil if it finds none.
func (s *search) unlock(values Settings, name string, value any, depth int) []Change {
	if depth == 0 {
		return nil
	}
	var tries [][]Change
	for _, d := range s.rows[name] {
		asked, all := s.changes(d)
		for _, c := range slices.Concat(asked, all) {
			if SameValue(s.r.Attribute(c.Name), values[c.Name], c.Value) {
				continue
			}
			tries = append(tries, []Change{c})
		}
		if len(asked) > 1 {
			tries = append(tries, asked)
		}
	}
	for _, changes := range tries {
		if s.left > 0 && s.allowed(overlay(values, changes...), name, value, changes) {
			return changes
		}
	}
	for _, changes := range tries { // they may be locked themselves
		with, before := overlay(values, changes...), []Change(nil)
		for _, c := range changes {
			if s.left > 0 && !s.accepted(with, c.Name, c.Value) {
				before = append(before, s.unlock(with, c.Name, c.Value, depth-1)...)
			}
		}
		if len(before) > 0 && s.left > 0 && s.allowed(overlay(with, before...), name, value, changes) {
			return append(before, changes...)
		}
	}
	return nil
}

// allowed reports whether both a setting and the changes for it can have their values.
func (s *search) allowed(values Settings, name string, value any, changes []Change) bool {
	for _, c := range changes {
		if !s.accepted(values, c.Name, c.Value) {
			return false
		}
	}
	return s.accepted(values, name, value)
}

// changes returns the changes with which a row's conditions hold, and all that could
// make one of them hold or not.
func (s *search) changes(d *Dependency) (asked, all []Change) {
	for i := range d.If {
		c := &d.If[i]
		a := s.r.Attribute(c.Attribute)
		if a == nil || cmp.Or(c.Property, CurrentValue) != CurrentValue {
			continue
		}
		holds := false
		for _, v := range candidates(a, c.Value) {
			all = append(all, Change{a.Name, v})
			if !holds && satisfies(a, c, v) {
				asked, holds = append(asked, Change{a.Name, v}), true
			}
		}
	}
	return asked, all
}

// satisfies reports whether a condition holds for a value of its attribute.
func satisfies(a *Attribute, c *Condition, v any) bool {
	u := Rules{r: NewAttributeRegistry("", []Attribute{*a}), values: Settings{a.Name: v}}
	return u.holds(c)
}

// candidates returns values of an attribute that a comparison with another value tells
// apart: all of an Enumeration, those around the bound of an Integer.
func candidates(a *Attribute, than any) []any {
	than = typed(a, than, nil)
	out := []any{than}
	switch a.Type {
	case EnumerationAttribute:
		for _, v := range a.Values {
			if v != than {
				out = append(out, v)
			}
		}
	case BooleanAttribute:
		out = append(out, FormatValue(than) != "true")
	case IntegerAttribute:
		n, ok := than.(int64)
		if ok {
			out = append(out, n+1, n-1)
		}
		out = slices.DeleteFunc(out, func(v any) bool {
			n, ok := v.(int64)
			return ok && (a.Lower != nil && n < *a.Lower || a.Upper != nil && n > *a.Upper)
		})
	}
	return out
}

// overlay returns settings with some changes.
func overlay(values Settings, changes ...Change) Settings {
	out := maps.Clone(values)
	for _, c := range changes {
		out[c.Name] = c.Value
	}
	return out
}

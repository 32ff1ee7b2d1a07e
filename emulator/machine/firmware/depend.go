package firmware

import (
	"fmt"
	"slices"

	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// about names a property of an attribute.
type about struct {
	attribute string
	property  Property
}

// Rules are the attributes' properties after the dependencies, for given
// values.
type Rules struct {
	r     *Registry
	value func(name string) Value
	set   map[about]Value
	by    map[about]string // attribute whose value caused it
}

// rules evaluates each dependency once, those that others read first.
func (r *Registry) rules(value func(string) Value) Rules {
	u := Rules{r: r, value: value, set: map[about]Value{}, by: map[about]string{}}
	for _, i := range r.order {
		d := &r.Dependencies[i]
		if u.hold(d.If) {
			at := about{d.Set.Attribute, d.Set.Property}
			u.set[at], u.by[at] = d.Set.Value, d.If[0].Attribute
		}
	}
	return u
}

func (u Rules) hold(conditions []Condition) bool {
	all := false
	for i, c := range conditions {
		one := u.holds(c)
		switch {
		case i == 0:
			all = one
		case c.Term == Or:
			all = all || one
		default:
			all = all && one
		}
	}
	return all
}

func (u Rules) holds(c Condition) bool {
	got := u.Property(c.Attribute, c.Property)
	is := relations[c.Is]
	if got == c.Value {
		return is[1]
	}
	if n, ok := got.order(c.Value); ok {
		return is[n+1]
	}
	return is[0] && is[2] // they differ, and have no order
}

// Property returns a property of an attribute; the zero Value where it is
// unbounded.
func (u Rules) Property(name string, p Property) Value {
	if v, ok := u.set[about{name, p}]; ok {
		return v
	}
	a := u.r.Attribute(name)
	if a == nil {
		return Value{}
	}
	switch p {
	case CurrentValue:
		return u.value(name)
	case DefaultValue:
		return a.Default
	case ReadOnly:
		return Boolean(a.ReadOnly)
	case Immutable:
		return Boolean(a.Immutable)
	case GrayOut:
		return Boolean(a.GrayOut)
	case Hidden:
		return Boolean(a.Hidden)
	case ScalarIncrement:
		return Integer(a.Step)
	}
	if n := a.bound(p); n != nil {
		return Integer(*n)
	}
	return Value{}
}

// bound returns one of the four bounds of an attribute, or nil.
func (a *Attribute) bound(p Property) *int64 {
	switch p {
	case LowerBound:
		return a.Lower
	case UpperBound:
		return a.Upper
	case MinLength:
		return a.MinLength
	case MaxLength:
		return a.MaxLength
	}
	return nil
}

// governs returns the attribute whose value determines a property; "" when none
// does.
func (u Rules) governs(at about) string {
	if by := u.by[at]; by != "" {
		return by
	}
	for i := range u.r.Dependencies {
		if d := &u.r.Dependencies[i]; at == (about{d.Set.Attribute, d.Set.Property}) {
			return d.If[0].Attribute // that it would follow
		}
	}
	return ""
}

// is reports whether a property is true.
func (u Rules) is(name string, p Property) bool { return u.Property(name, p) == Boolean(true) }

// locked reports whether an attribute cannot be set, and the attribute whose value decides
// it; "" when none does.
func (u Rules) locked(name string) (by string, locked bool) {
	for _, p := range []Property{Immutable, ReadOnly} {
		if u.is(name, p) {
			return u.governs(about{name, p}), true
		}
	}
	return "", false
}

// forced returns the values that dependencies and changed bounds impose on
// attributes, by name.
func (u Rules) forced() Settings {
	var out Settings
	for i := range u.r.Dependencies {
		name := u.r.Dependencies[i].Set.Attribute
		want := u.Property(name, CurrentValue)
		if n := want.n; want.kind == integer {
			if lo := u.Property(name, LowerBound); !lo.IsZero() {
				n = max(n, lo.n)
			}
			if hi := u.Property(name, UpperBound); !hi.IsZero() {
				n = min(n, hi.n)
			}
			want = Integer(n)
		}
		if want != u.value(name) {
			out = out.with(name, want)
		}
	}
	return out
}

// arrange orders the dependencies so that each comes after those that change
// what it reads; those that change the same property keep their order.
func (r *Registry) arrange() error {
	after := make([][]int, len(r.Dependencies)) // dependencies that come after each
	waits := make([]int, len(r.Dependencies))   // number of dependencies that each waits for
	for i := range r.Dependencies {
		set := about{r.Dependencies[i].Set.Attribute, r.Dependencies[i].Set.Property}
		for j := range r.Dependencies {
			d := &r.Dependencies[j]
			reads := slices.ContainsFunc(d.If, func(c Condition) bool { return about{c.Attribute, c.Property} == set })
			if reads || j > i && (about{d.Set.Attribute, d.Set.Property}) == set {
				after[i] = append(after[i], j)
				waits[j]++
			}
		}
	}
	r.order = make([]int, 0, len(r.Dependencies))
	done := make([]bool, len(r.Dependencies))
	for len(r.order) < len(r.Dependencies) {
		next := -1
		for i := range r.Dependencies {
			if !done[i] && waits[i] == 0 {
				next = i
				break
			}
		}
		if next < 0 {
			i := slices.Index(done, false)
			return yamlfile.Errorf(fmt.Sprintf("dependencies[%d]", r.Dependencies[i].row), "must not depend on what it changes, not even by way of others")
		}
		done[next] = true
		r.order = append(r.order, next)
		for _, j := range after[next] {
			waits[j]--
		}
	}
	return nil
}

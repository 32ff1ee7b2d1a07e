package bmc

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Property is a property of an attribute that dependencies read or change (DSP2046,
// AttributeRegistry.MapFromProperty and MapToProperty).
type Property string

// The properties that conditions read, or that decide whether an attribute takes a
// value. GrayOut and Hidden do not decide it: the value of a grayed-out attribute can be
// modified, and a hidden one is hidden in user interfaces (DSP2046,
// AttributeRegistry.Attributes).
const (
	CurrentValue Property = "CurrentValue"
	DefaultValue Property = "DefaultValue"
	ReadOnly     Property = "ReadOnly"
	Immutable    Property = "Immutable"
	GrayOut      Property = "GrayOut"
	Hidden       Property = "Hidden"
	WriteOnly    Property = "WriteOnly"
	LowerBound   Property = "LowerBound"
	UpperBound   Property = "UpperBound"
	MinLength    Property = "MinLength"
	MaxLength    Property = "MaxLength"
)

// Relation compares a property with a value (DSP2046, MapFromCondition).
type Relation string

// The relations.
const (
	Equal          Relation = "EQU"
	NotEqual       Relation = "NEQ"
	Greater        Relation = "GTR"
	GreaterOrEqual Relation = "GEQ"
	Less           Relation = "LSS"
	LessOrEqual    Relation = "LEQ"
)

// Condition is one comparison of a dependency (DSP2046, MapFrom).
type Condition struct {
	Or        bool // joined by OR to those before it, else by AND
	Attribute string
	Property  Property // "" is CurrentValue
	Is        Relation
	Value     any
}

// Dependency changes a property of an attribute while its conditions hold (DSP2046,
// AttributeRegistry.Dependencies of the type Map).
type Dependency struct {
	If        []Condition // taken from left to right: neither AND nor OR binds closer
	Attribute string      // MapToAttribute
	Property  Property    // MapToProperty
	Value     any         // MapToValue
}

// maxPasses bounds the chains of dependencies that read what others change, and the
// work for rows that contradict each other in a circle.
const maxPasses = 32

// about names a property of an attribute.
type about struct {
	attribute string
	property  Property
}

// Rules are the properties that a registry's attributes have while the settings have
// certain values.
type Rules struct {
	r      *AttributeRegistry
	values Settings
	set    map[about]any // what dependencies change
	passes int           // passes over all rows that it took
}

// Rules evaluates the dependencies for some values of settings. Rows are taken in the
// order of the document: of two that change one property the later one counts. A nil
// registry has no dependencies.
func (r *AttributeRegistry) Rules(values Settings) *Rules {
	u := &Rules{r: r, values: values}
	if r == nil || len(r.Dependencies) == 0 {
		return u
	}
	for range maxPasses { // until no row changes what another one has read
		next := map[about]any{}
		for i := range r.Dependencies {
			if d := &r.Dependencies[i]; u.hold(d.If) {
				next[about{d.Attribute, d.Property}] = d.Value
			}
		}
		u.passes++
		same := maps.EqualFunc(u.set, next, func(x, y any) bool { return FormatValue(x) == FormatValue(y) })
		if u.set = next; same {
			break
		}
	}
	return u
}

// hold reports whether the conditions of a dependency hold; without any they do not.
func (u *Rules) hold(all []Condition) bool {
	yes := false
	for i := range all {
		one := u.holds(&all[i])
		switch {
		case i == 0:
			yes = one
		case all[i].Or:
			yes = yes || one
		default:
			yes = yes && one
		}
	}
	return yes
}

func (u *Rules) holds(c *Condition) bool {
	a := u.r.Attribute(c.Attribute)
	if a == nil {
		return false // nobody can say
	}
	property := cmp.Or(c.Property, CurrentValue)
	got := u.property(a, property)
	if property != CurrentValue && property != DefaultValue {
		a = nil // the type is the property's
	}
	order, ordered := compare(a, got, c.Value)
	equal := SameValue(a, got, c.Value)
	switch c.Is {
	case Equal:
		return equal
	case NotEqual:
		return !equal
	case Greater:
		return ordered && order > 0
	case GreaterOrEqual:
		return equal || ordered && order > 0
	case Less:
		return ordered && order < 0
	case LessOrEqual:
		return equal || ordered && order < 0
	}
	return false
}

// compare orders two values of an attribute; false if they have no order.
func compare(a *Attribute, x, y any) (int, bool) {
	x, y = typed(a, x, y), typed(a, y, x)
	number := func(v any) (float64, bool) {
		switch v := v.(type) {
		case int64:
			return float64(v), true
		case float64:
			return v, true
		}
		return 0, false
	}
	n, one := number(x)
	m, two := number(y)
	s, text := x.(string)
	t, texts := y.(string)
	switch {
	case one && two:
		return cmp.Compare(n, m), true
	case text && texts:
		return strings.Compare(s, t), true
	}
	return 0, false
}

// property returns a property of an attribute under the rules; nil where it has none.
func (u *Rules) property(a *Attribute, p Property) any {
	if v, ok := u.set[about{a.Name, p}]; ok {
		return v
	}
	limit := func(n *int64) any {
		if n == nil {
			return nil
		}
		return *n
	}
	switch p {
	case CurrentValue:
		return u.values[a.Name]
	case ReadOnly:
		return a.ReadOnly
	case Immutable:
		return a.Immutable
	case GrayOut:
		return a.GrayOut
	case Hidden:
		return a.Hidden
	case WriteOnly:
		return a.WriteOnly
	case DefaultValue:
		return a.Default
	case LowerBound:
		return limit(a.Lower)
	case UpperBound:
		return limit(a.Upper)
	case MinLength:
		return limit(a.MinLength)
	case MaxLength:
		return limit(a.MaxLength)
	}
	return nil
}

// Attribute returns an attribute as the rules have it: whether it can be set, and
// between which bounds. It is nil for one that the registry does not have.
func (u *Rules) Attribute(name string) *Attribute {
	a := u.r.Attribute(name)
	if a == nil {
		return nil
	}
	out := *a
	limit := func(p Property, was *int64) *int64 {
		switch n := u.property(a, p).(type) {
		case int64:
			return &n
		case float64:
			return new(int64(n))
		}
		return was
	}
	out.Lower, out.Upper = limit(LowerBound, a.Lower), limit(UpperBound, a.Upper)
	out.MinLength, out.MaxLength = limit(MinLength, a.MinLength), limit(MaxLength, a.MaxLength)
	out.ReadOnly = FormatValue(u.property(a, ReadOnly)) == "true" || FormatValue(u.property(a, Immutable)) == "true"
	return &out
}

// Forced returns the value that dependencies give an attribute, and whether they do.
func (u *Rules) Forced(name string) (any, bool) {
	v, ok := u.set[about{name, CurrentValue}]
	return v, ok
}

// Changed returns the names of the attributes that the rules change, sorted.
func (u *Rules) Changed() []string {
	names := map[string]bool{}
	for at := range u.set {
		names[at.attribute] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Depends reports whether dependencies decide if an attribute can be set.
func (r *AttributeRegistry) Depends(name string) bool {
	return r != nil && slices.ContainsFunc(r.Dependencies, func(d Dependency) bool {
		return d.Attribute == name && (d.Property == ReadOnly || d.Property == Immutable)
	})
}

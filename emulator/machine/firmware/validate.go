package firmware

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

var (
	// attributeName is wider than DSP2046 has it (AttributeRegistry.AttributeName):
	// there are vendors whose names have a hash.
	attributeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_#]{0,63}$`)
	// registryID is of the standard's form, or has its version with dots.
	registryID  = regexp.MustCompile(`^[A-Za-z0-9]+\.(v[0-9]+_[0-9]+_[0-9]+|[0-9]+\.[0-9]+\.[0-9]+)$`)
	versionText = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9]+$`)
)

// check collects the mistakes in a registry.
type check struct {
	r    *Registry
	errs []error
}

func (c *check) need(ok bool, field, must string, args ...any) {
	if !ok {
		c.errs = append(c.errs, yamlfile.Errorf(fmt.Sprintf(field, args...), "must %s", must))
	}
}

// validate checks a registry and prepares it for use. Its errors name rows as the
// file has them.
func (r *Registry) validate() error {
	c := &check{r: r}
	c.need(registryID.MatchString(r.ID), "id", "be like Name.v1_0_0 or Name.1.0.0")
	c.need(r.Name != "", "name", "not be empty")
	c.need(versionText.MatchString(r.Version), "version", "be like 1.0.0")
	c.need(r.Language != "", "language", "be a tag of RFC 5646, like en")
	c.need(r.Owner != "", "owner", "not be empty")
	paths := map[string]bool{}
	for i, m := range r.Menus {
		c.need(m.Name != "" && m.Display != "", "menus[%d]", "have a name and a display", i)
		c.need(strings.HasPrefix(m.Path, "./") && !paths[m.Path], "menus[%d].path", "begin with ./ and differ from the others", i)
		paths[m.Path] = true
	}
	r.index = map[string]int{}
	for i := range r.Attributes {
		a := &r.Attributes[i]
		_, twice := r.index[a.Name]
		r.index[a.Name] = i
		i := a.row
		c.need(attributeName.MatchString(a.Name), "attributes[%d].name", "be letters, digits, _ and #, up to 64", i)
		c.need(!twice, "attributes[%d].name", "differ from the others: "+a.Name, i)
		c.need(a.Menu == "" || paths[a.Menu], "attributes[%d].menu", "be the path of a menu", i)
		c.need(a.Display != "", "attributes[%d].display", "not be empty", i)
		c.attribute(i, a)
	}
	if len(c.errs) > 0 {
		return errors.Join(c.errs...) // the rest would speak of attributes that are wrong
	}
	for i := range r.Dependencies {
		c.dependency(r.Dependencies[i].row, &r.Dependencies[i])
	}
	for _, e := range r.Effects {
		i := e.row
		a := r.Attribute(e.Attribute)
		is, known := does[e.Does]
		c.need(a != nil, "effects[%d].attribute", "be an attribute", i)
		c.need(known, "effects[%d].does", "be an effect", i)
		c.need(a == nil || e.Value.IsZero() || a.fits(e.Value) == "", "effects[%d].value", "be a value of the attribute", i)
		c.need(a == nil || a.Fact == "" && a.Type != PasswordType, "effects[%d].attribute", "be a setting", i)
		c.need(!known || is.on == (e.On != ""), "effects[%d].on", "be there if and only if the effect has several parts to act on", i)
		c.need(!known || is.as == (e.As != ""), "effects[%d].as", "be there if and only if the effect can differ", i)
	}
	if len(c.errs) > 0 {
		return errors.Join(c.errs...)
	}
	if err := r.arrange(); err != nil {
		return err
	}
	defaults := r.rules(func(name string) Value { return r.Attribute(name).Default })
	for _, s := range defaults.forced() {
		c.need(false, "dependencies", "not change the defaults: "+s.Name+" becomes "+s.Value.String())
	}
	return errors.Join(c.errs...)
}

func (c *check) attribute(i int, a *Attribute) {
	at := func(field string) string { return fmt.Sprintf("attributes[%d].%s", i, field) }
	switch a.Type {
	case Enumeration, StringType, IntegerType, BooleanType, PasswordType:
	default:
		c.need(false, at("type"), "be Enumeration, String, Integer, Boolean or Password")
		return
	}
	c.need((a.Type == Enumeration) == (len(a.Values) > 0), at("values"), "be there for an Enumeration, and for nothing else")
	names := map[string]bool{}
	for j, v := range a.Values {
		c.need(v.Name != "" && v.Display != "" && !names[v.Name], at("values[%d]"), "have a name of its own and a display", j)
		names[v.Name] = true
	}
	long := a.Type == StringType || a.Type == PasswordType
	c.need(a.Type == IntegerType || a.Lower == nil && a.Upper == nil && a.Step == 0, at("lower"), "not be there: only an Integer has lower, upper and step")
	c.need(long || a.MinLength == nil && a.MaxLength == nil && a.Pattern == "", at("minLength"), "not be there: only a String or a Password has minLength, maxLength and pattern")
	c.need(a.Step >= 0, at("step"), "not be negative")
	if a.Lower != nil && a.Upper != nil {
		c.need(*a.Lower <= *a.Upper, at("upper"), "not be below lower")
	}
	if a.MinLength != nil && a.MaxLength != nil {
		c.need(0 <= *a.MinLength && *a.MinLength <= *a.MaxLength, at("maxLength"), "not be below minLength")
	}
	if a.Pattern != "" {
		var err error
		a.pattern, err = regexp.Compile(a.Pattern)
		c.need(err == nil, at("pattern"), fmt.Sprintf("be a regular expression: %v", err))
		if err != nil {
			return
		}
	}
	c.need(a.Fact == "" || a.ReadOnly, at("readOnly"), "be true: a fact is not set")
	switch {
	case a.Fact != "" || a.Type == PasswordType:
		c.need(a.Default.IsZero(), at("default"), "not be there: it is a fact, or a password")
	default:
		fault := a.fits(a.Default)
		c.need(fault == "", at("default"), "be a value of the attribute: "+string(fault))
	}
}

func (c *check) dependency(i int, d *Dependency) {
	at := func(field string) string { return fmt.Sprintf("dependencies[%d].%s", i, field) }
	c.need(len(d.If) > 0, at("if"), "not be empty")
	for j := range d.If {
		k := &d.If[j]
		if k.Property == "" {
			k.Property = CurrentValue
		}
		c.need((j == 0) == (k.Term == "") && (k.Term == "" || k.Term == And || k.Term == Or), at("if[%d].term"), "be AND or OR from the second condition on", j)
		_, known := relations[k.Is]
		c.need(known, at("if[%d].is"), "be EQU, NEQ, GTR, GEQ, LSS or LEQ", j)
		c.need(k.Property != Immutable, at("if[%d].property"), "be a property that dependencies read", j)
		c.value(at(fmt.Sprintf("if[%d]", j)), k.Attribute, k.Property, k.Value)
	}
	if d.For == "" && len(d.If) > 0 {
		d.For = d.If[0].Attribute
	}
	c.need(c.r.Attribute(d.For) != nil, at("for"), "be an attribute")
	c.value(at("set"), d.Set.Attribute, d.Set.Property, d.Set.Value)
	if a := c.r.Attribute(d.Set.Attribute); a != nil && (d.Set.Property == CurrentValue || d.Set.Property == DefaultValue) {
		c.need(a.Fact == "" && !a.Immutable && a.Type != PasswordType, at("set.attribute"), "be one that can change")
	}
}

// value checks that a property of an attribute can have a value.
func (c *check) value(field, name string, p Property, v Value) {
	a := c.r.Attribute(name)
	c.need(a != nil, field+".attribute", "be an attribute")
	kind, known := properties[p]
	c.need(known, field+".property", "be a property that dependencies read or change")
	if a == nil || !known {
		return
	}
	c.need(a.Fact == "", field+".attribute", "not be a fact: dependencies know settings only")
	if kind == "" {
		c.need(a.fits(v) == "", field+".value", "be a value of "+name)
		return
	}
	c.need(v.kind == kind, field+".value", "be of the kind "+string(kind))
}

// fits returns the fault of a value, without regard to dependencies; "" when it
// has none.
func (a *Attribute) fits(v Value) Fault {
	u := Rules{r: &Registry{index: map[string]int{a.Name: 0}, Attributes: []Attribute{*a}}}
	return u.fits(a, v)
}

// fits returns the fault of a value of an attribute; "" when it has none.
func (u Rules) fits(a *Attribute, v Value) Fault {
	if v.kind != a.Type.kind() {
		return WrongType
	}
	over := func(n int64, p Property) bool { b := u.Property(a.Name, p); return !b.IsZero() && n > b.n }
	under := func(n int64, p Property) bool { b := u.Property(a.Name, p); return !b.IsZero() && n < b.n }
	switch a.Type {
	case Enumeration:
		for _, c := range a.Values {
			if c.Name == v.s {
				return ""
			}
		}
		return NotInList
	case IntegerType:
		if over(v.n, UpperBound) || under(v.n, LowerBound) {
			return OutOfRange
		}
	case StringType:
		return u.fitsText(a, v.s)
	}
	return ""
}

// fitsText is fits for a string or a password.
func (u Rules) fitsText(a *Attribute, s string) Fault {
	n := int64(utf8.RuneCountInString(s))
	if b := u.Property(a.Name, MinLength); !b.IsZero() && n < b.n {
		return TooShort
	}
	if b := u.Property(a.Name, MaxLength); !b.IsZero() && n > b.n {
		return TooLong
	}
	if a.pattern != nil && !a.pattern.MatchString(s) {
		return NoMatch
	}
	return ""
}

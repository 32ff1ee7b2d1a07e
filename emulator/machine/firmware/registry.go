package firmware

import "regexp"

// Type is the type of an attribute (DSP2046, AttributeRegistry.AttributeType).
type Type string

// The attribute types.
const (
	Enumeration  Type = "Enumeration"
	StringType   Type = "String"
	IntegerType  Type = "Integer"
	BooleanType  Type = "Boolean"
	PasswordType Type = "Password"
)

// Registry says which attributes a BIOS has, what values they take and how
// they depend on each other. It is parsed once, shared by all machines of a
// model, and never changed.
type Registry struct {
	ID           string       `json:"id"` // ID of the resource: "BiosAttributeRegistryG1.v1_0_0"
	Name         string       `json:"name"`
	Version      string       `json:"version"` // 1.0.0
	Language     string       `json:"language"`
	Owner        string       `json:"owner"`
	Strict       bool         `json:"strict"` // what a change would unlock can be changed only once it was applied
	Menus        []Menu       `json:"menus"`
	Attributes   []Attribute  `json:"attributes"`
	Dependencies []Dependency `json:"dependencies"`
	Effects      []Effect     `json:"effects"`

	index map[string]int // indexes in Attributes, by name
	order []int          // indexes in Dependencies: those that others read come first
}

// Menu is a page of the firmware's set-up.
type Menu struct {
	Name    string `json:"name"`
	Path    string `json:"path"` // "./Boot/Network"
	Display string `json:"display"`
	Order   int    `json:"order"`
}

// Attribute is one setting (DSP2046, AttributeRegistry.Attributes).
type Attribute struct {
	Name          string   `json:"name"`
	Type          Type     `json:"type"`
	Display       string   `json:"display"`
	Help          string   `json:"help"`
	Warning       string   `json:"warning"`
	Menu          string   `json:"menu"` // path
	Order         int      `json:"order"`
	Default       Value    `json:"default"`
	Values        []Choice `json:"values"` // values that an Enumeration may have
	Lower         *int64   `json:"lower"`  // LowerBound of an Integer
	Upper         *int64   `json:"upper"`
	Step          int64    `json:"step"`      // by which a set-up screen moves; not a rule for values
	MinLength     *int64   `json:"minLength"` // characters of a String or a Password
	MaxLength     *int64   `json:"maxLength"`
	Pattern       string   `json:"pattern"`   // ValueExpression of a String; RE2, which Perl understands
	ReadOnly      bool     `json:"readOnly"`  // nobody sets it here
	Immutable     bool     `json:"immutable"` // it tells of the hardware
	Hidden        bool     `json:"hidden"`
	GrayOut       bool     `json:"grayOut"`
	Unique        bool     `json:"unique"` // the value is one system's own: defaults leave it as it is
	ResetRequired bool     `json:"resetRequired"`
	Fact          string   `json:"fact"` // fact of the machine that is the value: "serial"
	Each          string   `json:"each"` // part of which the machine may have several: {n} counts them

	pattern *regexp.Regexp
	row     int // row of the file, counted from 0
}

// Choice is a value of an Enumeration.
type Choice struct {
	Name    string `json:"name"`
	Display string `json:"display"`
}

// Property is a property of an attribute that dependencies read or change
// (DSP2046, AttributeRegistry.MapFromProperty and MapToProperty).
type Property string

// The properties.
const (
	CurrentValue    Property = "CurrentValue"
	DefaultValue    Property = "DefaultValue"
	ReadOnly        Property = "ReadOnly"
	Immutable       Property = "Immutable" // dependencies change it, but do not read it
	GrayOut         Property = "GrayOut"
	Hidden          Property = "Hidden"
	LowerBound      Property = "LowerBound"
	UpperBound      Property = "UpperBound"
	MinLength       Property = "MinLength"
	MaxLength       Property = "MaxLength"
	ScalarIncrement Property = "ScalarIncrement"
)

// properties lists them with the kind of value that each holds; "" is that of
// the attribute.
var properties = map[Property]kind{
	CurrentValue: "", DefaultValue: "",
	ReadOnly: boolean, Immutable: boolean, GrayOut: boolean, Hidden: boolean,
	LowerBound: integer, UpperBound: integer, MinLength: integer, MaxLength: integer, ScalarIncrement: integer,
}

// Relation compares a property with a value (DSP2046, MapFromCondition).
type Relation string

// The relations.
const (
	EQU Relation = "EQU"
	NEQ Relation = "NEQ"
	GTR Relation = "GTR"
	GEQ Relation = "GEQ"
	LSS Relation = "LSS"
	LEQ Relation = "LEQ"
)

// relations say what each holds for: less, equal, greater.
var relations = map[Relation][3]bool{
	EQU: {false, true, false},
	NEQ: {true, false, true},
	GTR: {false, false, true},
	GEQ: {false, true, true},
	LSS: {true, false, false},
	LEQ: {true, true, false},
}

// Term joins a condition to those before it (DSP2046, MapTerms).
type Term string

// The terms. They are taken from left to right: neither binds closer.
const (
	And Term = "AND"
	Or  Term = "OR"
)

// Condition is one comparison of a dependency (DSP2046, MapFrom).
type Condition struct {
	Term      Term     `json:"term"` // "" in the first
	Attribute string   `json:"attribute"`
	Property  Property `json:"property"` // "" is CurrentValue
	Is        Relation `json:"is"`
	Value     Value    `json:"value"`
}

// Dependency changes a property of one attribute while its conditions hold
// (DSP2046, AttributeRegistry.Dependency).
type Dependency struct {
	For  string      `json:"for"` // attribute whose change makes it count; "" is that of the first condition
	If   []Condition `json:"if"`
	Set  Target      `json:"set"`
	Each string      `json:"each"` // part of which the machine may have several: {n} counts them

	row int // row of the file, counted from 0
}

// Target is what a dependency changes (DSP2046, MapToAttribute, MapToProperty
// and MapToValue).
type Target struct {
	Attribute string   `json:"attribute"`
	Property  Property `json:"property"`
	Value     Value    `json:"value"`
}

// Attribute finds an attribute by its name, or nil.
func (r *Registry) Attribute(name string) *Attribute {
	i, ok := r.index[name]
	if !ok {
		return nil
	}
	return &r.Attributes[i]
}

// kind is the kind of value that an attribute of a type has.
func (t Type) kind() kind {
	switch t {
	case IntegerType:
		return integer
	case BooleanType:
		return boolean
	case PasswordType:
		return null
	}
	return text
}

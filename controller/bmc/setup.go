package bmc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Setup is a Client that reads and changes the settings of the system firmware
// (BIOS). Every Client of a Pool implements it; its methods return an
// UnsupportedError if the BMC has no BIOS settings.
type Setup interface {
	// BIOS reads the current settings and their attribute registry.
	BIOS(ctx context.Context) (BIOS, error)
	// PendingBIOS reads the settings that the next reset will change.
	PendingBIOS(ctx context.Context) (Settings, error)
	// SetBIOS requests settings from the next reset on, in addition to those
	// pending. It returns when the BMC has accepted them. Refused settings are a
	// *SettingsError; then the BMC may have accepted none. ErrPending reports that
	// a reset has to apply pending settings first.
	SetBIOS(ctx context.Context, s Settings) error
}

// Settings holds values of BIOS attributes by name: string, bool, int64, float64,
// or nil for a value that the BMC does not show.
type Settings map[string]any

// Setting converts text to the type of its attribute or, if the registry has no
// type, to the type of its current value. Text that cannot be converted is
// returned unchanged.
func Setting(text string, a *Attribute, now any) any {
	kind := UntypedAttribute
	if a != nil {
		kind = a.Type
	}
	if kind == UntypedAttribute {
		switch now.(type) {
		case bool:
			kind = BooleanAttribute
		case int64, float64:
			kind = IntegerAttribute
		}
	}
	switch kind {
	case IntegerAttribute:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case BooleanAttribute:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	}
	return text
}

// BIOS holds the settings of a system's firmware.
type BIOS struct {
	Settings Settings
	// Registry describes the settings; nil if the BMC has no registry. It may be
	// out of date: a BIOS can have settings that its registry lacks.
	Registry *AttributeRegistry
	// Failed holds the BMC's message for each attribute that the last reset did
	// not apply.
	Failed map[string]string
}

// AttributeType is the type of a BIOS attribute (DSP2046,
// AttributeRegistry.AttributeType).
type AttributeType string

// The attribute types. The registries of some BMCs leave the type out.
const (
	UntypedAttribute     AttributeType = ""
	EnumerationAttribute AttributeType = "Enumeration"
	StringAttribute      AttributeType = "String"
	IntegerAttribute     AttributeType = "Integer"
	BooleanAttribute     AttributeType = "Boolean"
	PasswordAttribute    AttributeType = "Password"
)

// Attribute is an attribute registry's entry for one setting.
type Attribute struct {
	Name          string
	Type          AttributeType
	Values        []string // for an Enumeration
	Lower, Upper  *int64   // for an Integer
	MinLength     *int64   // for a String, in characters
	MaxLength     *int64
	Default       any  // nil if the registry does not say
	ReadOnly      bool // it cannot be set, unless a dependency unlocks it
	Immutable     bool // it tells of the hardware
	GrayOut       bool // user interfaces show it as inactive; it can be set all the same
	Hidden        bool // user interfaces do not show it
	WriteOnly     bool
	Unique        bool // differs by system, e.g. a serial number
	ResetRequired bool // takes effect at a reset
}

// AttributeRegistry describes the settings of a BIOS. It is immutable, and BMCs
// that send the same registry share it: see Registries.
type AttributeRegistry struct {
	ID         string
	Attributes []Attribute // sorted by name, each name once
	// Dependencies say how attributes depend on the values of others, in the order of
	// the BMC's document: see Rules.
	Dependencies []Dependency

	index map[string]int
}

// NewAttributeRegistry returns a registry of these attributes. Of attributes with
// the same name the first is used.
func NewAttributeRegistry(id string, attributes []Attribute, dependencies ...Dependency) *AttributeRegistry {
	all := slices.Clone(attributes)
	slices.SortStableFunc(all, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	all = slices.CompactFunc(all, func(a, b Attribute) bool { return a.Name == b.Name })
	r := &AttributeRegistry{ID: id, Attributes: all, Dependencies: dependencies, index: make(map[string]int, len(all))}
	for i := range all {
		r.index[all[i].Name] = i
	}
	return r
}

// Attribute returns the attribute with this name; nil if there is none or if the
// registry is nil.
func (r *AttributeRegistry) Attribute(name string) *Attribute {
	if r == nil {
		return nil
	}
	i, ok := r.index[name]
	if !ok {
		return nil
	}
	return &r.Attributes[i]
}

// SettingsError reports which settings a BMC refuses, and why.
type SettingsError struct {
	Refused map[string]string // the BMC's message, by attribute
	Err     error             // the whole response
}

// Names returns the names of the refused settings, sorted.
func (e *SettingsError) Names() []string { return slices.Sorted(maps.Keys(e.Refused)) }

func (e *SettingsError) Error() string {
	return fmt.Sprintf("the BMC refuses the BIOS settings %s: %v", strings.Join(e.Names(), ", "), e.Err)
}

func (e *SettingsError) Unwrap() error { return e.Err }

package bmc

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Setup is a Client whose BMC shows and changes the settings of the system's
// firmware (its BIOS). Every Client of a Pool is one; where the BMC has no such
// thing its methods fail with an UnsupportedError.
type Setup interface {
	// BIOS reads the settings as they are, and what governs them.
	BIOS(ctx context.Context) (BIOS, error)
	// PendingBIOS reads the settings that wait for a reset, where they differ
	// from how they are.
	PendingBIOS(ctx context.Context) (Settings, error)
	// SetBIOS asks for settings from the next reset on, beside those that wait
	// already. It returns when the BMC has taken them; those that it refuses
	// are a *SettingsError, and then it may have taken none. ErrPending is that a
	// reset has to apply others first.
	SetBIOS(ctx context.Context, s Settings) error
}

// Settings are values of BIOS attributes by name: a string, bool, int64,
// float64, or nil where there is none to show.
type Settings map[string]any

// Setting is a value that somebody has written down, as a BMC takes it: of the
// type of its attribute or, where that does not say, of the type of the value
// that it has now. What cannot be of that type stays as it was written.
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

// BIOS is the set-up of a system's firmware.
type BIOS struct {
	Settings Settings
	// Registry governs them; nil where the BMC has none for them. It may be
	// behind: a BIOS can show settings that its registry does not know.
	Registry *AttributeRegistry
	// Failed is what the BMC tells of settings that the last reset has not
	// applied, by attribute.
	Failed map[string]string
}

// AttributeType is the type of a BIOS attribute, by DMTF's names (DSP2046,
// AttributeRegistry.AttributeType).
type AttributeType string

// The types. The registries of some BMCs leave it out.
const (
	UntypedAttribute     AttributeType = ""
	EnumerationAttribute AttributeType = "Enumeration"
	StringAttribute      AttributeType = "String"
	IntegerAttribute     AttributeType = "Integer"
	BooleanAttribute     AttributeType = "Boolean"
	PasswordAttribute    AttributeType = "Password"
)

// Attribute is what a registry says of one setting.
type Attribute struct {
	Name          string
	Type          AttributeType
	Values        []string // of an Enumeration
	Lower, Upper  *int64   // of an Integer
	MinLength     *int64   // of a String, in characters
	MaxLength     *int64
	ReadOnly      bool
	Unique        bool // of one system: a serial number
	ResetRequired bool // it takes effect at a reset
}

// AttributeRegistry is what governs the settings of a BIOS. It is never
// changed, and BMCs that send the same registry share one: see Registries.
type AttributeRegistry struct {
	ID         string
	Attributes []Attribute // by name, each once

	index map[string]int
}

// NewAttributeRegistry makes a registry. Of attributes with the same name the
// first counts.
func NewAttributeRegistry(id string, attributes []Attribute) *AttributeRegistry {
	all := slices.Clone(attributes)
	slices.SortStableFunc(all, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	all = slices.CompactFunc(all, func(a, b Attribute) bool { return a.Name == b.Name })
	r := &AttributeRegistry{ID: id, Attributes: all, index: make(map[string]int, len(all))}
	for i := range all {
		r.index[all[i].Name] = i
	}
	return r
}

// Attribute is the attribute with a name; nil when the registry does not know
// it. A nil registry knows none.
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

// SettingsError tells which settings a BMC refuses, and why.
type SettingsError struct {
	Refused map[string]string // what the BMC says, by attribute
	Err     error             // all that it says
}

// Names are those of the settings that are refused.
func (e *SettingsError) Names() []string { return slices.Sorted(maps.Keys(e.Refused)) }

func (e *SettingsError) Error() string {
	return fmt.Sprintf("the BMC refuses the BIOS settings %s: %v", strings.Join(e.Names(), ", "), e.Err)
}

func (e *SettingsError) Unwrap() error { return e.Err }

package firmware

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// schema is what governs the settings of a kind of server, as Metal3 has it. It
// is never changed.
type schema struct {
	name     string // of its object
	settings map[string]metal3.SettingSchema
}

// maxSchemas bounds how many are kept: models times versions of their BIOS.
const maxSchemas = 256

// schemas keep what was made of registries: hosts of one model share one.
type schemas struct {
	mu   sync.Mutex
	kept map[schemaKey]*schema
}

// schemaKey is what a schema is made from: a registry, and in what the settings
// that a BIOS shows differ from those that its registry knows.
type schemaKey struct {
	registry *bmc.AttributeRegistry
	differ   string
}

func newSchemas() *schemas { return &schemas{kept: map[schemaKey]*schema{}} }

// of is the schema of the settings that a BIOS shows. What the registry does
// not know, because it is behind, has a schema that says nothing.
func (s *schemas) of(b bmc.BIOS) *schema {
	key := schemaKey{b.Registry, differ(b)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.kept[key]; got != nil {
		return got
	}
	if len(s.kept) >= maxSchemas {
		clear(s.kept)
	}
	made := newSchema(b)
	s.kept[key] = made
	return made
}

// differ names the settings that either the BIOS or its registry does not have.
func differ(b bmc.BIOS) string {
	var out []string
	known := 0
	for name := range b.Settings {
		if b.Registry.Attribute(name) == nil {
			out = append(out, "+"+name)
			continue
		}
		known++
	}
	if b.Registry != nil && known < len(b.Registry.Attributes) {
		for i := range b.Registry.Attributes {
			if _, shown := b.Settings[b.Registry.Attributes[i].Name]; !shown {
				out = append(out, "-"+b.Registry.Attributes[i].Name)
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// newSchema makes the schema of all settings that a BIOS shows. Its name is
// upstream's: a digest of all keys and of what limits their values, but not of
// what is unique (B-202). Passwords count in it, and are not part of it.
func newSchema(b bmc.BIOS) *schema {
	out := &schema{settings: make(map[string]metal3.SettingSchema, len(b.Settings))}
	var words []string
	for name := range b.Settings {
		one := settingSchema(b.Registry.Attribute(name))
		words = append(words, name, one.AttributeType)
		words = append(words, one.AllowableValues...)
		for _, n := range []*int{one.LowerBound, one.UpperBound, one.MinLength, one.MaxLength} {
			if n != nil {
				words = append(words, strconv.Itoa(*n))
			}
		}
		if one.ReadOnly != nil {
			words = append(words, strconv.FormatBool(*one.ReadOnly))
		}
		if !secret(name) && one.AttributeType != string(bmc.PasswordAttribute) {
			out.settings[name] = one
		}
	}
	slices.Sort(words)
	// The list as Go prints one.
	sum := sha256.Sum256([]byte("[" + strings.Join(words, " ") + "]"))
	out.name = "schema-" + hex.EncodeToString(sum[:])[:8]
	return out
}

// secret says whether a setting is left out of all objects by its name (B-201).
func secret(name string) bool { return strings.Contains(name, "Password") }

// settingSchema is what a registry says of an attribute, of which the limits
// are those of its type.
func settingSchema(a *bmc.Attribute) metal3.SettingSchema {
	if a == nil {
		return metal3.SettingSchema{}
	}
	number := func(n *int64) *int {
		if n == nil {
			return nil
		}
		return new(int(*n))
	}
	out := metal3.SettingSchema{AttributeType: string(a.Type), ReadOnly: new(a.ReadOnly), Unique: new(a.Unique)}
	switch a.Type {
	case bmc.EnumerationAttribute:
		out.AllowableValues = a.Values
	case bmc.IntegerAttribute:
		out.LowerBound, out.UpperBound = number(a.Lower), number(a.Upper)
	case bmc.StringAttribute:
		out.MinLength, out.MaxLength = number(a.MinLength), number(a.MaxLength)
	}
	return out
}

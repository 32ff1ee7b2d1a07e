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

// schema describes the settings of a server model, as Metal3's FirmwareSchema. It
// is immutable.
type schema struct {
	name     string // name of the FirmwareSchema
	settings map[string]metal3.SettingSchema
}

// maxSchemas bounds the number of cached schemas: models times BIOS versions.
const maxSchemas = 256

// schemas caches the schemas made of registries: hosts of one model share one.
type schemas struct {
	mu      sync.Mutex
	entries map[schemaKey]*schema
}

// schemaKey identifies the input of a schema: a registry, how the settings of the BIOS
// differ from those of the registry, and what their values lock, unlock and bound.
type schemaKey struct {
	registry *bmc.AttributeRegistry
	differ   string
	rules    string
}

func newSchemas() *schemas { return &schemas{entries: map[schemaKey]*schema{}} }

// forBIOS returns the schema of a BIOS's settings. A setting that an outdated
// registry lacks has a schema without limits.
func (s *schemas) forBIOS(b bmc.BIOS) *schema {
	rules := b.Registry.Rules(b.Settings)
	key := schemaKey{b.Registry, registryDifferences(b), changedLimits(b.Registry, rules)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got := s.entries[key]; got != nil {
		return got
	}
	if len(s.entries) >= maxSchemas {
		clear(s.entries)
	}
	made := newSchema(b, rules)
	s.entries[key] = made
	return made
}

// registryDifferences lists the settings that either the BIOS or its registry
// lacks.
func registryDifferences(b bmc.BIOS) string {
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

// changedLimits describes how rules change whether settings can be set, and their bounds.
func changedLimits(r *bmc.AttributeRegistry, rules *bmc.Rules) string {
	var out []string
	for _, name := range rules.Changed() {
		a := r.Attribute(name)
		if a == nil {
			continue
		}
		if is := limits(rules.Attribute(name)); is != limits(a) {
			out = append(out, name+":"+is)
		}
	}
	return strings.Join(out, " ")
}

// limits describes what dependencies change of an attribute's schema.
func limits(a *bmc.Attribute) string {
	out := strconv.FormatBool(a.ReadOnly)
	for _, n := range []*int64{a.Lower, a.Upper, a.MinLength, a.MaxLength} {
		if out += ","; n != nil {
			out += strconv.FormatInt(*n, 10)
		}
	}
	return out
}

// newSchema makes the schema of all settings of a BIOS while its settings lock, unlock and
// bound each other: hosts whose values differ in that have different schemas. Its name is
// upstream's: a digest of all keys and of the limits of their values, without uniqueness
// (B-202); what rules have changed is added to it, since upstream's digest is that of a
// heap of words. Passwords are part of the digest, but not of the schema.
func newSchema(b bmc.BIOS, rules *bmc.Rules) *schema {
	out := &schema{settings: make(map[string]metal3.SettingSchema, len(b.Settings))}
	var words []string
	for name := range b.Settings {
		one := settingSchema(rules.Attribute(name))
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
		if !isPassword(name) && one.AttributeType != string(bmc.PasswordAttribute) {
			out.settings[name] = one
		}
	}
	if changed := changedLimits(b.Registry, rules); changed != "" {
		words = append(words, changed)
	}
	slices.Sort(words)
	// In the format of Go's fmt for a list.
	sum := sha256.Sum256([]byte("[" + strings.Join(words, " ") + "]"))
	out.name = "schema-" + hex.EncodeToString(sum[:])[:8]
	return out
}

// isPassword reports whether a setting is omitted from all objects because of its
// name (B-201).
func isPassword(name string) bool { return strings.Contains(name, "Password") }

// settingSchema converts a registry's attribute, with the limits of its type.
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

package redfish

import (
	"cmp"
	"fmt"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// registryEntries holds the properties that the driver reads of an AttributeRegistry.
type registryEntries struct {
	Attributes []struct {
		Name          string   `json:"AttributeName"`
		Type          string   `json:"Type"`
		Default       any      `json:"DefaultValue"`
		Lower         *float64 `json:"LowerBound"`
		Upper         *float64 `json:"UpperBound"`
		MinLength     *float64 `json:"MinLength"`
		MaxLength     *float64 `json:"MaxLength"`
		ReadOnly      bool     `json:"ReadOnly"`
		Immutable     bool     `json:"Immutable"`
		GrayOut       bool     `json:"GrayOut"`
		Hidden        bool     `json:"Hidden"`
		WriteOnly     bool     `json:"WriteOnly"`
		Unique        bool     `json:"IsSystemUniqueProperty"`
		ResetRequired *bool    `json:"ResetRequired"`
		Values        []struct {
			Name string `json:"ValueName"`
		} `json:"Value"`
	} `json:"Attributes"`
	Dependencies []struct {
		Type       string `json:"Type"`
		Dependency struct {
			From []struct {
				Terms     string `json:"MapTerms"`
				Attribute string `json:"MapFromAttribute"`
				Property  string `json:"MapFromProperty"`
				Condition string `json:"MapFromCondition"`
				Value     any    `json:"MapFromValue"`
			} `json:"MapFrom"`
			Attribute string `json:"MapToAttribute"`
			Property  string `json:"MapToProperty"`
			Value     any    `json:"MapToValue"`
		} `json:"Dependency"`
	} `json:"Dependencies"`
}

// parseRegistry decodes an AttributeRegistry (DSP2046).
func parseRegistry(body []byte) (*bmc.AttributeRegistry, error) {
	var doc struct {
		ID      string          `json:"Id"`
		Entries registryEntries `json:"RegistryEntries"`
	}
	if err := decode(body, &doc); err != nil {
		return nil, fmt.Errorf("redfish: attribute registry: %w", err)
	}
	integer := func(f *float64) *int64 {
		if f == nil {
			return nil
		}
		return new(int64(*f))
	}
	all := make([]bmc.Attribute, 0, len(doc.Entries.Attributes))
	for _, a := range doc.Entries.Attributes {
		if a.Name == "" {
			continue
		}
		one := bmc.Attribute{
			Name: a.Name, Type: bmc.AttributeType(a.Type), Unique: a.Unique, Default: asInteger(a.Default),
			ReadOnly: a.ReadOnly, Immutable: a.Immutable, GrayOut: a.GrayOut, Hidden: a.Hidden, WriteOnly: a.WriteOnly,
			Lower: integer(a.Lower), Upper: integer(a.Upper), MinLength: integer(a.MinLength), MaxLength: integer(a.MaxLength),
			ResetRequired: a.ResetRequired == nil || *a.ResetRequired, // default true (DSP2046)
		}
		for _, v := range a.Values {
			one.Values = append(one.Values, v.Name)
		}
		all = append(all, one)
	}
	return bmc.NewAttributeRegistry(doc.ID, all, doc.Entries.dependencies()...), nil
}

// dependencies returns the rows of the type Map, the only one that DSP2046 has.
func (e *registryEntries) dependencies() []bmc.Dependency {
	var all []bmc.Dependency
	for _, row := range e.Dependencies {
		d := row.Dependency
		if cmp.Or(row.Type, "Map") != "Map" || d.Attribute == "" || d.Property == "" {
			continue
		}
		one := bmc.Dependency{Attribute: d.Attribute, Property: bmc.Property(d.Property), Value: asInteger(d.Value)}
		for _, f := range d.From {
			one.If = append(one.If, bmc.Condition{
				Or: f.Terms == "OR", Attribute: f.Attribute, Property: bmc.Property(f.Property),
				Is: bmc.Relation(f.Condition), Value: asInteger(f.Value),
			})
		}
		all = append(all, one)
	}
	return all
}

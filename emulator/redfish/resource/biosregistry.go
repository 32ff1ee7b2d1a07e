package resource

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// attributeRegistry returns the registry of the BIOS attributes (DSP2046,
// AttributeRegistry). It is a document, not a resource: it has no @odata.id.
func attributeRegistry(v View) Object {
	r := v.registry()
	entries := Object{"Attributes": Map(r.Attributes, attribute), "Menus": Map(r.Menus, menu)}
	if len(r.Dependencies) > 0 {
		entries["Dependencies"] = Map(r.Dependencies, dependency)
	}
	return Object{
		"@odata.type": OdataType("AttributeRegistry.v1_4_0"), "Id": r.ID, "Name": r.Name, "Language": r.Language,
		"OwningEntity": r.Owner, "RegistryVersion": r.Version, "RegistryEntries": entries,
		"SupportedSystems": []Object{{
			"ProductName": v.Machine.Profile.Model, "FirmwareVersion": v.Machine.Profile.BIOS.Version,
			"SystemId": strings.ReplaceAll(v.Machine.Profile.SKU, "-", ""), // letters and digits only
		}},
	}
}

func attribute(a firmware.Attribute) Object {
	o := Object{
		"AttributeName": a.Name, "Type": string(a.Type), "DisplayName": a.Display, "DisplayOrder": a.Order,
		"DefaultValue": a.Default.Any(), "CurrentValue": nil,
		"ReadOnly": a.ReadOnly, "Immutable": a.Immutable, "Hidden": a.Hidden, "GrayOut": a.GrayOut,
		"WriteOnly": a.Type == firmware.PasswordType, "ResetRequired": a.ResetRequired, "IsSystemUniqueProperty": a.Unique,
	}
	for name, s := range map[string]string{"HelpText": a.Help, "WarningText": a.Warning, "MenuPath": a.Menu, "ValueExpression": a.Pattern} {
		if s != "" {
			o[name] = s
		}
	}
	for name, n := range map[string]*int64{"LowerBound": a.Lower, "UpperBound": a.Upper, "MinLength": a.MinLength, "MaxLength": a.MaxLength} {
		if n != nil {
			o[name] = *n
		}
	}
	if a.Type == firmware.IntegerType {
		o["ScalarIncrement"] = a.Step
	}
	if len(a.Values) > 0 {
		o["Value"] = Map(a.Values, func(c firmware.Choice) Object {
			return Object{"ValueName": c.Name, "ValueDisplayName": c.Display}
		})
	}
	return o
}

func menu(m firmware.Menu) Object {
	return Object{
		"MenuName": m.Name, "MenuPath": m.Path, "DisplayName": m.Display, "DisplayOrder": m.Order,
		"ReadOnly": false, "GrayOut": false, "Hidden": false,
	}
}

func dependency(d firmware.Dependency) Object {
	return Object{
		"DependencyFor": d.For, "Type": "Map",
		"Dependency": Object{
			"MapFrom": Map(d.If, func(c firmware.Condition) Object {
				o := Object{
					"MapFromAttribute": c.Attribute, "MapFromProperty": string(c.Property),
					"MapFromCondition": string(c.Is), "MapFromValue": c.Value.Any(),
				}
				if c.Term != "" {
					o["MapTerms"] = string(c.Term)
				}
				return o
			}),
			"MapToAttribute": d.Set.Attribute, "MapToProperty": string(d.Set.Property), "MapToValue": d.Set.Value.Any(),
		},
	}
}

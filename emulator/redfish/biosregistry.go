package redfish

import (
	"strings"

	"github.com/metalab-dev/metalab/emulator/machine/firmware"
)

// attributeRegistry is the registry of the BIOS attributes (DSP2046,
// AttributeRegistry). It is a document, not a resource: it has no @odata.id.
func attributeRegistry(v view) object {
	r := v.registry()
	entries := object{"Attributes": list(r.Attributes, attribute), "Menus": list(r.Menus, menu)}
	if len(r.Dependencies) > 0 {
		entries["Dependencies"] = list(r.Dependencies, dependency)
	}
	return object{
		"@odata.type": odataType("AttributeRegistry.v1_4_0"), "Id": r.ID, "Name": r.Name, "Language": r.Language,
		"OwningEntity": r.Owner, "RegistryVersion": r.Version, "RegistryEntries": entries,
		"SupportedSystems": []object{{
			"ProductName": v.m.Profile.Model, "FirmwareVersion": v.m.Profile.BIOS.Version,
			"SystemId": strings.ReplaceAll(v.m.Profile.SKU, "-", ""), // letters and digits only
		}},
	}
}

func attribute(a firmware.Attribute) object {
	o := object{
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
		o["Value"] = list(a.Values, func(c firmware.Choice) object {
			return object{"ValueName": c.Name, "ValueDisplayName": c.Display}
		})
	}
	return o
}

func menu(m firmware.Menu) object {
	return object{
		"MenuName": m.Name, "MenuPath": m.Path, "DisplayName": m.Display, "DisplayOrder": m.Order,
		"ReadOnly": false, "GrayOut": false, "Hidden": false,
	}
}

func dependency(d firmware.Dependency) object {
	return object{
		"DependencyFor": d.For, "Type": "Map",
		"Dependency": object{
			"MapFrom": list(d.If, func(c firmware.Condition) object {
				o := object{
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

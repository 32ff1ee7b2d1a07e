package redfish_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// Settings are pending when they differ by value, whatever a BMC shows as values.
func TestPendingSettingsDifferByValue(t *testing.T) {
	const bios = systemPath + "/Bios"
	s := newServer(t)
	s.system["Bios"] = linkTo(bios)
	odd := map[string]any{"x": []any{1}}
	s.route("GET "+bios, s.show(func() map[string]any {
		return map[string]any{"@Redfish.Settings": map[string]any{"SettingsObject": linkTo(bios + "/Settings")}, "Attributes": map[string]any{
			"Cores": 4, "Threads": "8", "List": []any{1, 2}, "Odd": odd, "Quiet": true,
		}}
	}))
	s.route("GET "+bios+"/Settings", s.show(func() map[string]any {
		return map[string]any{"Attributes": map[string]any{"Cores": 4.0, "Threads": 8, "List": []any{1, 3}, "Odd": odd, "Quiet": "false"}}
	}))
	got, err := s.open().(bmc.Setup).PendingBIOS(t.Context())
	want := bmc.Settings{"List": []any{1.0, 3.0}, "Quiet": "false"}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("PendingBIOS() error = %v (-want +got):\n%s", err, d)
	}
}

// The driver reads the rows of the type Map with their conditions, and drops the others.
func TestDependenciesAreRead(t *testing.T) {
	const bios, file = systemPath + "/Bios", "/redfish/v1/Registries/Bios"
	s := newServer(t)
	s.system["Bios"] = linkTo(bios)
	s.route("GET "+bios, s.show(func() map[string]any {
		return map[string]any{"AttributeRegistry": "Bios.v1_0_0", "Attributes": map[string]any{"A": "x"}}
	}))
	s.route("GET /redfish/v1/Registries", s.show(func() map[string]any { return map[string]any{"Members": []any{linkTo(file)}} }))
	s.route("GET "+file, s.show(func() map[string]any {
		return map[string]any{"Registry": "Bios.v1_0_0", "Location": []any{map[string]any{"Language": "en", "Uri": file + "/doc"}}}
	}))
	row := func(to any, from ...any) map[string]any {
		return map[string]any{"Type": "Map", "DependencyFor": "A", "Dependency": map[string]any{
			"MapFrom": from, "MapToAttribute": "B", "MapToProperty": "ReadOnly", "MapToValue": to,
		}}
	}
	s.route("GET "+file+"/doc", s.show(func() map[string]any {
		return map[string]any{"Id": "Bios.v1_0_0", "RegistryEntries": map[string]any{
			"Attributes": []any{map[string]any{"AttributeName": "A", "Type": "Enumeration"}, map[string]any{"AttributeName": "B", "Type": "Integer", "DefaultValue": 3, "Immutable": true}},
			"Dependencies": []any{
				row(true, map[string]any{"MapFromAttribute": "A", "MapFromProperty": "CurrentValue", "MapFromCondition": "EQU", "MapFromValue": "x"},
					map[string]any{"MapTerms": "OR", "MapFromAttribute": "B", "MapFromCondition": "GTR", "MapFromValue": 5}),
				map[string]any{"Type": "Script", "Dependency": row(true)["Dependency"]},
				map[string]any{"Type": "Map", "Dependency": "nonsense"},
				7,
			},
		}}
	}))
	b, err := s.open().(bmc.Setup).BIOS(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []bmc.Dependency{{Attribute: "B", Property: bmc.ReadOnly, Value: true, If: []bmc.Condition{
		{Attribute: "A", Property: bmc.CurrentValue, Is: bmc.Equal, Value: "x"}, {Or: true, Attribute: "B", Is: bmc.Greater, Value: int64(5)},
	}}}
	if d := cmp.Diff(want, b.Registry.Dependencies); d != "" {
		t.Errorf("dependencies (-want +got):\n%s", d)
	}
	if a := b.Registry.Attribute("B"); a.Default != int64(3) || !a.Immutable {
		t.Errorf("B = %+v, want its default and that it is immutable", a)
	}
}

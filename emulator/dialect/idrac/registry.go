package idrac

import (
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// registry is the name of the registry of the attributes, and registryFile that of its
// version.
const (
	registry     = "ManagerAttributeRegistry"
	registryFile = registry + ".v1_0_0"
)

// attributeRegistry returns the registry that describes the attributes of the groups, and
// its file [V: ansible, dellemc.openmanage 6.3.0, idrac_attributes, which reads
// AttributeName, Readonly, Type, Value, LowerBound and UpperBound, and refuses what the
// registry does not have]. The properties are Dell's, not those of the standard's
// AttributeRegistry.
func attributeRegistry() []dialect.Resource {
	const at = "/redfish/v1/Registries/" + registry
	var all []any
	for _, group := range groupNames {
		of := groups[group]
		if group == groupNames[0] {
			of = slices.Concat(of, shownAttributes())
		}
		for _, a := range of {
			all = append(all, a.describe(group))
		}
	}
	return []dialect.Resource{
		{URI: at, Type: "MessageRegistryFile.v1_1_3.MessageRegistryFile", Name: "Manager Attribute Registry File", Set: []dialect.PropertyRule{
			{Path: "Id", Value: registry}, {Path: "Registry", Value: registryFile}, {Path: "Languages", Value: []any{"En"}},
			{Path: "Location", Value: []any{map[string]any{"Language": "En", "Uri": at + "/" + registryFile + ".json"}}},
		}},
		{URI: at + "/" + registryFile + ".json", Type: registryFile + "." + registry, Name: "Manager Attribute Registry", Set: []dialect.PropertyRule{
			{Path: "Id", Value: registryFile}, {Path: "Language", Value: "en"}, {Path: "OwningEntity", Value: "Dell"}, {Path: "RegistryVersion", Value: "1.0.0"},
			{Path: "RegistryEntries/Attributes", Value: all},
		}},
	}
}

// shownAttributes returns the attributes of the BMC that show other parts of the model.
func shownAttributes() []attribute {
	var devices []string
	for _, d := range bootDevices {
		devices = append(devices, d.name)
	}
	all := []attribute{
		{name: "Info.1.Version", value: "", fixed: true}, {name: "Info.1.Type", value: "", fixed: true},
		{name: "Info.1.ServerGen", value: "", fixed: true}, {name: "Info.1.HWModel", value: "", fixed: true},
		{name: "NIC.1.MACAddress", value: "", fixed: true},
		{name: bootDevice, value: "Normal", takes: devices}, {name: bootOnce, value: "Disabled", takes: onOff},
		{name: lanEnable, value: "Disabled", takes: onOff}, {name: ntpEnable, value: "Disabled", takes: onOff},
	}
	for _, name := range ntpServers {
		all = append(all, attribute{name: name, value: ""})
	}
	return all
}

// describe returns the registry's entry of an attribute.
func (a attribute) describe(group string) map[string]any {
	entry := map[string]any{
		"AttributeName": a.name, "DisplayName": a.name, "GroupName": group, "Id": group + "#" + a.name, "Readonly": a.fixed, "Hidden": false, "Type": "String",
	}
	if n, ok := a.value.(int); ok {
		entry["Type"], entry["LowerBound"], entry["UpperBound"], entry["DefaultValue"] = "Integer", 0, max(65535, n), n
		return entry
	}
	entry["DefaultValue"] = a.value
	if len(a.takes) == 0 {
		return entry
	}
	var values []any
	for _, v := range a.takes {
		values = append(values, map[string]any{"ValueName": v, "ValueDisplayName": v})
	}
	entry["Type"], entry["Value"] = "Enumeration", values
	return entry
}

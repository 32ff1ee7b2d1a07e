package redfish

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
)

// nothing is the value of a property that is to be removed.
type nothing struct{}

// TestTypeCheckFindsFaults changes one place of a valid body at a time.
func TestTypeCheckFindsFaults(t *testing.T) {
	lamp := dialect.OEMType{Namespace: "AcmeSystem", Version: "v1_0_0", Name: "System", Properties: []dialect.OEMProperty{
		{Name: "Lamp", Type: dialect.EdmObject, Properties: []dialect.OEMProperty{{Name: "On", Type: dialect.EdmBoolean}}},
		{Name: "Twin", Type: dialect.EdmLink},
	}}
	acme := func(name string, value any) map[string]any {
		return map[string]any{"@odata.type": "#AcmeSystem.v1_0_0.System", name: value}
	}
	link := func(to string) map[string]any { return map[string]any{"@odata.id": to} }
	const account, thermal, settings = "/redfish/v1/AccountService/Accounts/1", "/redfish/v1/Chassis/1/Thermal", sys + "/Bios/Settings"
	for _, x := range []struct {
		uri, path string
		value     any
		want      string // path of the expected fault; "": none
	}{
		{sys, "Bogus", 1, "Bogus"}, {sys, "powerState", "On", "powerState"}, {sys, "Name", nothing{}, "Name"}, {sys, "Name", nil, "Name"},
		{sys, "@odata.type", "#ComputerSystem.v1_99_0.ComputerSystem", "@odata.type"}, {sys, "Links/Chassis", link("/redfish/v1/Chassis/1"), "Links/Chassis"},
		{sys, "PowerState", []any{"On"}, "PowerState"}, {sys, "PowerState", "Maybe", "PowerState"}, {sys, "PowerState", 1, "PowerState"},
		{sys, "UUID", "x", "UUID"}, {sys, "Bios", link("/redfish/v1/Managers/1"), "Bios"}, {sys, "Bios", link(sys + "/Nowhere"), "Bios"},
		{sys, "Bios", map[string]any{"@odata.id": sys + "/Bios", "Name": "x"}, "Bios"}, {sys, "Bios", sys + "/Bios", "Bios"},
		{sys, "Boot/BootOptions", link(sys + "/Memory"), "Boot/BootOptions"}, {sys, "Status/Health", "Well", "Status/Health"},
		{sys, "Actions/#ComputerSystem.Reset/target", sys + "/Reset", "Actions/#ComputerSystem.Reset/target"},
		{sys, "Actions/#ComputerSystem.Reset/More", "x", "Actions/#ComputerSystem.Reset/More"},
		{sys, "Actions/#Manager.Reset", map[string]any{"target": sys + "/Actions/Manager.Reset"}, "Actions/#Manager.Reset"},
		{sys, "@odata.id", "/redfish/v1/Machines/1", "@odata.id"}, {sys, "Id", "2", "Id"}, {sys, "ProcessorSummary/Count", 2.5, "ProcessorSummary/Count"},
		{sys, "LastResetTime", "2026-03-01T12:00:00", "LastResetTime"}, {sys, "Oem", map[string]any{"Acme": 1}, "Oem/Acme"},
		{sys, "Oem", map[string]any{"Acme": acme("More", 1)}, "Oem/Acme/More"}, {sys, "Oem", map[string]any{"Acme": acme("Lamp", true)}, "Oem/Acme/Lamp"},
		{sys, "Oem", map[string]any{"Acme": acme("Lamp", map[string]any{"On": "x"})}, "Oem/Acme/Lamp/On"},
		{sys, "Oem", map[string]any{"Acme": acme("Lamp", map[string]any{"On": true})}, ""}, {sys, "Oem", map[string]any{"Acme": acme("Twin", link("/redfish/v1/Systems"))}, "Oem/Acme/Twin"},
		{sys, "Oem", map[string]any{"Acme": acme("Twin", link(sys))}, ""}, {sys, "Oem", map[string]any{"Other": map[string]any{"@odata.type": "#Other.v1_0_0.Other", "A": 1}}, ""},
		{account, "Password", "x", "Password"}, {account, "@odata.type", "#ManagerAccount.v1_3_0.ManagerAccount", "AccountTypes"},
		{account, "@odata.type", "#ManagerAccount.v1_10_0.ManagerAccount", "Actions/#ManagerAccount.ChangePassword"},
		{thermal, "Temperatures/0/MemberId", "7", "Temperatures/0/MemberId"}, {thermal, "Temperatures/0/@odata.id", thermal + "#Temperatures/0", "Temperatures/0/@odata.id"},
		{"/redfish/v1/SessionService", "SessionTimeout", 29, "SessionTimeout"}, {"/redfish/v1/Systems", "Members@odata.count", nothing{}, "Members@odata.count"},
		{sys + "/Storage/1/Drives/Disk.0", "Identifiers/0/DurableName", "39-f4-2c-00-00-00-00-00", "Identifiers/0/DurableName"},
		{sys + "/Storage/1/Drives/Disk.0", "Identifiers/0/DurableNameFormat", "EUI", "Identifiers/0/DurableName"},
		{"/redfish/v1/Chassis/1/EnvironmentMetrics", "PowerWatts/Name", "x", "PowerWatts/Name"},
		{sys + "/Bios", "Attributes/A#B", "x", "Attributes/A#B"}, {settings, "@odata.id", sys + "/Elsewhere", "@odata.id"},
		{sys + "/Bios", "allow", "GET, DELETE", "Allow"}, {sys, "allow", "GET, PATCH", ""}, {sys, "Bios", link(sys + "/Bios"), ""},
	} {
		c := newTypeCheck(t, newService(t, newHost(t)), &dialect.Record{Protocol: dialect.Protocol{OEMTypes: []dialect.OEMType{lamp}}})
		r, ok := c.get(x.uri)
		if !ok {
			t.Fatalf("nothing is at %s", x.uri)
		}
		if bad := c.faults(r); x.uri != settings && len(bad) > 0 {
			t.Fatalf("%s is not right as it is: %v", x.uri, bad)
		}
		if x.path == "allow" {
			r.allow = x.value.(string)
		} else {
			spoil(t, r.body, x.path, x.value)
		}
		bad := c.faults(r)
		if found := slices.ContainsFunc(bad, func(f fault) bool { return f.path == x.want }); found != (x.want != "") || x.want == "" && len(bad) > 0 {
			t.Errorf("%s with %s = %v: faults %v, want %q", x.uri, x.path, x.value, bad, x.want)
		}
	}
}

// spoil sets a value at a path of a body.
func spoil(t *testing.T, body map[string]any, path string, value any) {
	t.Helper()
	raw, err := json.Marshal(value)
	must(t, err)
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var plain any
	must(t, d.Decode(&plain))
	var at any = body
	segments := strings.Split(path, "/")
	for _, s := range segments[:len(segments)-1] {
		switch x := at.(type) {
		case []any:
			i, err := strconv.Atoi(s)
			must(t, err)
			at = x[i]
		case map[string]any:
			at = x[s]
		}
	}
	in, ok := at.(map[string]any)
	if !ok {
		t.Fatalf("there is no %s", path)
	}
	if _, gone := value.(nothing); gone {
		delete(in, segments[len(segments)-1])
		return
	}
	in[segments[len(segments)-1]] = plain
}

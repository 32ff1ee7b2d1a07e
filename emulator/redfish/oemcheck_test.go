package redfish

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
)

func TestInvalidOEMRecordsAreRejected(t *testing.T) {
	of := func(change func(o *dialect.OEM)) *dialect.Record {
		d := generic.Record
		if change != nil {
			change(&d.OEM)
		}
		return &d
	}
	for _, good := range []dialect.OEM{{}, acme, settings, timed} {
		if err := vendor.Check(of(func(o *dialect.OEM) { *o = good })); err != nil {
			t.Error(err)
		}
	}
	step := func(method, at string) func(o *dialect.OEM) {
		return func(o *dialect.OEM) {
			o.Actions = []dialect.Action{{ResourceURI: "/redfish/v1/Systems/{system}", Name: "A.B", Effects: []dialect.Effect{{Requests: []dialect.StandardRequest{{Method: method, URI: at}}}}}}
		}
	}
	like := func(r dialect.Resource) func(o *dialect.OEM) {
		return func(o *dialect.OEM) { r.Type = "A.v1_0_0.A"; o.Resources = []dialect.Resource{r} }
	}
	for want, bad := range map[string]func(o *dialect.OEM){
		"accepts no PATCH of /redfish/v1/Systems/{system}/Nothing":                                                      step("PATCH", "/redfish/v1/Systems/{system}/Nothing"),
		"oem.actions[0].effects[0].requests[0]: the standard service accepts no DELETE of /redfish/v1/Systems/{system}": step("DELETE", "/redfish/v1/Systems/{system}"),
		"accepts no PATCH of /redfish/v1/Systems/{system}/Storage/{bay}":                                                step("PATCH", "/redfish/v1/Systems/{system}/Storage/{bay}"),
		`oem.resources[0].uri: "/redfish/v1/{bay}": {bay} is no variable of standard URIs`:                              like(dialect.Resource{URI: "/redfish/v1/{bay}"}),
		`oem.resources[0].basedOn: "/redfish/v1/Nothing": must be the standard URI of a resource`:                       like(dialect.Resource{URI: "/redfish/v1/A", BasedOn: "/redfish/v1/Nothing"}),
		"with no variables but those of uri":                                                                            like(dialect.Resource{URI: "/redfish/v1/A", BasedOn: "/redfish/v1/TaskService/Tasks/{task}"}),
		"TaskService must accept it":                                                                                    like(dialect.Resource{URI: "/redfish/v1/A", BasedOn: "/redfish/v1/TaskService", PassedMethods: []string{"DELETE"}}),
		`oem.actions[0].resourceURI: "/redfish/v1/Nothing", of A.B: there is no such resource`: func(o *dialect.OEM) {
			step("PATCH", "/redfish/v1/Systems/{system}")(o)
			o.Actions[0].ResourceURI = "/redfish/v1/Nothing"
		},
		`oem.writableProperties[0].resourceType: "Lamp", of Oem/A: must be the type of a resource that accepts PATCH`: func(o *dialect.OEM) {
			o.WritableProperties = []dialect.WritableProperty{{ResourceType: "Lamp", Path: "Oem/A", Effects: []dialect.Effect{{}}}}
		},
		`oem.uriAliases[0].to: "/redfish/v1/B": must be the standard URI of a resource, or that of an OEM resource`: func(o *dialect.OEM) {
			o.URIAliases = []dialect.URIMapping{{From: "/redfish/v1/A", To: "/redfish/v1/B"}}
		},
	} {
		d := of(bad)
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if err := vendor.Check(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check() = %v, want %s", err, want)
		}
	}
}

package redfish

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
)

func TestWhatAVendorHasGoesWithTheTree(t *testing.T) {
	of := func(change func(o *dialect.Own)) *dialect.Record {
		d := generic.Record
		if change != nil {
			change(&d.Own)
		}
		return &d
	}
	for _, good := range []dialect.Own{{}, acme, settings, timed} {
		if err := Check(of(func(o *dialect.Own) { *o = good })); err != nil {
			t.Error(err)
		}
	}
	step := func(method, at string) func(o *dialect.Own) {
		return func(o *dialect.Own) {
			o.Actions = []dialect.Action{{On: "/redfish/v1/Systems/{system}", Name: "A.B", Does: []dialect.Effect{{Steps: []dialect.Step{{Method: method, At: at}}}}}}
		}
	}
	like := func(r dialect.Resource) func(o *dialect.Own) {
		return func(o *dialect.Own) { r.Type = "A.v1_0_0.A"; o.Resources = []dialect.Resource{r} }
	}
	for want, bad := range map[string]func(o *dialect.Own){
		"takes no PATCH of /redfish/v1/Systems/{system}/Nothing":       step("PATCH", "/redfish/v1/Systems/{system}/Nothing"),
		"takes no DELETE of /redfish/v1/Systems/{system}":              step("DELETE", "/redfish/v1/Systems/{system}"),
		"takes no PATCH of /redfish/v1/Systems/{system}/Storage/{bay}": step("PATCH", "/redfish/v1/Systems/{system}/Storage/{bay}"),
		"{bay} stands for nothing":                                     like(dialect.Resource{At: "/redfish/v1/{bay}"}),
		"the tree has no /redfish/v1/Nothing":                          like(dialect.Resource{At: "/redfish/v1/A", Like: "/redfish/v1/Nothing"}),
		"or At not its variables":                                      like(dialect.Resource{At: "/redfish/v1/A", Like: "/redfish/v1/TaskService/Tasks/{task}"}),
		"does not take DELETE":                                         like(dialect.Resource{At: "/redfish/v1/A", Like: "/redfish/v1/TaskService", Takes: []string{"DELETE"}}),
		"there is no /redfish/v1/Nothing": func(o *dialect.Own) {
			step("PATCH", "/redfish/v1/Systems/{system}")(o)
			o.Actions[0].On = "/redfish/v1/Nothing"
		},
		"Writes: Lamp Oem/A": func(o *dialect.Own) {
			o.Writes = []dialect.Write{{Of: "Lamp", Path: "Oem/A", Does: []dialect.Effect{{}}}}
		},
		"Also: /redfish/v1/A": func(o *dialect.Own) { o.Also = []dialect.Move{{From: "/redfish/v1/A", To: "/redfish/v1/B"}} },
	} {
		d := of(bad)
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", want, err)
		}
		if err := Check(d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check() = %v, want %s", err, want)
		}
	}
}

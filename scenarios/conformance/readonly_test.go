package conformance_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/scenarios/conformance"
)

// parts returns the fields of a view that are pointers, with those of embedded structs. Two
// views share a part exactly when it did not change between them.
func parts(view any) map[string]any {
	all := map[string]any{}
	v := reflect.ValueOf(view).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && v.Type().Field(i).IsExported() {
			all[v.Type().Field(i).Name] = f.Interface()
		}
	}
	return all
}

// A read-only run with IPMI leaves the state of the BMC and of the machine as it was, but for
// the entries of its own logins in the logs. Counters of failed logins are as before.
func TestReadOnlyRunLeavesTheStateAlone(t *testing.T) {
	for _, model := range []string{"generic", "dell-r640", "hpe-dl360-gen10"} {
		t.Run(model, func(t *testing.T) {
			b := newBench(t, model, conformance.ReadOnly)
			h := b.lab.First()
			bmcBefore, machineBefore := h.BMC(), h.Machine()
			if len(parts(bmcBefore)) < 15 {
				t.Fatalf("the BMC has the parts %v", parts(bmcBefore))
			}
			all := b.run()
			if r := all["IPMI-004"]; r.Verdict != conformance.Pass {
				t.Fatalf("IPMI-004: %s %q, want pass: nothing was tried", r.Verdict, r.Reason)
			}
			b.lab.Settle()
			bmcAfter, machineAfter := h.BMC(), h.Machine()
			for name, before := range parts(bmcBefore) {
				after := parts(bmcAfter)[name]
				if after == before || slices.Contains([]string{"Log", "Audit", "Logins", "Life"}, name) {
					continue // Life has the sources of session and entry numbers
				}
				if d := cmp.Diff(before, after); d != "" {
					t.Errorf("%s of the BMC (-before +after):\n%s", name, d)
				}
			}
			if n := len(bmcAfter.Sessions); n != len(bmcBefore.Sessions) {
				t.Errorf("%d sessions are open, want %d", n, len(bmcBefore.Sessions))
			}
			if machineAfter.Power != machineBefore.Power || machineAfter.Override != machineBefore.Override {
				t.Errorf("the machine has %v and %+v, want %v and %+v", machineAfter.Power, machineAfter.Override, machineBefore.Power, machineBefore.Override)
			}
		})
	}
}

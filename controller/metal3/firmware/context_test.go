package firmware

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// dependent is registry with settings that lock and force each other: virtualization
// unlocks the banner, and the quiet setting forces it with the cores.
func dependent() *bmc.AttributeRegistry {
	all := append([]bmc.Attribute{}, registry.Attributes...)
	for i := range all {
		if all[i].Name == "Banner" {
			all[i].ReadOnly = true
		}
	}
	is := func(name string, value any) []bmc.Condition {
		return []bmc.Condition{{Attribute: name, Is: bmc.Equal, Value: value}}
	}
	return bmc.NewAttributeRegistry(registry.ID, all,
		bmc.Dependency{If: is("Virtual", "Disabled"), Attribute: "Banner", Property: bmc.ReadOnly, Value: false},
		bmc.Dependency{If: is("Quiet", false), Attribute: "Cores", Property: bmc.CurrentValue, Value: int64(2)},
		bmc.Dependency{If: is("Quiet", false), Attribute: "Cores", Property: bmc.ReadOnly, Value: true},
		bmc.Dependency{If: is("Virtual", "Disabled"), Attribute: "Plain", Property: bmc.CurrentValue, Value: int64(3)},
		bmc.Dependency{If: is("Virtual", "Disabled"), Attribute: "Cores", Property: bmc.UpperBound, Value: int64(8)})
}

func newDependentBench(t *testing.T) *bench {
	t.Helper()
	b := newBench(t, nil)
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Registry = dependent() })
	b.until("available", b.settled)
	return b
}

// sets counts the requests that change settings.
func (b *bench) sets() (n int) {
	for _, c := range b.bmc.Calls() {
		if c.Verb == bmctest.SetBIOS {
			n++
		}
	}
	return n
}

// An Integer is an Integer, however it is written: it settles, and is not written again
// and again (B-205).
func TestIntegersAreComparedByType(t *testing.T) {
	for spelling, want := range map[string]int64{"0123": 123, "+5": 5, "-0": 0, "007": 7, "8": 8} {
		t.Run(spelling, func(t *testing.T) {
			b := newBench(t, nil)
			wide := append([]bmc.Attribute{}, registry.Attributes...)
			for i := range wide {
				if wide[i].Name == "Cores" {
					wide[i].Lower, wide[i].Upper = new(int64(-200)), new(int64(200))
				}
			}
			b.bmc.Firmware(func(w *bmctest.Firmware) { w.Registry = bmc.NewAttributeRegistry("Wide", wide) })
			b.until("available", b.settled)
			b.bmc.Forget()
			b.want(metal3.DesiredSettingsMap{"Cores": str(spelling), "Plain": str("003")})
			b.look()
			if want != 8 {
				b.until("preparing", b.in(metal3.StatePreparing))
			}
			b.until("applied", b.settled)
			n := b.sets()
			for range 50 {
				b.pass()
			}
			hfs := b.settings()
			if b.now("Cores") != want || b.now("Plain") != int64(3) || n > 1 || b.sets() != n || len(b.errs) > 0 ||
				b.condition(changeDetected, hfs.Status.Conditions) || !b.condition(valid, hfs.Status.Conditions) {
				t.Errorf("Cores = %#v, Plain = %#v after %d and %d requests, conditions %+v, errors %v", b.now("Cores"), b.now("Plain"), n, b.sets(), hfs.Status.Conditions, b.errs)
			}
		})
	}
}

// B-204: numbers that are no Integer are refused with the reason.
func TestFractionsAreRefused(t *testing.T) {
	for _, spelling := range []string{"5.0", "1e1", "0x10", " 5", "5 ", "", "1_0", "99999999999999999999", "٣"} {
		b := newBench(t, nil)
		b.until("available", b.settled)
		b.want(metal3.DesiredSettingsMap{"Cores": str(spelling)})
		b.look()
		want := fmt.Sprintf("Setting Cores is invalid, String %s entered while integer expected", spelling)
		if hfs := b.settings(); b.condition(valid, hfs.Status.Conditions) || !strings.Contains(strings.Join(b.messages(), "\n"), want) {
			t.Errorf("%q: conditions %+v, events %q; want %q", spelling, hfs.Status.Conditions, b.messages(), want)
		}
	}
}

// Wanted settings are judged together, and a refusal names what must change first.
func TestSettingsAreJudgedTogether(t *testing.T) {
	for _, tt := range []struct {
		want metal3.DesiredSettingsMap
		err  string // "" means valid
	}{
		{metal3.DesiredSettingsMap{"Banner": str("open")}, "Setting Banner is invalid, it is ReadOnly while Virtual is Enabled: set Virtual to Disabled first"},
		{metal3.DesiredSettingsMap{"Banner": str("open"), "Virtual": str("Disabled")}, ""},
		{metal3.DesiredSettingsMap{"Banner": str("x"), "Virtual": str("Disabled")}, "Setting Banner is invalid, string x length is below minimum length 2"},
		{metal3.DesiredSettingsMap{"Banner": str("hello"), "Cores": num(4)}, ""}, // it has that value
		{metal3.DesiredSettingsMap{"Cores": num(4), "Quiet": str("false")}, "Setting Cores is invalid, it is 2 while Quiet is false: set Quiet to true first"},
		{metal3.DesiredSettingsMap{"Cores": str("02"), "Quiet": str("false")}, ""},
		{metal3.DesiredSettingsMap{"Cores": num(9), "Virtual": str("Disabled")}, "Setting Cores is invalid, integer 9 is above maximum value 8"},
		{metal3.DesiredSettingsMap{"Plain": num(4), "Virtual": str("Disabled")}, "Setting Plain is invalid, it is 3 while Virtual is Disabled: set Virtual to Enabled first"},
		{metal3.DesiredSettingsMap{"Model": str("4000"), "Virtual": str("Disabled")}, "Setting Model is invalid, it is ReadOnly"},
	} {
		t.Run(fmt.Sprint(tt.want), func(t *testing.T) {
			b := newDependentBench(t)
			b.want(tt.want)
			b.look()
			hfs := b.settings()
			if got := b.condition(valid, hfs.Status.Conditions); got != (tt.err == "") {
				t.Errorf("conditions %+v, want valid: %v", hfs.Status.Conditions, tt.err == "")
			}
			var events []string
			for _, m := range b.messages() {
				if why, ok := strings.CutPrefix(m, "ValidationFailed Invalid BIOS setting: "); ok {
					events = append(events, why)
				}
			}
			if got := strings.Join(events, "; "); got != tt.err {
				t.Fatalf("events %q, want %q", got, tt.err)
			}
			if tt.err != "" {
				return
			}
			b.until("preparing", b.in(metal3.StatePreparing))
			b.until("applied", b.settled)
			for name, v := range tt.want {
				a := dependent().Attribute(name)
				if !bmc.SameValue(a, b.now(name), v.String()) {
					t.Errorf("%s = %v, want %s", name, b.now(name), v.String())
				}
			}
			if n := b.sets(); n != 1 || len(b.errs) > 0 {
				t.Errorf("%d requests, errors %v; want one: what others determine is not asked for", n, b.errs)
			}
		})
	}
}

// What is unlocked is writable in the host's FirmwareSchema, and locked in that of a host
// whose settings lock it.
func TestSchemaFollowsTheSettings(t *testing.T) {
	b := newDependentBench(t)
	schemaNow := func() metal3.FirmwareSchema {
		var s metal3.FirmwareSchema
		key := b.request().NamespacedName
		key.Name = b.settings().Status.FirmwareSchema.Name
		if err := b.kube.Get(context.Background(), key, &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	locked := schemaNow()
	if s := locked.Spec.Schema["Banner"]; !*s.ReadOnly {
		t.Errorf("Banner = %+v, want it read-only", s)
	}
	b.want(metal3.DesiredSettingsMap{"Virtual": str("Disabled")})
	b.until("preparing", b.in(metal3.StatePreparing))
	b.until("applied", b.settled)
	open := schemaNow()
	if s := open.Spec.Schema["Banner"]; *s.ReadOnly || open.Name == locked.Name {
		t.Errorf("Banner = %+v in schema %s after %s, want it writable in another one", s, open.Name, locked.Name)
	}
	if s := open.Spec.Schema["Cores"]; *s.UpperBound != 8 {
		t.Errorf("Cores = %+v, want up to 8", s)
	}
	var left metal3.FirmwareSchemaList
	if err := b.kube.List(context.Background(), &left); err != nil || len(left.Items) != 1 {
		t.Errorf("%d schemas, %v: want one", len(left.Items), err)
	}
}

// Settings that unlock others by turns have different schemas, though each has as many
// that can be set.
func TestSchemasOfOtherLocksDiffer(t *testing.T) {
	is := func(value any) []bmc.Condition {
		return []bmc.Condition{{Attribute: "Mode", Is: bmc.Equal, Value: value}}
	}
	r := bmc.NewAttributeRegistry("R", []bmc.Attribute{
		{Name: "Mode", Type: bmc.EnumerationAttribute, Values: []string{"A", "B"}}, {Name: "OfA", ReadOnly: true}, {Name: "OfB", ReadOnly: true},
	}, bmc.Dependency{If: is("A"), Attribute: "OfA", Property: bmc.ReadOnly, Value: false}, bmc.Dependency{If: is("B"), Attribute: "OfB", Property: bmc.ReadOnly, Value: false})
	all := newSchemas()
	of := func(mode string) *schema {
		return all.forBIOS(bmc.BIOS{Settings: bmc.Settings{"Mode": mode, "OfA": "", "OfB": ""}, Registry: r})
	}
	if a, b := of("A"), of("B"); a.name == b.name || a != of("A") {
		t.Errorf("schemas %s and %s, want two", a.name, b.name)
	}
}

// A field of spec.firmware that others lock is reported with what unlocks it, once.
func TestLockedFieldIsReported(t *testing.T) {
	no, yes := false, true
	b := newBench(t, func(h *metal3.BareMetalHost) {
		h.Spec.BMC.Address = "idrac-virtualmedia://192.0.2.2/redfish/v1/Systems/1"
		h.Spec.Firmware = &metal3.FirmwareConfig{VirtualizationEnabled: &no, SriovEnabled: &yes} //nolint:staticcheck // the specification has it
	})
	values := []string{"Enabled", "Disabled"}
	r := bmc.NewAttributeRegistry("Dell", []bmc.Attribute{
		{Name: "ProcVirtualization", Type: bmc.EnumerationAttribute, Values: values}, {Name: "SriovGlobalEnable", Type: bmc.EnumerationAttribute, Values: values},
	}, bmc.Dependency{If: []bmc.Condition{{Attribute: "ProcVirtualization", Is: bmc.Equal, Value: "Disabled"}}, Attribute: "SriovGlobalEnable", Property: bmc.CurrentValue, Value: "Disabled"})
	b.bmc.Firmware(func(w *bmctest.Firmware) {
		w.Registry, w.Settings = r, bmc.Settings{"ProcVirtualization": "Enabled", "SriovGlobalEnable": "Disabled"}
	})
	b.until("an error", func() bool { return b.host().Status.ErrorType != "" })
	want := "spec.firmware.sriovEnabled needs the BIOS setting SriovGlobalEnable=Enabled: Setting SriovGlobalEnable is invalid, it is Disabled while ProcVirtualization is Disabled: set ProcVirtualization to Enabled first"
	if got := b.host().Status.ErrorMessage; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	if d := cmp.Diff(0, b.sets()); d != "" {
		t.Errorf("requests (-want +got):\n%s", d)
	}
}

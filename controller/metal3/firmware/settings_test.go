package firmware

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// B-200 B-201 B-202 B-203 B-210: the objects that every registered host has.
func TestObjectsOfARegisteredHost(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	hfs := b.settings()
	want := metal3.SettingsMap{
		"Virtual": "Enabled", "Cores": "8", "Quiet": "true", "Banner": "hello", "Serial": "S1", "AssetTag": "", "Model": "3500",
		"SetupSecret": "", "Odd": "1/2", "Plain": "3",
	}
	if d := cmp.Diff(want, hfs.Status.Settings); d != "" {
		t.Errorf("status.settings (-want +got):\n%s", d)
	}
	if len(hfs.OwnerReferences) != 1 || hfs.OwnerReferences[0].Kind != "BareMetalHost" || !metav1.IsControlledBy(&hfs, new(b.host())) || !*hfs.OwnerReferences[0].BlockOwnerDeletion || hfs.Status.LastUpdated == nil {
		t.Errorf("owners %+v, lastUpdated %v: want the host, as its controller (B-04)", hfs.OwnerReferences, hfs.Status.LastUpdated)
	}
	for kind, status := range map[string]metav1.ConditionStatus{changeDetected: metav1.ConditionFalse, valid: metav1.ConditionTrue} {
		i := slices.IndexFunc(hfs.Status.Conditions, func(c metav1.Condition) bool { return c.Type == kind })
		if i < 0 || hfs.Status.Conditions[i].Status != status || hfs.Status.Conditions[i].Reason != "Success" || hfs.Status.Conditions[i].ObservedGeneration != hfs.Generation {
			t.Errorf("conditions %+v: want %s %s (B-203)", hfs.Status.Conditions, kind, status)
		}
	}
	var all metal3.FirmwareSchemaList
	if err := b.kube.List(context.Background(), &all); err != nil || len(all.Items) != 1 {
		t.Fatalf("schemas %+v, %v: want one", all.Items, err)
	}
	s := all.Items[0]
	if s.Name != hfs.Status.FirmwareSchema.Name || s.Spec.HardwareVendor != "Contoso" || s.Spec.HardwareModel != "3500" ||
		len(s.OwnerReferences) != 1 || s.OwnerReferences[0].UID != hfs.UID {
		t.Errorf("schema %s of %s %s, owners %+v; the settings refer to %+v", s.Name, s.Spec.HardwareVendor, s.Spec.HardwareModel, s.OwnerReferences, hfs.Status.FirmwareSchema)
	}
	if _, there := s.Spec.Schema["AdminPassword"]; there || len(s.Spec.Schema) != 9 {
		t.Errorf("schema of %d settings, want 9: none of passwords (B-202)", len(s.Spec.Schema))
	}
	hfc := b.components()
	wantComponents := []metal3.FirmwareComponentStatus{
		{Component: "bios", InitialVersion: "1.0", CurrentVersion: "1.0"}, {Component: "bmc", InitialVersion: "2.0", CurrentVersion: "2.0"},
		{Component: "nic:1", InitialVersion: "3.0", CurrentVersion: "3.0"},
	}
	if d := cmp.Diff(wantComponents, hfc.Status.Components); d != "" || !b.condition(valid, hfc.Status.Conditions) {
		t.Errorf("components (-want +got):\n%s\nconditions %+v", d, hfc.Status.Conditions)
	}
	for range 5 { // the host is powered on
		b.pass()
	}
	quiet := b.writes
	for range 20 {
		b.pass()
	}
	if b.writes != quiet {
		t.Errorf("%d writes of a host at rest, want none", b.writes-quiet)
	}
}

// The name of a schema is upstream's for the same settings, whatever else the
// registry contains (B-202).
func TestSchemaNames(t *testing.T) {
	base := func() []bmc.Attribute {
		return []bmc.Attribute{
			{Name: "BootMode", Type: "Enumeration", Values: []string{"Bios", "Uefi"}},
			{Name: "NumCores", Type: "Integer", Lower: new(int64(10)), Upper: new(int64(20)), ReadOnly: true},
		}
	}
	name := func(edit func([]bmc.Attribute)) string {
		all := base()
		edit(all)
		s := bmc.Settings{}
		for _, a := range all {
			s[a.Name] = "x"
		}
		return schemaOf(bmc.BIOS{Settings: s, Registry: bmc.NewAttributeRegistry("R", all)}).name
	}
	unedited := name(func([]bmc.Attribute) {})
	// printf '[10 20 Bios BootMode Enumeration Integer NumCores Uefi false true]' | sha256sum
	if want := "schema-cc4f8867"; unedited != want {
		t.Errorf("name %s, want %s", unedited, want)
	}
	for what, tt := range map[string]struct {
		edit func([]bmc.Attribute)
		same bool
	}{
		"unique":        {func(a []bmc.Attribute) { a[0].Unique = true }, true},
		"reset":         {func(a []bmc.Attribute) { a[0].ResetRequired = true }, true},
		"name":          {func(a []bmc.Attribute) { a[0].Name = "BootModes" }, false},
		"type":          {func(a []bmc.Attribute) { a[1].Type = "String" }, false},
		"values":        {func(a []bmc.Attribute) { a[0].Values = []string{"Uefi"} }, false},
		"lower bound":   {func(a []bmc.Attribute) { a[1].Lower = new(int64(11)) }, false},
		"upper bound":   {func(a []bmc.Attribute) { a[1].Upper = nil }, false},
		"read-only":     {func(a []bmc.Attribute) { a[1].ReadOnly = false }, false},
		"another order": {func(a []bmc.Attribute) { a[0], a[1] = a[1], a[0] }, true},
	} {
		if got := name(tt.edit); (got == unedited) != tt.same {
			t.Errorf("with another %s: %s and %s, want the same: %v", what, unedited, got, tt.same)
		}
	}
}

func schemaOf(b bmc.BIOS) *schema { return newSchema(b, b.Registry.Rules(b.Settings)) }

// B-204: a row for each type of attribute and each kind of error.
var validations = []struct {
	setting string
	value   any
	err     string // "" means valid
}{
	{"Virtual", "Disabled", ""},
	{"Virtual", "Maybe", "Setting Virtual is invalid, unknown enumeration value - Maybe"},
	{"Cores", 16, ""},
	{"Cores", "16", ""},
	{"Cores", "many", "Setting Cores is invalid, String many entered while integer expected"},
	{"Cores", 0, "Setting Cores is invalid, integer 0 is below minimum value 1"},
	{"Cores", 65, "Setting Cores is invalid, integer 65 is above maximum value 64"},
	{"Quiet", "false", ""},
	{"Quiet", "no", "Setting Quiet is invalid, no is not a boolean"},
	{"Banner", "welcome", ""},
	{"Banner", "x", "Setting Banner is invalid, string x length is below minimum length 2"},
	{"Banner", "much too long", "Setting Banner is invalid, string much too long length is above maximum length 8"},
	{"Model", "4000", "Setting Model is invalid, it is ReadOnly"},
	{"AssetTag", "T1", "Setting AssetTag is invalid, it is Unique"}, // the specification's text, not upstream's
	{"Serial", "S2", "Setting Serial is invalid, it is ReadOnly"},
	{"AdminPassword", "secret", "cannot set Password field"},
	{"SetupSecret", "secret", "Setting SetupSecret is invalid, it is not in the associated schema"},
	{"Nowhere", "x", "setting Nowhere is not in the Status field"},
	{"Odd", "1/3", "Setting Odd is invalid, unexpected attribute type Fraction"},
	{"Plain", 4, ""},
	{"Plain", "anything", ""},
}

func TestValidation(t *testing.T) {
	for _, tt := range validations {
		t.Run(fmt.Sprint(tt.setting, "=", tt.value), func(t *testing.T) {
			b := newBench(t, nil)
			b.until("available", b.settled)
			v := str(fmt.Sprint(tt.value))
			if n, ok := tt.value.(int); ok {
				v = num(n)
			}
			b.want(metal3.DesiredSettingsMap{tt.setting: v})
			b.look()
			hfs := b.settings()
			if got := b.condition(valid, hfs.Status.Conditions); got != (tt.err == "") || !b.condition(changeDetected, hfs.Status.Conditions) {
				t.Errorf("conditions %+v, want valid: %v", hfs.Status.Conditions, tt.err == "")
			}
			var events []string
			for _, m := range b.messages() {
				if strings.HasPrefix(m, "ValidationFailed") {
					events = append(events, m)
				}
			}
			if tt.err == "" {
				if events != nil {
					t.Errorf("events %q, want none", events)
				}
				return
			}
			if want := []string{"ValidationFailed Invalid BIOS setting: " + tt.err}; !cmp.Equal(events, want) {
				t.Errorf("events %q, want %q", events, want)
			}
			for _, c := range hfs.Status.Conditions {
				if c.Type == valid && (c.Reason != "ConfigurationError" || c.Message != "Invalid BIOS setting") {
					t.Errorf("condition %+v (B-203)", c)
				}
			}
			for range 5 { // B-54: it is not applied, and the host stays available
				b.pass()
			}
			if got := b.now(tt.setting); got != current[tt.setting] || !b.in(metal3.StateAvailable)() {
				t.Errorf("%s is %v in a host that is %v", tt.setting, got, b.states)
			}
		})
	}
}

// Only a schema object that somebody has edited can lack a name; the text is
// upstream's, too (B-204).
func TestSettingMissingFromTheSchema(t *testing.T) {
	got := validate(metal3.DesiredSettingsMap{"Gone": str("x")}, bmc.BIOS{Settings: bmc.Settings{"Gone": "y"}}, &schema{})
	if want := "[Setting Gone is invalid, it is not in the associated schema]"; fmt.Sprint(got) != want {
		t.Errorf("invalid = %v, want %s", got, want)
	}
}

// B-205 B-206: the BMC gets values of its types, and only those that differ; one
// reset applies them.
func TestSettingsAreApplied(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.bmc.Forget()
	b.want(metal3.DesiredSettingsMap{"Virtual": str("Enabled"), "Cores": str("16"), "Quiet": str("false"), "Banner": str("hi"), "Plain": num(5)})
	b.until("preparing", b.in(metal3.StatePreparing))
	b.until("applied", b.settled)
	for name, want := range map[string]any{"Virtual": "Enabled", "Cores": int64(16), "Quiet": false, "Banner": "hi", "Plain": int64(5)} {
		if got := b.now(name); got != want {
			t.Errorf("%s = %#v, want %#v", name, got, want)
		}
	}
	hfs := b.settings()
	if hfs.Status.Settings["Cores"] != "16" || b.condition(changeDetected, hfs.Status.Conditions) || len(b.errs) > 0 {
		t.Errorf("status %+v, errors %v", hfs.Status.Conditions, b.errs)
	}
	sets, boots := 0, 0
	for _, c := range b.bmc.Calls() {
		switch {
		case c.Verb == bmctest.SetBIOS:
			sets++
		case c.Verb == bmctest.SetPower && (c.Power == bmc.PowerOn || c.Power == bmc.PowerReset):
			boots++
		}
	}
	if sets != 1 || boots != 1 {
		t.Errorf("asked %d times, %d starts: want one of both", sets, boots)
	}
	if want := []metal3.ProvisioningState{"available", "preparing", "available"}; !cmp.Equal(b.states, want) {
		t.Errorf("states %v, want %v (B-206)", b.states, want)
	}
}

// A setting that depends on another takes two resets.
func TestSettingsThatUnlockEachOther(t *testing.T) {
	b := newBench(t, nil)
	b.bmc.Firmware(func(w *bmctest.Firmware) {
		w.Needs = map[string]bmc.Settings{"Cores": {"Virtual": "Disabled"}, "Banner": {"Cores": int64(4)}}
	})
	b.until("available", b.settled)
	b.bmc.Forget()
	b.want(metal3.DesiredSettingsMap{"Virtual": str("Disabled"), "Cores": num(4), "Banner": str("three")})
	b.until("preparing", b.in(metal3.StatePreparing))
	b.until("applied", b.settled)
	if b.now("Virtual") != "Disabled" || b.now("Cores") != int64(4) || b.now("Banner") != "three" || len(b.errs) > 0 {
		t.Errorf("settings %v %v %v, errors %v", b.now("Virtual"), b.now("Cores"), b.now("Banner"), b.errs)
	}
}

// Settings that differ after the reset are reported by attribute, and retried.
func TestPartialFailureNamesAttributes(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Lost = []string{"Cores", "Banner"} })
	b.want(metal3.DesiredSettingsMap{"Virtual": str("Disabled"), "Cores": num(4), "Banner": str("hi")})
	lose := b.bmc
	b.until("an error", func() bool {
		lose.Firmware(func(w *bmctest.Firmware) { w.Lost = []string{"Cores", "Banner"} }) // again and again
		return b.host().Status.ErrorType != ""
	})
	s := b.host().Status
	if want := "BIOS settings not applied: Banner is hello, not hi; Cores is 8, not 4"; s.ErrorType != metal3.PreparationError || s.ErrorMessage != want {
		t.Errorf("%s %q, want a preparation error %q", s.ErrorType, s.ErrorMessage, want)
	}
	if b.now("Virtual") != "Disabled" || b.in(metal3.StateAvailable)() {
		t.Errorf("Virtual %v in a host that is %v", b.now("Virtual"), b.states)
	}
	lose.Firmware(func(w *bmctest.Firmware) { w.Lost = nil })
	b.until("applied", b.settled)
	if b.now("Cores") != int64(4) || b.host().Status.ErrorType != "" {
		t.Errorf("Cores %v, error %s", b.now("Cores"), b.host().Status.ErrorType)
	}
}

// The BMC's message about a setting that it always refuses is reported.
func TestRefusedSettingsAreReported(t *testing.T) {
	b := newBench(t, nil)
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Needs = map[string]bmc.Settings{"Cores": {"Virtual": "Disabled"}} })
	b.until("available", b.settled)
	b.want(metal3.DesiredSettingsMap{"Cores": num(4)})
	b.until("an error", func() bool { return b.host().Status.ErrorType != "" })
	if got, want := b.host().Status.ErrorMessage, "BIOS settings not applied: Cores is 8, not 4 (Cores depends on Virtual)"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	b.want(metal3.DesiredSettingsMap{})
	b.until("available when nothing is wanted any more", b.settled)
	if s := b.host().Status; s.ErrorType != "" {
		t.Errorf("error %s %q, want none", s.ErrorType, s.ErrorMessage)
	}
}

// The BMC's message about settings that a reset has not applied is reported.
func TestSettingsErrorOfTheBMCIsReported(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.want(metal3.DesiredSettingsMap{"Cores": num(4)})
	b.until("an error", func() bool {
		b.bmc.Firmware(func(w *bmctest.Firmware) {
			w.Lost, w.Messages = []string{"Cores"}, map[string]string{"Cores": "The property Cores is not known."}
		})
		return b.host().Status.ErrorType != ""
	})
	if got, want := b.host().Status.ErrorMessage, "BIOS settings not applied: Cores is 8, not 4 (The property Cores is not known.)"; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
}

// A BMC that takes no settings while others are pending is reset first.
func TestSettingsThatDependOnOthers(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Once, w.Pending = true, bmc.Settings{"Banner": "others"} })
	b.want(metal3.DesiredSettingsMap{"Cores": num(4)})
	b.until("preparing", b.in(metal3.StatePreparing))
	b.until("applied", b.settled)
	if b.now("Cores") != int64(4) || b.now("Banner") != "others" || len(b.errs) > 0 {
		t.Errorf("Cores %v, Banner %v, errors %v", b.now("Cores"), b.now("Banner"), b.errs)
	}
}

// Whatever is killed and when, an available host has all settings or was not asked
// for them (issue 6, "must hold").
func TestKilledWhileSettingsAreApplied(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := newBench(t, nil)
			b.bmc.Firmware(func(w *bmctest.Firmware) { w.Needs = map[string]bmc.Settings{"Cores": {"Virtual": "Disabled"}} })
			b.until("available", b.settled)
			b.seed = newSeed(seed)
			b.crash = func() bool { return b.seed.IntN(3) == 0 }
			b.want(metal3.DesiredSettingsMap{"Virtual": str("Disabled"), "Cores": num(4)})
			asked := false
			b.until("applied", func() bool {
				if b.seed.IntN(4) == 0 {
					b.replace()
				}
				if b.seed.IntN(8) == 0 {
					b.bmc.FailNext([]bmctest.Verb{bmctest.SetPower, bmctest.SetBIOS, bmctest.ReadBIOS, bmctest.ReadPending}[b.seed.IntN(4)], fmt.Errorf("test: %w", bmc.ErrUnreachable))
				}
				asked = asked || b.in(metal3.StatePreparing)()
				if asked && b.in(metal3.StateAvailable)() && (b.now("Virtual") != "Disabled" || b.now("Cores") != int64(4)) {
					t.Fatalf("available with Virtual %v and Cores %v", b.now("Virtual"), b.now("Cores"))
				}
				return asked && b.settled()
			})
		})
	}
}

// Removing settings from the specification while they are pending on the BMC
// reverts them.
func TestWithdrawnSettingsAreReverted(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.want(metal3.DesiredSettingsMap{"Cores": num(4)})
	b.until("waiting on the BMC", func() bool {
		waits := false
		b.bmc.Firmware(func(w *bmctest.Firmware) { waits = w.Pending["Cores"] != nil })
		if waits {
			return true
		}
		b.bmc.FailNext(bmctest.SetPower, fmt.Errorf("test: %w", bmc.ErrUnreachable))
		return false
	})
	b.bmc.Plug()
	b.want(metal3.DesiredSettingsMap{})
	b.until("available", b.settled)
	var pending bmc.Settings
	b.bmc.Firmware(func(w *bmctest.Firmware) { pending = w.Pending })
	if len(pending) > 0 || b.now("Cores") != int64(8) {
		t.Errorf("pending %v, Cores %v: want nothing changed", pending, b.now("Cores"))
	}
}

// An outdated registry lacks a setting, which then takes any value. When it is
// updated the host has another schema, and the old one is deleted.
func TestRegistryWithoutSomeSettings(t *testing.T) {
	b := newBench(t, nil)
	all := slices.DeleteFunc(slices.Clone(registry.Attributes), func(a bmc.Attribute) bool { return a.Name == "Cores" })
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Registry = bmc.NewAttributeRegistry(registry.ID, all) })
	b.until("available", b.settled)
	was := b.settings().Status.FirmwareSchema.Name
	b.want(metal3.DesiredSettingsMap{"Cores": num(400)})
	b.look()
	if hfs := b.settings(); !b.condition(valid, hfs.Status.Conditions) {
		t.Errorf("conditions %+v: want it valid while nobody knows better", hfs.Status.Conditions)
	}
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Registry = registry })
	b.want(metal3.DesiredSettingsMap{"Cores": num(401)})
	b.look()
	hfs := b.settings()
	if b.condition(valid, hfs.Status.Conditions) || hfs.Status.FirmwareSchema.Name == was {
		t.Errorf("conditions %+v, schema %s: want it invalid under another schema", hfs.Status.Conditions, hfs.Status.FirmwareSchema.Name)
	}
	var left metal3.FirmwareSchemaList
	if err := b.kube.List(context.Background(), &left); err != nil || len(left.Items) != 1 || left.Items[0].Name == was {
		t.Errorf("schemas %d, %v: want the new one alone", len(left.Items), err)
	}
}

// B-54: a validation of another generation has no effect.
func TestStaleValidationIsWaitedFor(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.want(metal3.DesiredSettingsMap{"Cores": num(4)})
	h := b.host()
	h.Status.Provisioning.State = metal3.StatePreparing
	state, _, err := b.r.Settings().Observe(b.ctx, serverOf(b, &h))
	if err != nil || state != phase.PartStale {
		t.Errorf("Look = %q, %v; want stale", state, err)
	}
}

// Hosts of one model share a schema; it is deleted when its last user has another
// (B-04, B-202).
func TestSchemasAreShared(t *testing.T) {
	b := newBench(t, nil, newHost("node-1", "192.0.2.2"), newHost("node-2", "192.0.2.2"))
	schemasOf := func() map[string]int {
		var all metal3.FirmwareSchemaList
		if err := b.kube.List(context.Background(), &all); err != nil {
			t.Fatal(err)
		}
		out := map[string]int{}
		for _, s := range all.Items {
			out[s.Name] = len(s.OwnerReferences)
		}
		return out
	}
	for _, name := range []string{"node-0", "node-1"} {
		b.name = name
		b.look()
	}
	one := b.settings().Status.FirmwareSchema.Name
	b.bmc.Firmware(func(w *bmctest.Firmware) {
		w.Registry = bmc.NewAttributeRegistry("Other", append(slices.Clone(registry.Attributes), bmc.Attribute{Name: "More", Type: "Boolean"}))
		w.Settings["More"] = true
	})
	b.name = "node-2"
	b.look()
	other := b.settings().Status.FirmwareSchema.Name
	if got, want := schemasOf(), map[string]int{one: 2, other: 1}; one == other || !cmp.Equal(got, want) {
		t.Errorf("schemas with owners %v, want %v", got, want)
	}
	for _, name := range []string{"node-0", "node-1"} { // a BIOS update adds settings
		b.name = name
		b.clock.Step(refresh)
		b.look()
	}
	if got, want := schemasOf(), map[string]int{other: 3}; !cmp.Equal(got, want) {
		t.Errorf("schemas with owners %v, want %v", got, want)
	}
}

// A BMC without settings, such as IPMI's: the object exists and is empty, and the
// host goes on.
func TestBMCWithoutSettings(t *testing.T) {
	b := newBench(t, nil)
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Settings, w.Components = nil, nil })
	b.until("available", func() bool { return b.in(metal3.StateAvailable)() })
	hfs := b.settings()
	if len(hfs.Status.Settings) != 0 || hfs.Status.FirmwareSchema != nil || !b.condition(valid, hfs.Status.Conditions) {
		t.Errorf("status %+v", hfs.Status)
	}
	if b.get(&metal3.HostFirmwareComponents{}) {
		t.Error("there are HostFirmwareComponents, want none (B-210)")
	}
	b.want(metal3.DesiredSettingsMap{"Cores": num(4)})
	for range 5 {
		b.pass()
	}
	if hfs = b.settings(); b.condition(valid, hfs.Status.Conditions) || !b.in(metal3.StateAvailable)() {
		t.Errorf("conditions %+v in a host that is %v: want invalid, and available", hfs.Status.Conditions, b.states)
	}
	for _, m := range b.messages() {
		if strings.HasPrefix(m, "ValidationFailed") {
			t.Errorf("event %q while there are no settings, want none (B-204)", m)
		}
	}
}

var _ client.Object = (*metal3.FirmwareSchema)(nil)

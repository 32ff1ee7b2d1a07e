package bmctest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// asSetup returns the client as a bmc.Setup. It skips the test if the driver or
// the BMC has no settings, and checks the error.
func asSetup(t *testing.T, c bmc.Client) (bmc.Setup, bmc.BIOS) {
	t.Helper()
	s, ok := c.(bmc.Setup)
	if !ok {
		t.Skip("the driver knows no BIOS settings")
	}
	b, err := s.BIOS(t.Context())
	offered(t, ReadBIOS, err)
	if err != nil {
		t.Fatalf("BIOS() error = %v", err)
	}
	return s, b
}

// another returns a setting that can be changed, and another valid value.
func another(b bmc.BIOS) (name string, to any) {
	if b.Registry == nil {
		return "", nil
	}
	for _, a := range b.Registry.Attributes {
		if a.ReadOnly || a.Unique || a.Type != bmc.EnumerationAttribute || !a.ResetRequired {
			continue
		}
		for _, v := range a.Values {
			if current, there := b.Settings[a.Name]; there && current != v {
				return a.Name, v
			}
		}
	}
	return "", nil
}

// Settings are pending until a reset applies them.
func testSettings(t *testing.T, s suite) {
	c := s.open(t)
	setup, b := asSetup(t, c)
	name, to := another(b)
	if name == "" {
		t.Fatalf("no setting can be changed: %d of them", len(b.Settings))
	}
	s.power(t, c, bmc.PowerOff, bmc.Off)
	was := b.Settings[name]
	for _, v := range []any{to, was} {
		if err := setup.SetBIOS(t.Context(), bmc.Settings{name: v}); err != nil {
			t.Fatalf("SetBIOS(%s = %v) error = %v", name, v, err)
		}
		pending, err := setup.PendingBIOS(t.Context())
		if err != nil || pending[name] != v {
			t.Fatalf("PendingBIOS() = %v, %v; want %s = %v", pending, err, name, v)
		}
		s.power(t, c, bmc.PowerOn, bmc.On)
		for range 100 {
			s.settle()
			if _, b = asSetup(t, c); b.Settings[name] == v {
				break
			}
		}
		if b.Settings[name] != v {
			t.Fatalf("BIOS().Settings[%s] = %v after a boot, want %v", name, b.Settings[name], v)
		}
		pending, err = setup.PendingBIOS(t.Context())
		if err != nil || len(pending) > 0 {
			t.Fatalf("PendingBIOS() = %v, %v after a boot, want none", pending, err)
		}
		s.power(t, c, bmc.PowerOff, bmc.Off)
	}
	_, again := asSetup(t, c)
	if diff := cmp.Diff(b.Settings, again.Settings); diff != "" {
		t.Errorf("BIOS().Settings differ the second time:\n%s", diff)
	}
	if b.Registry != again.Registry {
		t.Error("BIOS().Registry is another the second time, want the same one")
	}
}

// SetBIOS names an unknown setting in its error, and no setting is pending then.
func testSettingsRefused(t *testing.T, s suite) {
	c := s.open(t)
	setup, _ := asSetup(t, c)
	err := setup.SetBIOS(t.Context(), bmc.Settings{"NoSuchSettingAnywhere": "Enabled"})
	e := new(bmc.SettingsError)
	if !errors.As(err, &e) || len(e.Refused) != 1 || e.Refused["NoSuchSettingAnywhere"] == "" {
		t.Errorf("SetBIOS() of a setting that there is not: error = %v, want a SettingsError of it", err)
	}
	if pending, err := setup.PendingBIOS(t.Context()); err != nil || len(pending) > 0 {
		t.Errorf("PendingBIOS() = %v, %v; want none", pending, err)
	}
}

// Components have names and versions, and are found by name.
func testComponents(t *testing.T, s suite) {
	c := s.open(t)
	u, ok := c.(bmc.Updater)
	if !ok {
		t.Skip("the driver updates no firmware")
	}
	all, err := u.Components(t.Context())
	offered(t, ReadComponents, err)
	if err != nil {
		t.Fatalf("Components() error = %v", err)
	}
	seen := map[string]bool{}
	for _, one := range all {
		if one.Name != bmc.ComponentBIOS && one.Name != bmc.ComponentBMC && !one.IsNIC() || one.Version == "" || seen[one.Name] {
			t.Errorf("Components() has %+v: want bios, bmc and nic:…, each once and with a version", one)
		}
		seen[one.Name] = true
		got, err := u.Component(t.Context(), one.Name)
		if err != nil || got.Version != one.Version || got.Updating {
			t.Errorf("Component(%s) = %+v, %v; want version %s and no update under way", one.Name, got, err, one.Version)
		}
	}
	if _, err := u.Component(t.Context(), "nic:nowhere"); !errors.Is(err, bmc.ErrUnsupported) {
		t.Errorf("Component(nic:nowhere) error = %v, want ErrUnsupported", err)
	}
	if _, err := u.Task(t.Context(), "/redfish/v1/TaskService/Tasks/nowhere"); !errors.Is(err, bmc.ErrNoTask) {
		t.Errorf("Task(nowhere) error = %v, want ErrNoTask", err)
	}
}

package rack

import (
	"io/fs"
	"path"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
	"github.com/metalab-dev/metalab/fixtures"
)

// Every timing of a model can be set in a rack file, under the same name.
func TestRackOverridesEveryTiming(t *testing.T) {
	r := rackfile.Default(1)
	is := reflect.ValueOf(&r.Timings).Elem()
	model := reflect.TypeFor[machine.Timings]()
	for i := range model.NumField() {
		name := model.Field(i).Tag.Get("json")
		d := &fault.Duration{Duration: time.Duration(i+1) * time.Hour}
		found := false
		for j := range is.NumField() {
			if tag, _, _ := strings.Cut(is.Type().Field(j).Tag.Get("json"), ","); tag == name {
				is.Field(j).Set(reflect.ValueOf(d))
				found = true
			}
		}
		if !found {
			t.Errorf("rack.Timings has no %s", name)
		}
	}
	models, err := loadModels(fixtures.Profiles, &r)
	if err != nil {
		t.Fatal(err)
	}
	got := reflect.ValueOf(models[modelKey{profile: "generic"}].profile.Timings)
	for i := range got.NumField() {
		if d := got.Field(i).Interface().(machine.Duration); d.Duration != time.Duration(i+1)*time.Hour {
			t.Errorf("%s = %v, want %dh", got.Type().Field(i).Name, d, i+1)
		}
	}
}

func TestListenSpecOfARack(t *testing.T) {
	for in, want := range map[rackfile.Listen]string{
		"": "", "loopback": "", "loopback:9443": "lo:9443", "192.0.2.7": "192.0.2.7:8443", "[2001:db8::1]:9000": "[2001:db8::1]:9000",
	} {
		if got, err := listenSpec(in); got != want || err != nil {
			t.Errorf("listenSpec(%q) = %q, %v, want %q", in, got, err, want)
		}
	}
}

// A dialect has at most a few functions, and its OEM resources fit the service's
// tree.
func TestBuiltInDialectsAreValid(t *testing.T) {
	for _, name := range Dialects() {
		r := Dialect(name)
		if n := r.Hooks(); n > 10 {
			t.Errorf("%s has %d hooks, want 10 at most", name, n)
		}
		if err := vendor.Check(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Registries of built-in profiles are parsed when they are first used. A user's
// registry is parsed at once, so that its errors are reported at the start.
func TestBuiltInRegistriesAreParsedOnDemand(t *testing.T) {
	files, err := fs.Glob(fixtures.Profiles, "profiles/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		p, _, err := ReadProfile(nil, strings.TrimSuffix(path.Base(file), ".yaml"))
		if err != nil {
			t.Error(err)
			continue
		}
		if got := p.Firmware.Model.Registry(); (len(got.Attributes) > 0) != (p.Firmware.Registry != "") {
			t.Errorf("%s: %d settings with the registry %q", file, len(got.Attributes), p.Firmware.Registry)
		}
	}
	raw, err := fs.ReadFile(fixtures.Profiles, "registries/generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	wrong := layers{Files{"registries/generic.yaml": append(raw, "nonsense: 1\n"...)}, fixtures.Profiles}
	if _, _, err := ReadProfile(wrong, "generic"); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Errorf("ReadProfile() with a registry that is wrong = %v, want what is wrong with it", err)
	}
}

func TestOEMMistakesNameFileLineAndKey(t *testing.T) {
	files := fstest.MapFS{"dialects/acme.yaml": {Data: []byte("name: acme\nbase: generic\noem:\n  uriAliases:\n  - {from: /redfish/v1/Alias, to: /redfish/v1/Nothing}\n")}}
	_, err := readDialect(files, "acme")
	if want := `dialects/acme.yaml:5: oem.uriAliases[0].to: "/redfish/v1/Nothing": must be the standard URI of a resource`; err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("readDialect() = %v, want %s", err, want)
	}
}

package ilo_test

import (
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/ilo"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/fixtures"
)

var records = map[string]*dialect.Record{"ilo4": &ilo.ILO4, "ilo5": &ilo.ILO5, "ilo6": &ilo.ILO6, "ilo7": &ilo.ILO7}

func TestRecordsAreValid(t *testing.T) {
	for name, r := range records {
		if err := r.Validate(); err != nil {
			t.Error(err)
		}
		if r.Name != name {
			t.Errorf("%s calls itself %s", name, r.Name)
		}
	}
}

func TestProfilesNameRecords(t *testing.T) {
	all, err := fixtures.Profiles.ReadDir("profiles")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for _, f := range all {
		if !strings.HasPrefix(f.Name(), "hpe-") {
			continue
		}
		b, err := fixtures.Profiles.ReadFile("profiles/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		p, err := machine.ParseProfile("profile.yaml", b)
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		err = p.Equip(func(name string) ([]byte, error) { return fixtures.Profiles.ReadFile("registries/" + name + ".yaml") })
		if err != nil {
			t.Errorf("%s: %v", f.Name(), err)
			continue
		}
		if n := len(p.Firmware.Model.Registry().Attributes); n < 60 || n > 150 {
			t.Errorf("%s has %d BIOS attributes", f.Name(), n)
		}
		of[p.Dialect]++
	}
	for name := range records {
		if of[name] < 2 {
			t.Errorf("%d profiles are of %s, want 2", of[name], name)
		}
	}
}

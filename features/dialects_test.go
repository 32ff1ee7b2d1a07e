package features

import (
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/fixtures"
)

// dialectsOfScheme are the dialects that a vendor's address scheme is for.
var dialectsOfScheme = map[string][]string{
	"idrac":              {"idrac8", "idrac9-5", "idrac9", "idrac10"},
	"idrac-redfish":      {"idrac8", "idrac9-5", "idrac9", "idrac10"},
	"idrac-virtualmedia": {"idrac8", "idrac9-5", "idrac9", "idrac10"},
	"ilo4":               {"ilo4"},
	"ilo4-virtualmedia":  {"ilo4"},
	"ilo5":               {"ilo5"},
	"ilo5-redfish":       {"ilo5"},
	"ilo5-virtualmedia":  {"ilo5"},
	"irmc":               {"irmc-s5", "irmc-s6"},
	"ibmc":               {"ibmc"},
	"libvirt":            {"generic"}, // virtual machines
}

// exclusion returns why a dialect has no row for a scheme; "" when it must have one.
func exclusion(d *dialect.Record, scheme string) string {
	switch of, one := dialectsOfScheme[scheme]; {
	case one && !slices.Contains(of, d.Name):
		return "the scheme is for " + strings.Join(of, ", ")
	case scheme == "ipmi" && !d.BMC.Network.IPMI.On:
		return "IPMI is off by default"
	case scheme == "redfish-uefihttp" && !slices.Contains(d.BootTargets, machine.UefiHTTP):
		return "it has no such boot target"
	}
	return ""
}

var (
	row     = regexp.MustCompile(`^\s*\|\s*([a-z0-9-]+)\s*\|\s*([a-z0-9+-]+)\s*\|$`) // model and scheme
	address = regexp.MustCompile(`^\s*\|\s*([a-z0-9+-]+)://[A-Z]`)
	inline  = regexp.MustCompile(`at the address "([a-z0-9+-]+)://`)
)

// rows returns the schemes by which the features provision servers, by dialect.
func rows(t *testing.T) map[string][]string {
	t.Helper()
	dialects := map[string]string{} // by model
	files, err := fs.Glob(fixtures.Profiles, "profiles/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := fs.ReadFile(fixtures.Profiles, file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := machine.ParseProfile("profile.yaml", b)
		if err != nil {
			t.Fatal(err)
		}
		dialects[strings.TrimSuffix(path.Base(file), ".yaml")] = p.Dialect
	}
	out := map[string][]string{}
	lines := func(file string, each func(line string)) {
		b, err := fs.ReadFile(Files, file)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			each(strings.TrimSuffix(line, "\n"))
		}
	}
	lines("dialects.feature", func(line string) {
		m := row.FindStringSubmatch(line)
		if m == nil || m[1] == "model" {
			return
		}
		d, ok := dialects[m[1]]
		if !ok {
			t.Errorf("dialects.feature: there is no model %s", m[1])
		}
		if slices.Contains(out[d], m[2]) && !repeats[m[2]] {
			t.Errorf("dialects.feature: %s has %s more than once", d, m[2])
		}
		out[d] = append(out[d], m[2])
	})
	lines("bmc.feature", func(line string) {
		for _, form := range []*regexp.Regexp{address, inline} {
			if m := form.FindStringSubmatch(line); m != nil {
				out["generic"] = append(out["generic"], m[1])
			}
		}
	})
	return out
}

// repeats are schemes that several models of a dialect have: what the controllers
// do differs with the storage.
var repeats = map[string]bool{"redfish-virtualmedia": true, "idrac-virtualmedia": true, "redfish-uefihttp": true, "redfish": true}

// TestEveryDialectHasARowForEachScheme checks the feature files, so that it sees
// every row, whatever the sample of a run.
func TestEveryDialectHasARowForEachScheme(t *testing.T) {
	all := rows(t)
	for _, name := range rack.Dialects() {
		for _, scheme := range bmc.Schemes() {
			if strings.Contains(scheme, "+") {
				continue // the transport is the lab's business, not the dialect's
			}
			why, has := exclusion(rack.Dialect(name), scheme), slices.Contains(all[name], scheme)
			switch {
			case !has && why == "":
				t.Errorf("dialect %s has no row for %s: add one to dialects.feature, or the reason to without", name, scheme)
			case has && why != "" && name != "generic": // bmc.feature has every form of address
				t.Errorf("dialect %s has a row for %s, although %s", name, scheme, why)
			}
		}
	}
	for name := range maps.Keys(all) { // in any order: each dialect is checked alone
		if rack.Dialect(name) == nil {
			t.Errorf("there are rows of the dialect %q, which does not exist", name)
		}
	}
}

// TestEverySchemeHasARow checks that each scheme of controller/bmc, with each
// suffix, provisions a server.
func TestEverySchemeHasARow(t *testing.T) {
	var seen []string
	for _, schemes := range rows(t) {
		seen = append(seen, schemes...)
	}
	for _, scheme := range bmc.Schemes() {
		if !slices.Contains(seen, scheme) {
			t.Errorf("%s has no row in dialects.feature or bmc.feature", scheme)
		}
	}
	for _, scheme := range seen {
		if !slices.Contains(bmc.Schemes(), scheme) {
			t.Errorf("there is a row for %s, which is no scheme", scheme)
		}
	}
	for scheme := range maps.Keys(dialectsOfScheme) {
		if !slices.Contains(bmc.Schemes(), scheme) {
			t.Errorf("made has %s, which is no scheme", scheme)
		}
	}
}

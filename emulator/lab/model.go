package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/lab/rack"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/fixtures"
)

// dialects are all that a profile can name.
var dialects = map[string]*dialect.Record{
	generic.Record.Name: &generic.Record,
}

// model is a profile, with the lab's timings, and how its BMC speaks. All hosts
// of a profile that speak alike share it.
type model struct {
	profile *machine.Profile
	record  *dialect.Record
	quirks  []quirk.Setting // that the rack gives it
}

// modelKey is what hosts of the same model have in common.
type modelKey struct{ profile, ipmi, quirks string }

func keyOf(h rack.Host) modelKey { return modelKey{h.Profile, h.IPMI, h.Quirks} }

// loadModels makes the models that a rack names.
func loadModels(from fs.FS, of *rack.Lab) (map[modelKey]model, error) {
	plain, err := loadProfiles(from, of)
	if err != nil {
		return nil, err
	}
	models := map[modelKey]model{}
	for name, m := range plain {
		models[modelKey{profile: name}] = m
	}
	for _, g := range of.Groups() {
		m := plain[g.Profile]
		if m.quirks, err = parseQuirks(g.Quirks); err != nil {
			return nil, fmt.Errorf("lab: %s.%w", g.Field, err)
		}
		if g.IPMI != nil {
			if m.record, err = speaking(m.record, g.IPMI); err != nil {
				return nil, fmt.Errorf("lab: %s.ipmi: %w", g.Field, err)
			}
		}
		models[modelKey{g.Profile, g.IPMI.Text(), g.QuirkText()}] = m
	}
	return models, nil
}

// speaking is a record with IPMI as a rack has it.
func speaking(r *dialect.Record, i *rack.IPMI) (*dialect.Record, error) {
	own := *r
	if len(i.Suites) > 0 {
		own.IPMI.Suites = nil
	}
	for _, n := range i.Suites {
		id := byte(n)
		if !slices.Contains(r.IPMI.Suites, id) && !slices.Contains(r.IPMI.Insecure, id) {
			return nil, fmt.Errorf("suites: %d: this BMC has %v and, if asked, %v", n, numbers(r.IPMI.Suites), numbers(r.IPMI.Insecure))
		}
		own.IPMI.Suites = append(own.IPMI.Suites, id)
	}
	own.IPMI.Advertised = uint16(i.AdvertisedPort)
	own.BMC.Channel.Key, own.BMC.Channel.AuthTypes = i.Key(), i.AuthTypes()
	return &own, own.Validate()
}

// numbers are bytes as people read them.
func numbers(b []byte) []int {
	out := make([]int, len(b))
	for i := range b {
		out[i] = int(b[i])
	}
	return out
}

// loadProfiles reads the profiles that a rack names.
func loadProfiles(from fs.FS, of *rack.Lab) (map[string]model, error) {
	models := map[string]model{}
	for _, g := range of.Groups() {
		if _, ok := models[g.Profile]; ok {
			continue
		}
		file := "profiles/" + g.Profile + ".yaml"
		b, err := fs.ReadFile(from, file)
		if err != nil {
			return nil, fmt.Errorf("lab: %s.profile: %s: there is no such profile: %w", g.Field, g.Profile, err)
		}
		p, err := machine.ParseProfile(b)
		if err != nil {
			return nil, fmt.Errorf("lab: %s: %w", file, err)
		}
		if p.Name != g.Profile {
			return nil, fmt.Errorf("lab: %s: name: %q: must be %s, as the file", file, p.Name, g.Profile)
		}
		r, ok := dialects[p.Dialect]
		if !ok {
			return nil, fmt.Errorf("lab: %s: dialect: there is no %q", file, p.Dialect)
		}
		if err := r.Validate(); err != nil {
			return nil, fmt.Errorf("lab: %s: %w", file, err)
		}
		err = p.Equip(func(name string) ([]byte, error) { return readRegistry(from, name) })
		if err != nil {
			return nil, fmt.Errorf("lab: %s: %w", file, err)
		}
		retime(&p.Timings, of.Timings)
		models[g.Profile] = model{profile: p, record: r}
	}
	return models, nil
}

// readRegistry reads the registry of BIOS attributes that a profile names. One
// that does not stand beside the profiles is a built-in one.
func readRegistry(from fs.FS, name string) ([]byte, error) {
	file := "registries/" + name + ".yaml"
	b, err := fs.ReadFile(from, file)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = fs.ReadFile(fixtures.Profiles, file)
	}
	return b, err
}

// retime puts the timings of a rack in place of a profile's.
func retime(t *machine.Timings, by rack.Timings) {
	for _, d := range []struct {
		of *machine.Duration
		is *fault.Duration
	}{
		{&t.PowerOn, by.PowerOn}, {&t.POST, by.POST}, {&t.OSBoot, by.OSBoot}, {&t.Shutdown, by.Shutdown}, {&t.PowerOff, by.PowerOff},
		{&t.Graceful, by.Graceful}, {&t.Dump, by.Dump},
	} {
		if d.is != nil {
			d.of.Duration = d.is.Duration
		}
	}
}

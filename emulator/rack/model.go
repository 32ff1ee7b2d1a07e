package rack

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/file"
	"github.com/metalab-dev/metalab/emulator/dialect/generic"
	"github.com/metalab-dev/metalab/emulator/dialect/ibmc"
	"github.com/metalab-dev/metalab/emulator/dialect/idrac"
	"github.com/metalab-dev/metalab/emulator/dialect/ilo"
	"github.com/metalab-dev/metalab/emulator/dialect/irmc"
	"github.com/metalab-dev/metalab/emulator/dialect/megarac"
	"github.com/metalab-dev/metalab/emulator/dialect/openbmc"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/dialect/supermicro"
	"github.com/metalab-dev/metalab/emulator/dialect/xcc"
	"github.com/metalab-dev/metalab/emulator/fault"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
	"github.com/metalab-dev/metalab/emulator/redfish/vendor"
	"github.com/metalab-dev/metalab/emulator/suggest"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
	"github.com/metalab-dev/metalab/fixtures"
)

// dialects are the built-in dialects, by the names that profiles use.
var dialects = map[string]*dialect.Record{
	generic.Record.Name: &generic.Record,
	openbmc.Record.Name: &openbmc.Record,
	irmc.S5.Name:        &irmc.S5,
	irmc.S6.Name:        &irmc.S6,
	ibmc.Record.Name:    &ibmc.Record,
	megarac.Record.Name: &megarac.Record,
	supermicro.X11.Name: &supermicro.X11,
	supermicro.X13.Name: &supermicro.X13,
	xcc.First.Name:      &xcc.First,
	xcc.Second.Name:     &xcc.Second,
	ilo.ILO4.Name:       &ilo.ILO4,
	ilo.ILO5.Name:       &ilo.ILO5,
	idrac.Eight.Name:    &idrac.Eight,
	idrac.NineFive.Name: &idrac.NineFive,
	idrac.Nine.Name:     &idrac.Nine,
	idrac.Ten.Name:      &idrac.Ten,
	ilo.ILO6.Name:       &ilo.ILO6,
	ilo.ILO7.Name:       &ilo.ILO7,
}

// model is a profile with the rack's timings, and the dialect of its BMC. Hosts that
// are alike share it.
type model struct {
	profile *machine.Profile
	record  *dialect.Record
	quirks  []quirk.Setting // quirks of the rack file
}

// modelKey identifies a model.
type modelKey struct{ profile, ipmi, quirks string }

func modelKeyOf(h rackfile.Host) modelKey { return modelKey{h.Profile, h.IPMI, h.Quirks} }

// CheckNames checks that the profiles, quirks and hosts that a rack names exist, and that BMCs
// have the cipher suites. from has profiles in addition to the built-in ones; nil is none. The
// error joins a yamlfile.Error for each that does not, by its field in a rack file, with the
// names that are closest.
func CheckNames(from fs.FS, of *rackfile.Lab) error {
	var errs []error
	for _, g := range of.Groups() {
		if _, err := fs.Stat(Beside(from, fixtures.Profiles), "profiles/"+g.Profile+".yaml"); err != nil {
			errs = append(errs, noProfile(g.Field+".profile", g.Profile, from))
		} else if g.IPMI != nil && g.IPMI.Validate() == nil {
			if _, record, err := ReadProfile(from, g.Profile); err == nil { // else starting the lab tells of the profile
				if _, err := withIPMI(record, g.IPMI); err != nil {
					field, text, _ := strings.Cut(err.Error(), ": ")
					errs = append(errs, yamlfile.Errorf(g.Field+".ipmi."+field, "%s", text))
				}
			}
		}
		for i, text := range g.Quirks {
			if _, err := quirk.Parse(text); err != nil {
				errs = append(errs, yamlfile.Errorf(fmt.Sprintf("%s.quirks[%d]", g.Field, i), "%v", err))
			}
		}
	}
	return errors.Join(append(errs, checkBMCs(of)...)...)
}

// checkBMCs returns an error for each fault that is about no host: it would never apply.
func checkBMCs(of *rackfile.Lab) (errs []error) {
	if of.Total() > rackfile.MaxHosts { // which is another mistake
		return nil
	}
	var names []string
	for i, r := range of.Faults[:min(len(of.Faults), fault.MaxRules)] {
		if _, there := of.Find(r.BMC); r.BMC == "" || there || of.Part != nil {
			continue
		}
		if names == nil {
			for _, h := range of.Each() {
				names = append(names, h.Name)
			}
		}
		matches := func(name string) bool { ok, err := path.Match(r.BMC, name); return ok || err != nil } // a wrong pattern is another mistake
		if !slices.ContainsFunc(names, matches) {
			errs = append(errs, yamlfile.Errorf(fmt.Sprintf("faults[%d].bmc", i), "%q matches no host: use one of %s%s", r.BMC, some(names), suggest.DidYouMean(r.BMC, names)))
		}
	}
	return errs
}

// some lists names, of many the first ones.
func some(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// noProfile is the error about a profile that does not exist.
func noProfile(field, name string, from fs.FS) error {
	names := profileNames(from)
	return yamlfile.Errorf(field, "%s: there is no such profile: use one of %s%s", name, strings.Join(names, ", "), suggest.DidYouMean(name, names))
}

// loadModels makes the models that a rack names.
func loadModels(from fs.FS, of *rackfile.Lab) (map[modelKey]model, error) {
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
			return nil, fmt.Errorf("%s.%w", g.Field, err)
		}
		if g.IPMI != nil {
			if m.record, err = withIPMI(m.record, g.IPMI); err != nil {
				return nil, fmt.Errorf("%s.ipmi.%w", g.Field, err)
			}
		}
		models[modelKey{g.Profile, g.IPMI.Text(), g.QuirkText()}] = m
	}
	return models, nil
}

// withIPMI returns a record with the IPMI settings of a rack.
func withIPMI(r *dialect.Record, i *rackfile.IPMI) (*dialect.Record, error) {
	changed := *r
	if len(i.Suites) > 0 {
		changed.IPMI.CipherSuites = nil
	}
	for _, n := range i.Suites {
		id := byte(n)
		if !slices.Contains(r.IPMI.CipherSuites, id) && !slices.Contains(r.IPMI.DisabledSuites, id) {
			return nil, fmt.Errorf("suites: %d: this BMC has %v and, if asked, %v", n, numbers(r.IPMI.CipherSuites), numbers(r.IPMI.DisabledSuites))
		}
		changed.IPMI.CipherSuites = append(changed.IPMI.CipherSuites, id)
	}
	changed.IPMI.AdvertisedSOLPort = uint16(i.AdvertisedPort)
	changed.BMC.Channel.KG, changed.BMC.Channel.AuthTypes = i.Key(), i.AuthTypes()
	return &changed, changed.Validate()
}

// numbers converts bytes so that they print as numbers.
func numbers(b []byte) []int {
	out := make([]int, len(b))
	for i := range b {
		out[i] = int(b[i])
	}
	return out
}

// loadProfiles reads the profiles that a rack names.
func loadProfiles(from fs.FS, of *rackfile.Lab) (map[string]model, error) {
	models := map[string]model{}
	for _, g := range of.Groups() {
		if _, ok := models[g.Profile]; ok {
			continue
		}
		p, r, err := ReadProfile(from, g.Profile)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, noProfile(g.Field+".profile", g.Profile, from)
		}
		if err != nil {
			return nil, err
		}
		overrideTimings(&p.Timings, of.Timings)
		models[g.Profile] = model{profile: p, record: r}
	}
	return models, nil
}

// ReadProfile reads profiles/NAME.yaml and what it names: the registry of BIOS
// attributes and the dialect of its BMC. A nil file system means the built-in
// profiles.
func ReadProfile(from fs.FS, name string) (*machine.Profile, *dialect.Record, error) {
	if from == nil {
		from = fixtures.Profiles
	}
	at := "profiles/" + name + ".yaml"
	b, err := fs.ReadFile(from, at)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: there is no such profile: %w", name, err)
	}
	p, err := machine.ParseProfile(at, b)
	if err != nil {
		return nil, nil, err
	}
	if p.Name != name {
		return nil, nil, yamlfile.Locate(at, b, yamlfile.Errorf("name", "%q: must be %s, the name of the file", p.Name, name))
	}
	r, err := readDialect(from, p.Dialect)
	if err != nil {
		return nil, nil, yamlfile.Locate(at, b, err)
	}
	read := func(name string) ([]byte, error) { return readRegistry(from, name) }
	if isBuiltIn(from, p.Firmware.Registry) {
		p.EquipLater(read)
		return p, r, nil
	}
	if err := p.Equip(read); err != nil {
		return nil, nil, yamlfile.Locate(at, b, err)
	}
	return p, r, nil
}

// Dialects returns the names of the built-in dialects, sorted.
func Dialects() []string { return slices.Sorted(maps.Keys(dialects)) }

// Dialect returns the built-in dialect with a name, or nil when there is none.
func Dialect(name string) *dialect.Record { return dialects[name] }

// readDialect returns a built-in dialect, or reads dialects/NAME.yaml.
func readDialect(from fs.FS, name string) (*dialect.Record, error) {
	at := "dialects/" + name + ".yaml"
	b, err := fs.ReadFile(from, at)
	built := dialects[name]
	switch {
	case built != nil && err == nil:
		return nil, fmt.Errorf("%s: there is a built-in dialect of that name: give it another", at)
	case built != nil:
		return checked(built, built.Validate())
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return nil, yamlfile.Errorf("dialect", "%q: there is no such dialect: use one of %s, or write %s%s",
			name, strings.Join(Dialects(), ", "), at, suggest.DidYouMean(name, Dialects()))
	case err != nil:
		return nil, err
	}
	f, err := file.Parse(at, b, dialects)
	if err != nil {
		return nil, err
	}
	if f.Name != name {
		return nil, yamlfile.Locate(at, b, yamlfile.Errorf("name", "%q: must be %s, the name of the file", f.Name, name))
	}
	r, err := checked(f.Record())
	return r, yamlfile.Locate(at, b, err)
}

// checked returns a record when the Redfish service can serve it.
func checked(r *dialect.Record, err error) (*dialect.Record, error) {
	if err != nil {
		return nil, err
	}
	return r, vendor.Check(r)
}

// readRegistry reads the registry of BIOS attributes that a profile names. When it
// is not beside the profiles, it is a built-in one.
func readRegistry(from fs.FS, name string) ([]byte, error) {
	file := "registries/" + name + ".yaml"
	b, err := fs.ReadFile(from, file)
	if errors.Is(err, fs.ErrNotExist) {
		b, err = fs.ReadFile(fixtures.Profiles, file)
	}
	return b, err
}

// isBuiltIn reports whether a registry is a built-in one, which is known to be
// valid.
func isBuiltIn(from fs.FS, name string) bool {
	b, err := readRegistry(from, name)
	built, missing := fs.ReadFile(fixtures.Profiles, "registries/"+name+".yaml")
	return err == nil && missing == nil && bytes.Equal(b, built)
}

// overrideTimings replaces timings of a profile with those that the rack sets.
func overrideTimings(t *machine.Timings, by rackfile.Timings) {
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

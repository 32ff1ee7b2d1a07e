// Package record derives a server model from a capture of a BMC: a profile, the
// registry of its BIOS attributes, and a dialect with the differences of the BMC
// from the built-in dialect that fits it best. The recording gives the URIs and
// the properties; the emulator gives the behavior, so the model carries out
// requests. What to read and what must not leave the server is decided by
// package capture.
package record

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/file"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
	"github.com/metalab-dev/metalab/scenarios/capture"
	"github.com/metalab-dev/metalab/scenarios/outfile"
)

// Recording is a server model in files.
type Recording struct {
	Name     string   // name of the profile, its registry and its dialect
	Profile  []byte   // profiles/NAME.yaml
	Registry []byte   // registries/NAME.yaml; nil: the BIOS has no settings
	Dialect  []byte   // dialects/NAME.yaml; nil: the profile uses the dialect Base
	Base     string   // the built-in dialect that fits best
	Notes    []string // what the model leaves out or assumes
}

// Name returns a text in the form of profile names: lower-case letters, digits
// and dashes.
func Name(text string) string {
	return strings.Trim(notName.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// Make derives a server model from a capture, which it scrubs first. An empty
// name stands for the manufacturer and the model of the server.
func Make(ctx context.Context, c *capture.Capture, name string) (*Recording, error) {
	c.Scrub()
	d := newDeriver(c)
	p, err := d.profile()
	if err != nil {
		return nil, err
	}
	if name == "" {
		name = Name(p.Manufacturer + " " + p.Model)
	}
	if name == "" || name != Name(name) {
		return nil, fmt.Errorf("name: %q: use lower-case letters, digits and dashes", name)
	}
	if rack.Dialect(name) != nil {
		name += "-recorded" // the names of built-in dialects are taken
	}
	p.Name = name
	out := &Recording{Name: name}
	if r := d.registry(p); r != nil {
		p.Firmware.Registry = name
		if out.Registry, err = yamlfile.Write(r); err != nil {
			return nil, err
		}
	}
	out.Base = d.base.Name
	dialectFile, err := d.dialect(ctx, p, out, d.base)
	if err != nil {
		return nil, err
	}
	p.Dialect = d.base.Name
	if dialectFile != nil {
		p.Dialect = name
		if out.Dialect, err = file.Format(dialectFile); err != nil {
			return nil, err
		}
	}
	if len(d.others) > 0 {
		d.note("other dialects that might fit: %s", strings.Join(d.others, ", "))
	}
	if out.Profile, err = yamlfile.Write(p); err != nil {
		return nil, err
	}
	if c.Incomplete != "" {
		d.note("the capture is incomplete: %s", c.Incomplete)
	}
	out.Notes = d.notes
	return out, out.check()
}

// check loads the recording as a lab does and returns the lab's error.
func (r *Recording) check() error {
	_, _, err := rack.ReadProfile(r.Files(), r.Name)
	if err != nil {
		return fmt.Errorf("the derived model is not valid: %w", err)
	}
	return nil
}

// Save writes the recording to a folder in the layout that labctl up --profile reads: all of it
// or nothing. Files that are there are replaced only by force: a user may have edited them.
func (r *Recording) Save(dir string, force bool) error {
	if err := (outfile.Tree{Dir: dir, Files: r.Files(), Force: force, Fix: taken}).Write(0o755, 0o644); err != nil {
		return err
	}
	return nil
}

const taken = "give the recording another --name, or replace it with --force"

// CheckFree returns an error if Save could not write a recording of a name to a folder, or of
// any name when it is empty.
func CheckFree(dir, name string, force bool) error {
	files := rack.Files{}
	if name != "" {
		for _, kind := range []string{"profiles", "registries", "dialects"} {
			files[kind+"/"+name+".yaml"] = nil
		}
	}
	if err := (outfile.Tree{Dir: dir, Files: files, Force: force, Fix: taken}).Check(); err != nil {
		return err
	}
	return nil
}

// Files returns the recording in the form in which a lab reads profiles.
func (r *Recording) Files() rack.Files {
	out := rack.Files{}
	for kind, b := range map[string][]byte{"profiles": r.Profile, "registries": r.Registry, "dialects": r.Dialect} {
		if b != nil {
			out[kind+"/"+r.Name+".yaml"] = b
		}
	}
	return out
}

// deriver derives a server model from a capture.
type deriver struct {
	capture                  *capture.Capture
	base                     *dialect.Record // the built-in dialect that fits best
	others                   []string        // names of those that fit equally well
	system, chassis, manager string          // URIs
	// locations holds the URI on the BMC by standard URI, in which {system},
	// {chassis} and {manager} stand for the IDs.
	locations map[string]string
	notes     []string
	// IDs of the model's parts, by the URIs of the resources they were made from.
	nics   map[string]string
	drives map[string]string
	cards  map[string]string
}

func newDeriver(c *capture.Capture) *deriver {
	d := &deriver{capture: c, locations: map[string]string{}, nics: map[string]string{}, drives: map[string]string{}, cards: map[string]string{}}
	d.base, d.others = best(c)
	at := c.Members(d.link(capture.Root, "Systems"))
	if len(at) == 0 {
		at = c.OfType("ComputerSystem")
	}
	if len(at) > 0 {
		d.system = at[0]
		if len(at) > 1 {
			d.note("the BMC has %d systems: %s was recorded", len(at), d.system)
		}
	}
	pick := func(kind, link string) string {
		links, _ := c.Resources[d.system]["Links"].(map[string]any)
		for _, l := range list(links[link]) {
			if at := strings.TrimRight(resource(l.(map[string]any)).str("@odata.id"), "/"); c.Resources[at] != nil {
				return at
			}
		}
		if at := c.OfType(kind); len(at) > 0 {
			return at[0]
		}
		return ""
	}
	d.chassis, d.manager = pick("Chassis", "Chassis"), pick("Manager", "ManagedBy")
	return d
}

// note adds a note for the user.
func (d *deriver) note(text string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(text, args...))
}

// locate records the BMC's URI of a resource by its standard URI. The first
// one counts.
func (d *deriver) locate(tree, at string) {
	if at != "" && d.locations[tree] == "" {
		d.locations[tree] = at
	}
}

// profile derives the profile.
func (d *deriver) profile() (*machine.Profile, error) {
	s := resource(d.capture.Resources[d.system])
	if s == nil {
		if d.capture.Incomplete != "" {
			return nil, fmt.Errorf("no system was read: %s: raise the limit", d.capture.Incomplete)
		}
		return nil, errors.New("the BMC shows no system: is the account allowed to read it?")
	}
	d.locateLinkedResources()
	m := resource(d.capture.Resources[d.manager])
	p := &machine.Profile{
		Manufacturer: cmp.Or(s.str("Manufacturer"), resource(d.capture.Resources[d.chassis]).str("Manufacturer"), resource(d.capture.Resources[capture.Root]).str("Vendor"), "Unknown"),
		Model:        cmp.Or(s.str("Model"), resource(d.capture.Resources[d.chassis]).str("Model"), "Unknown"),
		SKU:          s.str("SKU"),
		PartNumber:   cmp.Or(s.str("PartNumber"), resource(d.capture.Resources[d.chassis]).str("PartNumber")),
		BMCFirmware:  cmp.Or(m.str("FirmwareVersion"), "0"),
		OS:           machine.OSBehavior{PanicOnNMI: true, RestartOnCrash: true, ForcedAfterTimeout: []machine.ResetKind{machine.GracefulRestart}},
		Timings:      defaultTimings,
	}
	d.processors(p, s)
	d.memory(p, s)
	d.network(p)
	d.storage(p)
	d.pcie(p)
	d.thermal(p)
	d.tpm(p)
	d.secureBoot(p)
	d.firmware(p, s)
	d.bootOrder(p, s)
	return p, nil
}

// best returns the built-in dialect that fits a BMC best, and the names of those
// that fit equally well.
func best(c *capture.Capture) (*dialect.Record, []string) {
	root := resource(c.Resources[capture.Root])
	score := func(r *dialect.Record) int {
		n := 0
		same := func(worth int, got, want string) {
			if want != "" && strings.EqualFold(got, want) {
				n += worth
			}
		}
		manager := resource(c.Resources[first(c, "Manager")])
		same(50, root.str("Vendor"), r.Vendor)
		same(50, root.str("Product"), r.Product)
		same(30, manager.str("Model"), r.ManagerModel)
		same(10, root.str("RedfishVersion"), r.RedfishVersion)
		same(10, last(first(c, "ComputerSystem")), r.SystemID)
		same(10, last(first(c, "Manager")), r.ManagerID)
		same(10, last(first(c, "Chassis")), r.ChassisID)
		if oem, ok := root["Oem"].(map[string]any); ok && r.Vendor != "" {
			for name := range oem {
				if strings.HasPrefix(strings.ToLower(r.Vendor), strings.ToLower(name)) {
					n += 20
				}
			}
		}
		for _, m := range r.Presentation.URIMappings {
			for at := range c.Resources {
				if uriPattern(expandIDs(m.To, r)).matches(at) {
					n++
					break
				}
			}
		}
		return n
	}
	var found *dialect.Record
	most := -1
	var others []string
	for _, name := range rack.Dialects() {
		r := rack.Dialect(name)
		switch n := score(r); {
		case n > most:
			most, found, others = n, r, nil
		case n == most:
			others = append(others, name)
		}
	}
	if most == 0 {
		return rack.Dialect("generic"), nil
	}
	return found, others
}

// first returns the first URI of a resource type; "" if there is none.
func first(c *capture.Capture, kind string) string {
	if at := c.OfType(kind); len(at) > 0 {
		return at[0]
	}
	return ""
}

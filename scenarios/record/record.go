// Package record makes a server model of what a BMC showed: a profile, the
// registry of its BIOS attributes, and a dialect that says how the BMC differs
// from the built-in one that fits it best. The model is alive: what was
// recorded is where things are and what they are like; what they do is the
// emulator's. It owns that translation; what to read, and what must not leave
// the server, is capture's.
package record

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/file"
	"github.com/metalab-dev/metalab/emulator/lab"
	"github.com/metalab-dev/metalab/emulator/machine"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
	"github.com/metalab-dev/metalab/scenarios/capture"
)

// Recording is a server model in files.
type Recording struct {
	Name     string // of the profile, and of what belongs to it
	Profile  []byte // profiles/NAME.yaml
	Registry []byte // registries/NAME.yaml; nil: the BIOS has no settings
	Dialect  []byte // dialects/NAME.yaml; nil: it is as a built-in one
	Base     string // the built-in dialect that fits best
	Notes    []string
}

// Name returns a text in the form of profile names: small letters, digits and
// dashes.
func Name(text string) string {
	return strings.Trim(notName.ReplaceAllString(strings.ToLower(text), "-"), "-")
}

var notName = regexp.MustCompile(`[^a-z0-9]+`)

// Make makes a server model of a capture, which it scrubs. Without a name the model
// has that of the server's model.
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
		return nil, fmt.Errorf("record: name: %q: use small letters, digits and dashes", name)
	}
	if lab.Dialect(name) != nil {
		name += "-recorded" // a dialect may not be called as a built-in one
	}
	p.Name = name
	out := &Recording{Name: name}
	if r := d.registry(p); r != nil {
		p.Firmware.Registry = name
		if out.Registry, err = yamlfile.Write(r); err != nil {
			return nil, err
		}
	}
	base, others := best(c)
	out.Base = base.Name
	says, err := d.dialect(ctx, p, out, base)
	if err != nil {
		return nil, err
	}
	p.Dialect = base.Name
	if says != nil {
		p.Dialect = name
		if out.Dialect, err = file.Format(says); err != nil {
			return nil, err
		}
	}
	if len(others) > 0 {
		d.note("other dialects that might fit: %s", strings.Join(others, ", "))
	}
	if out.Profile, err = yamlfile.Write(p); err != nil {
		return nil, err
	}
	if c.Cut != "" {
		d.note("not all was read: %s", c.Cut)
	}
	out.Notes = d.notes
	return out, out.check()
}

// check loads the recording as a lab does, and returns the mistakes.
func (r *Recording) check() error {
	_, _, err := lab.ReadProfile(r.Files(), r.Name)
	if err != nil {
		return fmt.Errorf("record: what was made of the BMC is no model: %w", err)
	}
	return nil
}

// Save writes the recording to a folder, as labctl up --profile takes it.
func (r *Recording) Save(dir string) error {
	for name, b := range r.Files() {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return fmt.Errorf("record: %w", err)
		}
		if err := os.WriteFile(to, b, 0o644); err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	return nil
}

// Free returns an error when the folder has one of the files already.
func (r *Recording) Free(dir string) error {
	for name := range r.Files() {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("record: %s is there already: give the recording another --name", filepath.Join(dir, name))
		}
	}
	return nil
}

// Files returns the recording in the form in which a lab reads profiles.
func (r *Recording) Files() lab.Files {
	out := lab.Files{}
	for kind, b := range map[string][]byte{"profiles": r.Profile, "registries": r.Registry, "dialects": r.Dialect} {
		if b != nil {
			out[kind+"/"+r.Name+".yaml"] = b
		}
	}
	return out
}

// deriver makes a server model of a capture.
type deriver struct {
	c                        *capture.Capture
	system, chassis, manager string // addresses
	// places are where the tree's resources were found, by their addresses in
	// the tree, with {system}, {chassis} and {manager} in them.
	places map[string]string
	notes  []string
	// What the parts of the model were made from.
	nics   map[string]string // ID by address
	drives map[string]string
	cards  map[string]string
}

func newDeriver(c *capture.Capture) *deriver {
	d := &deriver{c: c, places: map[string]string{}, nics: map[string]string{}, drives: map[string]string{}, cards: map[string]string{}}
	at := c.Members(d.link(capture.Root, "Systems"))
	if len(at) == 0 {
		at = c.Of("ComputerSystem")
	}
	if len(at) > 0 {
		d.system = at[0]
		if len(at) > 1 {
			d.note("the BMC has %d systems: %s was recorded", len(at), d.system)
		}
	}
	pick := func(kind, link string) string {
		links, _ := c.Pages[d.system]["Links"].(map[string]any)
		for _, l := range list(links[link]) {
			if at := strings.TrimRight(page(l.(map[string]any)).str("@odata.id"), "/"); c.Pages[at] != nil {
				return at
			}
		}
		if at := c.Of(kind); len(at) > 0 {
			return at[0]
		}
		return ""
	}
	d.chassis, d.manager = pick("Chassis", "Chassis"), pick("Manager", "ManagedBy")
	return d
}

func (d *deriver) note(text string, args ...any) {
	d.notes = append(d.notes, fmt.Sprintf(text, args...))
}

// place notes where something of the tree is.
func (d *deriver) place(tree, at string) {
	if at != "" && d.places[tree] == "" {
		d.places[tree] = at
	}
}

// profile makes the profile.
func (d *deriver) profile() (*machine.Profile, error) {
	s := page(d.c.Pages[d.system])
	if s == nil {
		return nil, errors.New("record: the BMC shows no system: is the account allowed to read it?")
	}
	d.landmarks()
	m := page(d.c.Pages[d.manager])
	p := &machine.Profile{
		Manufacturer: or(s.str("Manufacturer"), page(d.c.Pages[d.chassis]).str("Manufacturer"), page(d.c.Pages[capture.Root]).str("Vendor"), "Unknown"),
		Model:        or(s.str("Model"), page(d.c.Pages[d.chassis]).str("Model"), "Unknown"),
		SKU:          s.str("SKU"),
		PartNumber:   or(s.str("PartNumber"), page(d.c.Pages[d.chassis]).str("PartNumber")),
		BMCFirmware:  or(m.str("FirmwareVersion"), "0"),
		OS:           machine.OSBehavior{PanicOnNMI: true, RestartOnCrash: true, ForcedAfterTimeout: []machine.ResetKind{machine.GracefulRestart}},
		Timings:      timings,
	}
	d.processors(p, s)
	d.memory(p, s)
	d.network(p)
	d.storage(p)
	d.pcie(p)
	d.thermal(p)
	d.trusted(p)
	d.secureBoot(p)
	d.firmware(p, s)
	d.bootOrder(p, s)
	return p, nil
}

// best is the built-in dialect that fits a BMC best, and those that fit too.
func best(c *capture.Capture) (*dialect.Record, []string) {
	root := page(c.Pages[capture.Root])
	score := func(r *dialect.Record) int {
		n := 0
		same := func(worth int, got, want string) {
			if want != "" && strings.EqualFold(got, want) {
				n += worth
			}
		}
		manager := page(c.Pages[first(c, "Manager")])
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
			for at := range c.Pages {
				if pattern(fill(m.To, r)).holds(at) {
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
	for _, name := range lab.Dialects() {
		r := lab.Dialect(name)
		switch n := score(r); {
		case n > most:
			most, found, others = n, r, nil
		case n == most:
			others = append(others, name)
		}
	}
	if most == 0 {
		return lab.Dialect("generic"), nil
	}
	return found, others
}

func first(c *capture.Capture, kind string) string {
	if at := c.Of(kind); len(at) > 0 {
		return at[0]
	}
	return ""
}

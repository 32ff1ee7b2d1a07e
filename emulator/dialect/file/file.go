// Package file reads and writes dialect files: the description of a vendor's BMC
// in YAML, with which a user emulates a BMC without writing Go. A file names a
// built-in dialect as its base and has the fields that differ from it. The
// package knows no vendor and no service.
//
//	name: acme
//	base: generic
//	quirks: [power-settle-409 for=30s]     # labctl quirk ls
//	vendor: Acme
//	product: Acme BMC 3
//	systemID: Self                          # last segments of the URIs
//	resetTypes: [On, ForceOff, GracefulShutdown, ForceRestart]
//	bootTargets: [None, Pxe, Cd, Hdd]
//	bmc:
//	  slots: [{id: CD1, name: Virtual Media 1, types: [CD]}]
//	  sessions: 8
//	  sessionTimeout: 10m
//	protocol:
//	  queries: {select: true}
//	  etags: {format: weak, ifMatchRequired: [ComputerSystem]}
//	media: {insertByPatch: true}
//	presentation:
//	  uriMappings:
//	  - {from: "/redfish/v1/Systems/{system}/VirtualMedia", to: "/redfish/v1/Managers/{manager}/VirtualMedia"}
//	  transforms:
//	  - {resourceType: ComputerSystem, remove: [HostName], set: [{path: Oem/Acme/Mode, value: Normal}]}
//	  rejectRules:
//	  - resourceType: VirtualMedia
//	    method: VirtualMedia.InsertMedia
//	    sendsAny: [WriteProtected]
//	    message: {registry: Base, version: 1.8.1, key: ActionParameterUnknown, text: "%1 is not known."}
//	  hidden: ["/redfish/v1/TelemetryService"]
//
// The keys are the fields of dialect.Record with a small first letter
// (yamlfile.Key); the comments there say what they mean. A field that the file
// does not have is the base's. A list replaces the base's, except for those in
// presentation and oem, which are added to the base's: uriMappings, rejectRules,
// inputAliases and all lists of oem before them, because the first that fits
// counts, transforms and hidden behind them.
package file

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
	"github.com/metalab-dev/metalab/emulator/suggest"
	"github.com/metalab-dev/metalab/emulator/yamlfile"
)

// File is a dialect that was read from a file, or is to be written to one.
type File struct {
	Name   string
	Base   *dialect.Record // that the file begins with
	Quirks []quirk.Setting
	// WithoutQuirks is the base with the fields of the file. Record adds Quirks.
	WithoutQuirks *dialect.Record
}

var dialectName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// Parse reads a file. bases has the records that a file may begin with, by their
// names. The error joins a yamlfile.Error for each mistake.
func Parse(name string, b []byte, bases map[string]*dialect.Record) (*File, error) {
	in, err := yamlfile.Read(name, b, "name: NAME")
	if err != nil {
		return nil, err
	}
	in.Renamed(renamedKeys)
	f := &File{}
	var base string
	var quirks []string
	if err := errors.Join(in.Take("name", &f.Name), in.Take("base", &base), in.Take("quirks", &quirks)); err != nil {
		return nil, err
	}
	if !dialectName.MatchString(f.Name) {
		return nil, in.Locate(yamlfile.Errorf("name", "%q: must begin with a letter or digit, and have up to 64 of a-z, 0-9, . _ and -", f.Name))
	}
	if f.Base = bases[base]; f.Base == nil {
		names := slices.Sorted(maps.Keys(bases))
		return nil, in.Locate(yamlfile.Errorf("base", "%q: there is no such dialect: use one of %s%s", base, strings.Join(names, ", "), suggest.DidYouMean(base, names)))
	}
	var errs []error
	for i, text := range quirks {
		s, err := quirk.Parse(text)
		if err != nil {
			errs = append(errs, yamlfile.Errorf(fmt.Sprintf("quirks[%d]", i), "%v", err))
		}
		f.Quirks = append(f.Quirks, s)
	}
	r := *f.Base
	r.Name = f.Name
	clearAdded(&r)
	if err := errors.Join(in.Decode(&r), in.Locate(errors.Join(errs...))); err != nil {
		return nil, err
	}
	// Before the base's lists come in, so that indices are those of the file.
	if err := r.Validate(); err != nil {
		return nil, in.Locate(err)
	}
	addBase(&r, f.Base)
	f.WithoutQuirks = &r
	if _, err = f.Record(); err != nil {
		return nil, in.Locate(err)
	}
	return f, nil
}

// Record returns the dialect with its quirks.
func (f *File) Record() (*dialect.Record, error) { return quirk.Apply(f.WithoutQuirks, f.Quirks) }

// clearAdded empties the lists of a record that files add to.
func clearAdded(r *dialect.Record) {
	f, o := &r.Presentation, &r.OEM
	f.URIMappings, f.RejectRules, f.InputAliases, f.Transforms, f.Hidden = nil, nil, nil, nil, nil
	o.Resources, o.Actions, o.WritableProperties, o.URIAliases = nil, nil, nil, nil
}

// addBase adds the base's lists to those of a file: before them or behind them, as
// the package comment says.
func addBase(r, base *dialect.Record) {
	f, b := &r.Presentation, &base.Presentation
	f.URIMappings, f.RejectRules, f.InputAliases = slices.Concat(f.URIMappings, b.URIMappings), slices.Concat(f.RejectRules, b.RejectRules), slices.Concat(f.InputAliases, b.InputAliases)
	f.Transforms, f.Hidden = slices.Concat(b.Transforms, f.Transforms), slices.Concat(b.Hidden, f.Hidden)
	o, c := &r.OEM, &base.OEM
	o.Resources, o.Actions = slices.Concat(o.Resources, c.Resources), slices.Concat(o.Actions, c.Actions)
	o.WritableProperties, o.URIAliases = slices.Concat(o.WritableProperties, c.WritableProperties), slices.Concat(o.URIAliases, c.URIAliases)
}

// withoutBase is the inverse of addBase: a record with the file's lists alone.
func withoutBase(all, base *dialect.Record) *dialect.Record {
	r := *all
	f, b := &r.Presentation, &base.Presentation
	f.URIMappings, f.RejectRules = f.URIMappings[:len(f.URIMappings)-len(b.URIMappings)], f.RejectRules[:len(f.RejectRules)-len(b.RejectRules)]
	f.InputAliases = f.InputAliases[:len(f.InputAliases)-len(b.InputAliases)]
	f.Transforms, f.Hidden = f.Transforms[len(b.Transforms):], f.Hidden[len(b.Hidden):]
	o, c := &r.OEM, &base.OEM
	o.Resources, o.Actions = o.Resources[:len(o.Resources)-len(c.Resources)], o.Actions[:len(o.Actions)-len(c.Actions)]
	o.WritableProperties, o.URIAliases = o.WritableProperties[:len(o.WritableProperties)-len(c.WritableProperties)], o.URIAliases[:len(o.URIAliases)-len(c.URIAliases)]
	return &r
}

// Format writes a file. Parse reads it as the same File.
func Format(f *File) ([]byte, error) {
	base := *f.Base
	clearAdded(&base)
	base.Name = f.Name
	var w yamlfile.Writer
	w.Put("name", f.Name)
	w.Put("base", f.Base.Name)
	if len(f.Quirks) > 0 {
		var quirks []string
		for _, q := range f.Quirks {
			quirks = append(quirks, q.String())
		}
		w.Put("quirks", quirks)
	}
	w.PutDifferences(withoutBase(f.WithoutQuirks, f.Base), &base)
	b, err := w.Bytes()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return b, nil
}

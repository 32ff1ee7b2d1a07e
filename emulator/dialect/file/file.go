// Package file is a dialect as a file: a vendor's BMC in YAML, so that whoever
// has one needs no Go to emulate it. A file names the record that it begins
// with and says what is otherwise; it owns that form, both ways, and knows no
// vendor and no service.
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
// The fields are those of dialect.Record, with a small first letter; what they
// mean is said there. What a file does not name is as the base has it. A list
// stands in place of the base's, but for those in presentation and oem, which are added
// to the base's: uriMappings, rejectRules, inputAliases and all lists of oem before
// them, since the first that fits counts, transforms and hidden behind them.
package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/metalab-dev/metalab/emulator/dialect"
	"github.com/metalab-dev/metalab/emulator/dialect/quirk"
)

// File is a dialect that came from a file, or goes to one.
type File struct {
	Name   string
	Base   *dialect.Record // that it begins with
	Quirks []quirk.Setting
	// Says is the base with what the file says of it, and without its quirks.
	Says *dialect.Record
}

// maxBytes and maxNodes bound what is read.
const (
	maxBytes = 8 << 20
	maxNodes = 200_000
)

var dialectName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// Parse reads a file. base finds the record of a name; nil where there is none.
// Errors name the line and the field, and what it must be.
func Parse(name string, b []byte, base func(string) *dialect.Record) (*File, error) {
	if len(b) > maxBytes {
		return nil, fmt.Errorf("dialect: %s: is %d bytes: must be %d at most", name, len(b), maxBytes)
	}
	var doc yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&doc); err != nil {
		return nil, fmt.Errorf("dialect: %s: %w", name, err)
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("dialect: %s: holds more than one document: a dialect is one", name)
	}
	f := &File{}
	d := &decoder{file: name}
	top := d.mapping(&doc, "")
	text := func(key string) string {
		n := top.take(key)
		if n == nil {
			return ""
		}
		return d.text(n, key)
	}
	f.Name = text("name")
	if !dialectName.MatchString(f.Name) {
		d.wrong(&doc, "name", "%q: must be of a-z, 0-9, dots and dashes", f.Name)
	}
	from := text("base")
	if f.Base = base(from); f.Base == nil {
		d.wrong(&doc, "base", "%q: there is no such dialect", from)
		return nil, d.err()
	}
	if n := top.take("quirks"); n != nil {
		for i, q := range d.list(n, "quirks") {
			at := fmt.Sprintf("quirks[%d]", i)
			s, err := quirk.Parse(d.text(q, at))
			if err != nil {
				d.wrong(q, at, "%v", err)
			}
			f.Quirks = append(f.Quirks, s)
		}
	}
	says := *f.Base
	says.Name = f.Name
	bareOf(&says)
	d.fields(top, valueOf(&says), "")
	if err := d.err(); err != nil {
		return nil, err
	}
	onTop(&says, f.Base)
	f.Says = &says
	if err := says.Validate(); err != nil {
		return nil, fmt.Errorf("dialect: %s: %w", name, err)
	}
	_, err := f.Record()
	return f, err
}

// Record is the dialect, with its quirks.
func (f *File) Record() (*dialect.Record, error) {
	r, err := quirk.Apply(f.Says, f.Quirks)
	if err != nil {
		return nil, fmt.Errorf("dialect: %s: %w", f.Name, err)
	}
	return r, nil
}

// bareOf takes what files add to out of a copy of a record.
func bareOf(r *dialect.Record) {
	f, o := &r.Presentation, &r.OEM
	f.URIMappings, f.RejectRules, f.InputAliases, f.Transforms, f.Hidden = nil, nil, nil, nil, nil
	o.Resources, o.Actions, o.WritableProperties, o.URIAliases = nil, nil, nil, nil
}

// onTop puts what a file has on top of what the base has.
func onTop(r, base *dialect.Record) {
	f, b := &r.Presentation, &base.Presentation
	f.URIMappings, f.RejectRules, f.InputAliases = slices.Concat(f.URIMappings, b.URIMappings), slices.Concat(f.RejectRules, b.RejectRules), slices.Concat(f.InputAliases, b.InputAliases)
	f.Transforms, f.Hidden = slices.Concat(b.Transforms, f.Transforms), slices.Concat(b.Hidden, f.Hidden)
	o, c := &r.OEM, &base.OEM
	o.Resources, o.Actions = slices.Concat(o.Resources, c.Resources), slices.Concat(o.Actions, c.Actions)
	o.WritableProperties, o.URIAliases = slices.Concat(o.WritableProperties, c.WritableProperties), slices.Concat(o.URIAliases, c.URIAliases)
}

// added is what of a record came on top of the base.
func added(r, base *dialect.Record) *dialect.Record {
	own := *r
	f, b := &own.Presentation, &base.Presentation
	f.URIMappings, f.RejectRules = f.URIMappings[:len(f.URIMappings)-len(b.URIMappings)], f.RejectRules[:len(f.RejectRules)-len(b.RejectRules)]
	f.InputAliases = f.InputAliases[:len(f.InputAliases)-len(b.InputAliases)]
	f.Transforms, f.Hidden = f.Transforms[len(b.Transforms):], f.Hidden[len(b.Hidden):]
	o, c := &own.OEM, &base.OEM
	o.Resources, o.Actions = o.Resources[:len(o.Resources)-len(c.Resources)], o.Actions[:len(o.Actions)-len(c.Actions)]
	o.WritableProperties, o.URIAliases = o.WritableProperties[:len(o.WritableProperties)-len(c.WritableProperties)], o.URIAliases[:len(o.URIAliases)-len(c.URIAliases)]
	return &own
}

// Format writes a file, which Parse reads as the same.
func Format(f *File) ([]byte, error) {
	base := *f.Base
	bareOf(&base)
	base.Name = f.Name
	var e encoder
	top := &yaml.Node{Kind: yaml.MappingNode}
	put(top, "name", scalar(f.Name))
	put(top, "base", scalar(f.Base.Name))
	if len(f.Quirks) > 0 {
		list := &yaml.Node{Kind: yaml.SequenceNode}
		for _, q := range f.Quirks {
			list.Content = append(list.Content, scalar(q.String()))
		}
		put(top, "quirks", list)
	}
	e.differences(top, valueOf(added(f.Says, f.Base)), valueOf(&base))
	b, err := written(top)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, f.Name)
	}
	return b, nil
}

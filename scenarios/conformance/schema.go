package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Folders of DMTF's archive.
const (
	schemaFolder   = "data/json-schema-latest"
	profileFolder  = "data/profiles"
	registryFolder = "data/registries"
)

// maxArchiveFile bounds a file of the archive, in bytes.
const maxArchiveFile = 16 << 20

func readArchive(archive fs.FS, name string) ([]byte, error) {
	f, err := archive.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxArchiveFile+1))
	if err == nil && len(b) > maxArchiveFile {
		err = fmt.Errorf("%s has more than %d MiB", name, maxArchiveFile>>20)
	}
	return b, err
}

// dmtfSchemas loads schemas of redfish.dmtf.org from the archive.
type dmtfSchemas struct {
	archive fs.FS
	files   map[string]bool
	// absent are definitions of the versions that the archive lacks; anything is valid
	// by them.
	absent map[string]map[string]any
}

// Load implements jsonschema.URLLoader.
func (d *dmtfSchemas) Load(address string) (any, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host != "redfish.dmtf.org" {
		return nil, fmt.Errorf("schema %s is not DMTF's", address)
	}
	name := path.Base(u.Path)
	if !d.files[name] {
		return map[string]any{"definitions": d.absent[name]}, nil
	}
	b, err := readArchive(d.archive, schemaFolder+"/"+name)
	if err != nil {
		return nil, err
	}
	schema, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	d.narrow(schema, name == "LogEntry.json")
	return schema, nil
}

// narrow removes the alternatives that make every message unreadable: a resource in
// the place of a link, which only the entries of logs have, and the versions of a
// type that the archive lacks. Where only those are left, everything is valid.
func (d *dmtfSchemas) narrow(schema any, complete bool) {
	switch x := schema.(type) {
	case []any:
		for _, y := range x {
			d.narrow(y, complete)
		}
	case map[string]any:
		if to, _ := x["$ref"].(string); to != "" {
			d.note(to)
		}
		if ways, ok := x["anyOf"].([]any); ok {
			var links, known []any
			for _, w := range ways {
				o, _ := w.(map[string]any)
				to, _ := o["$ref"].(string)
				file, _, _ := strings.Cut(to, "#")
				switch {
				case strings.HasSuffix(to, "#/definitions/idRef"):
					links = append(links, w)
				case file == "" || d.files[path.Base(file)]:
					known = append(known, w)
				}
			}
			switch {
			case len(links) > 0 && !complete && len(known) == 0:
				x["anyOf"] = links
			case len(links)+len(known) > 0:
				x["anyOf"] = append(known, links...)
			}
		}
		for _, y := range x {
			d.narrow(y, complete)
		}
	}
}

func (d *dmtfSchemas) note(to string) {
	file, definition, ok := strings.Cut(to, "#/definitions/")
	name := path.Base(file)
	if !ok || file == "" || d.files[name] {
		return
	}
	if d.absent[name] == nil {
		d.absent[name] = map[string]any{}
	}
	d.absent[name][definition] = true
}

// provisioned are the types of resources that provisioning reads.
var provisioned = []string{
	"ServiceRoot", "ComputerSystemCollection", "ComputerSystem", "Bios", "SecureBoot", "EthernetInterfaceCollection", "EthernetInterface", "ProcessorCollection", "Processor",
	"MemoryCollection", "Memory", "StorageCollection", "Storage", "StorageControllerCollection", "StorageController", "Drive", "VolumeCollection", "Volume",
	"VirtualMediaCollection", "VirtualMedia", "ManagerCollection", "Manager", "ChassisCollection", "Chassis", "UpdateService", "SoftwareInventoryCollection", "SoftwareInventory",
	"TaskService", "SessionService", "BootOptionCollection", "BootOption", "ActionInfo",
}

// schemasHold validates the resources that provisioning reads by the newest schema
// of their type. Embedded vendor objects are the vendor's.
func schemasHold(ctx context.Context, r *Run) Outcome {
	archive := r.Config().Schemas
	loader := &dmtfSchemas{archive: archive, files: map[string]bool{}, absent: map[string]map[string]any{}}
	names, err := fs.Glob(archive, schemaFolder+"/*.json")
	if err != nil || len(names) == 0 {
		return Judge(errors.Join(err, fmt.Errorf("the archive of %s has no files in %s", NeedsSchemas, schemaFolder)))
	}
	for _, n := range names {
		loader.files[path.Base(n)] = true
	}
	documents, err := r.crawl(ctx)
	if err != nil {
		return Judge(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(loader)
	compiler.DefaultDraft(jsonschema.Draft7)
	schemas := map[string]*jsonschema.Schema{}
	var wrong []string
	checked := 0
	for _, d := range documents {
		kind := d.Type()
		if !slices.Contains(provisioned, kind) || !loader.files[kind+".json"] {
			continue
		}
		s := schemas[kind]
		if s == nil {
			if s, err = compiler.Compile("http://redfish.dmtf.org/schemas/v1/" + kind + ".json"); err != nil {
				return Judge(fmt.Errorf("schema of %s: %w", kind, err))
			}
			schemas[kind] = s
		}
		checked++
		if err := s.Validate(plain(d.Body)); err != nil {
			wrong = append(wrong, d.URI+": "+schemaProblem(err))
		}
	}
	if len(wrong) > 0 {
		return Failed("%d of %d resources are not valid by their schemas: %s", len(wrong), checked, strings.Join(wrong[:min(len(wrong), maxShown)], "; ")).With("resources", "%d", checked)
	}
	return Passed("").With("resources", "%d", checked)
}

// plain decodes a value again with the numbers that the validator takes.
func plain(v any) any {
	b, err := json.Marshal(v)
	if err != nil {
		return v
	}
	out, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		return v
	}
	return out
}

// schemaProblem returns the deepest cause of a validation error, in one line.
func schemaProblem(err error) string {
	e := new(jsonschema.ValidationError)
	if !errors.As(err, &e) {
		return err.Error()
	}
	for len(e.Causes) > 0 {
		deepest := e.Causes[0]
		for _, c := range e.Causes {
			if len(c.InstanceLocation) > len(deepest.InstanceLocation) {
				deepest = c
			}
		}
		e = deepest
	}
	text := e.Error()
	if _, after, found := strings.Cut(text, "\n"); found {
		text = after
	}
	return strings.Join(strings.Fields(text), " ")
}

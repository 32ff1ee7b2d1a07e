package resource

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// schemaFiles are the DMTF files that the user provides: JSON schemas and CSDL
// of DSP8010, registries of DSP8011. They lie in the folders of DMTF's archives
// or in others of the same names.
type schemaFiles struct {
	files fs.FS
	paths map[string]string // by base name
}

// maxSchemaFile is the greatest size of a file, in bytes.
const maxSchemaFile = 8 << 20 // bytes

var (
	schemaName   = regexp.MustCompile(`^[A-Za-z0-9-]+(\.v\d+_\d+_\d+)?\.json$`)
	registryName = regexp.MustCompile(`^[A-Za-z]+\.\d+\.\d+\.\d+\.json$|^Redfish_\d+\.\d+\.\d+_PrivilegeRegistry\.json$`)
	csdlName     = regexp.MustCompile(`^[A-Za-z0-9]+(_v\d+)?\.xml$`)
)

// openSchemaFiles finds the DMTF files in a file system. It returns an error if
// there are no JSON schemas.
func openSchemaFiles(files fs.FS) (*schemaFiles, error) {
	l := &schemaFiles{files: files, paths: map[string]string{}}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		base, folder := path.Base(name), path.Base(path.Dir(name))
		switch {
		case strings.HasPrefix(folder, "json-schema") && schemaName.MatchString(base),
			strings.HasPrefix(folder, "csdl") && csdlName.MatchString(base),
			!strings.HasPrefix(folder, "json-schema") && registryName.MatchString(base):
			l.paths[base] = name
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("redfish: Config.Schemas: %w", err)
	case !slices.ContainsFunc(l.Names(), schemaName.MatchString):
		return nil, errors.New("redfish: Config.Schemas: holds no folder json-schema with schemas: use DMTF's DSP8010 archive")
	}
	return l, nil
}

// Names returns the names of all files, sorted.
func (l *schemaFiles) Names() []string {
	if l == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(l.paths))
}

// Has reports whether a file exists.
func (l *schemaFiles) Has(name string) bool {
	if l == nil {
		return false
	}
	_, ok := l.paths[name]
	return ok
}

// read returns the content of a file. It fails if the file is larger than
// maxSchemaFile.
func (l *schemaFiles) read(name string) ([]byte, error) {
	f, err := l.files.Open(l.paths[name])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSchemaFile+1))
	if err == nil && len(b) > maxSchemaFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxSchemaFile)
	}
	return b, err
}

// SchemaStore is the URI below which the service serves the files.
const SchemaStore = "/redfish/v1/SchemaStore/en/"

// schemaRows returns the rows of the JsonSchemas collection, which names the
// location of each schema (DSP0266, "Schema file location").
func schemaRows() []Row {
	return []Row{
		{URI: "/redfish/v1/JsonSchemas", Schema: "JsonSchemaFileCollection", collectionName: "JSON Schemas", memberVariable: "schema"},
		{URI: "/redfish/v1/JsonSchemas/{schema}", Schema: "JsonSchemaFile.v1_1_5", Read: jsonSchemaFile},
		{URI: SchemaStore + "{file}", Privileges: managerPrivileges, Link: "-", Raw: schemaFile},
	}
}

func jsonSchemaFile(v View) Object {
	schema := v.IDs["schema"]
	at := Object{"Language": "en", "PublicationUri": JSONSchema(schema)}
	if name := schema + ".json"; v.Tree.Library.Has(name) {
		at["Uri"] = SchemaStore + name
	}
	return Object{
		"Name": TypeName(schema) + " Schema File", "Schema": OdataType(schema), "Languages": []string{"en"}, "Location": []Object{at},
	}
}

// schemaFile returns a schema file unchanged, or the generated CSDL of an OEM
// type.
func schemaFile(v View) (MediaType, []byte) {
	name := v.IDs["file"]
	kind := JSON
	if path.Ext(name) == ".xml" {
		kind = XML
	}
	for _, t := range v.Dialect.Protocol.OEMTypes {
		if oemSchemaFile(t) == name {
			return XML, CSDL(v.Dialect, t)
		}
	}
	b, err := v.Tree.Library.read(name)
	if err != nil { // it existed when the service started
		v.Tree.log.Warn("schema not read", "file", name, "err", err)
	}
	return kind, b
}

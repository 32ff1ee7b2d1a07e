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

// library is DMTF's files as the user has given them: JSON schemas and CSDL of
// DSP8010, registries of DSP8011. The layout is that of DMTF's own archives, or
// any that has them in folders of the same names.
type library struct {
	files fs.FS
	paths map[string]string // by base name
}

const maxLibraryFile = 8 << 20 // bytes

var (
	schemaName   = regexp.MustCompile(`^[A-Za-z0-9-]+(\.v\d+_\d+_\d+)?\.json$`)
	registryName = regexp.MustCompile(`^[A-Za-z]+\.\d+\.\d+\.\d+\.json$|^Redfish_\d+\.\d+\.\d+_PrivilegeRegistry\.json$`)
	csdlName     = regexp.MustCompile(`^[A-Za-z0-9]+(_v\d+)?\.xml$`)
)

// openLibrary looks for DMTF's files.
func openLibrary(files fs.FS) (*library, error) {
	l := &library{files: files, paths: map[string]string{}}
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

// Names are the files that there are, in order.
func (l *library) Names() []string {
	if l == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(l.paths))
}

// Has says whether a file is there.
func (l *library) Has(name string) bool {
	if l == nil {
		return false
	}
	_, ok := l.paths[name]
	return ok
}

// read is a file.
func (l *library) read(name string) ([]byte, error) {
	f, err := l.files.Open(l.paths[name])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxLibraryFile+1))
	if err == nil && len(b) > maxLibraryFile {
		err = fmt.Errorf("%s is larger than %d bytes", name, maxLibraryFile)
	}
	return b, err
}

const SchemaStore = "/redfish/v1/SchemaStore/en/"

// schemaRows say where the schemas of what the service serves are (DSP0266,
// "Schema file location").
func schemaRows() []Row {
	return []Row{
		{URI: "/redfish/v1/JsonSchemas", Schema: "JsonSchemaFileCollection", Name: "JSON Schemas", MemberVariable: "schema"},
		{URI: "/redfish/v1/JsonSchemas/{schema}", Schema: "JsonSchemaFile.v1_1_5", Read: jsonSchemaFile},
		{URI: SchemaStore + "{file}", Privileges: managerPrivileges, Link: "-", Raw: libraryFile},
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

// libraryFile is a file of the library, as it is.
func libraryFile(v View) (MediaType, []byte) {
	name := v.IDs["file"]
	kind := JSON
	if path.Ext(name) == ".xml" {
		kind = XML
	}
	for _, t := range v.Dialect.Protocol.OEMTypes {
		if oemSchemaFile(t) == name {
			return XML, CSDL(t)
		}
	}
	b, err := v.Tree.Library.read(name)
	if err != nil { // it was there when the service began
		v.Tree.log.Warn("schema not read", "file", name, "err", err)
	}
	return kind, b
}

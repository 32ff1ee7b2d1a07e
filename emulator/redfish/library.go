package redfish

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
	case !slices.ContainsFunc(l.names(), schemaName.MatchString):
		return nil, errors.New("redfish: Config.Schemas: holds no folder json-schema with schemas: use DMTF's DSP8010 archive")
	}
	return l, nil
}

// names are the files that there are, in order.
func (l *library) names() []string {
	if l == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(l.paths))
}

// has says whether a file is there.
func (l *library) has(name string) bool {
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

const schemaStore = "/redfish/v1/SchemaStore/en/"

// schemaRows say where the schemas of what the service serves are (DSP0266,
// "Schema file location").
func schemaRows() []resource {
	return []resource{
		{uri: "/redfish/v1/JsonSchemas", schema: "JsonSchemaFileCollection", name: "JSON Schemas", of: "schema"},
		{uri: "/redfish/v1/JsonSchemas/{schema}", schema: "JsonSchemaFile.v1_1_5", read: jsonSchemaFile},
		{uri: schemaStore + "{file}", needs: ofManager, link: "-", raw: libraryFile},
	}
}

func jsonSchemaFile(v view) object {
	schema := v.ids["schema"]
	at := object{"Language": "en", "PublicationUri": jsonSchema(schema)}
	if name := schema + ".json"; v.tree.library.has(name) {
		at["Uri"] = schemaStore + name
	}
	return object{
		"Name": typeName(schema) + " Schema File", "Schema": odataType(schema), "Languages": []string{"en"}, "Location": []object{at},
	}
}

// libraryFile is a file of the library, as it is.
func libraryFile(v view) (mime, []byte) {
	name := v.ids["file"]
	kind := jsonType
	if path.Ext(name) == ".xml" {
		kind = xmlType
	}
	for _, t := range v.d.Protocol.OEMTypes {
		if oemFile(t) == name {
			return xmlType, csdl(t)
		}
	}
	b, err := v.tree.library.read(name)
	if err != nil { // it was there when the service began
		v.tree.log.Warn("schema not read", "file", name, "err", err)
	}
	return kind, b
}

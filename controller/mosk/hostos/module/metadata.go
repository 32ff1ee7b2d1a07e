package module

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
	"go.yaml.in/yaml/v3"
)

// MetadataFile is the name of the file, in the root of an archive, that describes a module.
const MetadataFile = "metadata.yaml"

// Metadata describes a module.
type Metadata struct {
	Name        string `yaml:"name"`
	Version     string `yaml:"version"` // SemVer
	Description string `yaml:"description"`
	DocURL      string `yaml:"docURL"`
	Playbook    string `yaml:"playbook"`         // path in the archive
	Schema      string `yaml:"valuesJsonSchema"` // path in the archive; "": any values
	// Deprecates are the versions that this one replaces.
	Deprecates []Deprecation `yaml:"deprecates"`
	// SupportedDistributions have the form ubuntu/jammy; none means all.
	SupportedDistributions []string `yaml:"supportedDistributions"`
}

// Deprecation names a version of a module.
type Deprecation struct {
	Name    string `yaml:"name"` // "" in a file: the same module
	Version string `yaml:"version"`
}

// moduleName matches names that can be a part of a path and of a file's name.
var moduleName = regexp.MustCompile(`^[A-Za-z0-9]([-_.A-Za-z0-9]*[A-Za-z0-9])?$`)

// ParseMetadata reads the text of metadata.yaml. It ignores unknown fields: later modules
// may have more. The error joins all mistakes.
func ParseMetadata(text []byte) (Metadata, error) {
	var m Metadata
	if err := yaml.Unmarshal(text, &m); err != nil {
		return Metadata{}, fmt.Errorf("%s: %w", MetadataFile, err)
	}
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(MetadataFile+": "+format, args...))
		}
	}
	need(len(m.Name) <= 63 && moduleName.MatchString(m.Name), "name %q: use up to 63 letters, digits, dashes, dots and underscores, beginning and ending with a letter or digit", m.Name)
	need(isVersion(m.Version), "version %q: use a version of Semantic Versioning, like 1.0.0", m.Version)
	need(isFile(m.Playbook), "playbook %q: name a file by its path in the archive, like main.yaml", m.Playbook)
	need(m.Schema == "" || isFile(m.Schema), "valuesJsonSchema %q: name a file by its path in the archive, like schema.json", m.Schema)
	for i := range m.Deprecates {
		d := &m.Deprecates[i]
		if d.Name == "" {
			d.Name = m.Name
		}
		need(isVersion(d.Version), "deprecates[%d].version %q: use a version of Semantic Versioning, like 1.0.0", i, d.Version)
		need(d.Name != m.Name || d.Version != m.Version, "deprecates[%d]: a module cannot deprecate its version %s itself", i, m.Version)
	}
	for i, d := range m.SupportedDistributions {
		name, release, _ := strings.Cut(d, "/")
		need(name != "" && release != "", "supportedDistributions[%d] %q: use a form like ubuntu/jammy", i, d)
	}
	return m, errors.Join(errs...)
}

// isVersion reports whether a text is a version of Semantic Versioning 2.0.0.
func isVersion(s string) bool {
	_, err := semver.StrictNewVersion(s)
	return err == nil && len(s) <= 64
}

// isFile reports whether a path can name a file of an archive.
func isFile(name string) bool { return fs.ValidPath(name) && path.Clean(name) == name && name != "." }

// Compare orders versions as Semantic Versioning does: 1.9.0 is before 1.10.0. Texts that
// are no versions come first, in the order of their bytes.
func Compare(a, b string) int {
	x, errX := semver.StrictNewVersion(a)
	y, errY := semver.StrictNewVersion(b)
	switch {
	case errX == nil && errY == nil:
		if c := x.Compare(y); c != 0 {
			return c
		}
	case errX == nil:
		return 1
	case errY == nil:
		return -1
	}
	return strings.Compare(a, b) // such as versions that differ in their build metadata alone
}

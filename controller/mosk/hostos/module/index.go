package module

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Index is a list of modules, as a HostOSConfigurationModules of Kubernetes.
type Index struct {
	APIVersion string        `yaml:"apiVersion"`
	Kind       string        `yaml:"kind"`
	Metadata   IndexMetadata `yaml:"metadata"`
	Spec       IndexSpec     `yaml:"spec"`
}

// IndexMetadata has the name of the list.
type IndexMetadata struct {
	Name string `yaml:"name"`
}

// IndexSpec has the modules.
type IndexSpec struct {
	Modules []Entry `yaml:"modules"`
}

// Entry is a version of a module.
type Entry struct {
	Name    string `yaml:"name"`
	Version string `yaml:"version"`
	SHA256  string `yaml:"sha256sum"`
	URL     string `yaml:"url,omitempty"`
}

const (
	indexVersion = "kaas.mirantis.com/v1alpha1"
	indexKind    = "HostOSConfigurationModules"
)

// NewIndex returns an empty list with a name.
func NewIndex(name string) *Index {
	return &Index{APIVersion: indexVersion, Kind: indexKind, Metadata: IndexMetadata{Name: name}}
}

// ParseIndex reads a list. Fields that it does not know are an error: they would be lost.
func ParseIndex(text []byte) (*Index, error) {
	x := new(Index)
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(x); err != nil {
		return nil, fmt.Errorf("the list of modules: %w", err)
	}
	if err := d.Decode(new(Index)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the list of modules: the file has more than one document")
	}
	if x.APIVersion != indexVersion || x.Kind != indexKind {
		return nil, fmt.Errorf("the list of modules: kind %s %s: must be %s %s", x.APIVersion, x.Kind, indexVersion, indexKind)
	}
	for i, e := range x.Spec.Modules {
		if !moduleName.MatchString(e.Name) || !isVersion(e.Version) {
			return nil, fmt.Errorf("the list of modules: spec.modules[%d]: %q %q: use a name and a version of Semantic Versioning", i, e.Name, e.Version)
		}
	}
	return x, nil
}

// maxIndex limits the bytes of an index.
const maxIndex = 1 << 20

// ReadIndex reads the list in a file, or at a URL of HTTP. ctx has the deadline.
func ReadIndex(ctx context.Context, c *http.Client, from string) (*Index, error) {
	var text []byte
	var err error
	if strings.HasPrefix(from, "http://") || strings.HasPrefix(from, "https://") {
		text, err = fetch(ctx, c, from)
	} else {
		text, err = os.ReadFile(from)
	}
	if err != nil {
		return nil, fmt.Errorf("the list of modules: %w", err)
	}
	if len(text) > maxIndex {
		return nil, fmt.Errorf("the list of modules: %s has more than %d MiB", from, maxIndex>>20)
	}
	return ParseIndex(text)
}

// Sort sorts the modules by their names and versions, with 1.9.0 before 1.10.0. An index
// of upstream's tool, which compares versions as text, changes its order.
func (x *Index) Sort() {
	slices.SortStableFunc(x.Spec.Modules, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), Compare(a.Version, b.Version))
	})
}

// Put adds a module, or replaces its entry, and sorts the list.
func (x *Index) Put(e Entry) {
	x.Spec.Modules = slices.DeleteFunc(x.Spec.Modules, func(old Entry) bool { return old.Name == e.Name && old.Version == e.Version })
	x.Spec.Modules = append(x.Spec.Modules, e)
	x.Sort()
}

// Text returns the list as YAML.
func (x *Index) Text() ([]byte, error) {
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := errors.Join(e.Encode(x), e.Close())
	return b.Bytes(), err
}

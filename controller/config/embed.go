// Package config holds the Kubernetes manifests of Metalab: the custom resource
// definitions and admission policies, as files for kubectl apply -k and as values
// that a program installs.
//
// controller-gen generates the files under crd from the published metal3.io API; they
// are never edited. Where that API and its own definitions disagree, a JSON patch
// under patches corrects the definition of the resource that it is named after. CRDs
// applies the patch while loading, so that generating again does not lose it, and
// kustomization.yaml names the same patch.
//
// The policies under admission enforce in CEL what upstream's webhooks refuse beyond
// the schema. They apply whether controllers run or not, and they see annotations,
// names and the old object, which the validation rules of a definition do not. What
// CEL cannot parse goes to the webhook of the controllers; see controller/webhook.
//
// The package has no client: controller/kube installs the manifests.
package config

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// controller-gen reads the Go types of the metal3.io module at the version that
// go.mod requires. HostClaims and HostDeployPolicies share hosts between namespaces;
// they are removed, because no controller here acts on them.
//
//go:generate rm -rf crd
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd:allowDangerousTypes=true paths=github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1 output:crd:dir=crd
//go:generate rm crd/metal3.io_hostclaims.yaml crd/metal3.io_hostdeploypolicies.yaml

//go:embed crd/*.yaml patches/*.yaml
var manifests embed.FS

// CRDs returns the patched custom resource definitions that Metalab serves, in the
// order of their names. Each call parses the files again, so the caller may change
// the result.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return load(manifests)
}

func load(files fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	patches, err := loadPatches(files)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "crd/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, name := range names {
		doc, err := readJSON(files, name)
		if err != nil {
			return nil, err
		}
		// controller-gen names a file <group>_<resource>.yaml.
		_, resource, _ := strings.Cut(path.Base(name), "_")
		if patch, ok := patches[resource]; ok {
			if doc, err = patch.Apply(doc); err != nil {
				return nil, fmt.Errorf("config: patches/%s: %w", resource, err)
			}
			delete(patches, resource)
		}
		crd := new(apiextensionsv1.CustomResourceDefinition)
		if err := json.Unmarshal(doc, crd); err != nil {
			return nil, fmt.Errorf("config: %s: %w", name, err)
		}
		crds = append(crds, crd)
	}
	if len(patches) > 0 {
		return nil, fmt.Errorf("config: patches without a definition that they apply to: %q", slices.Sorted(maps.Keys(patches)))
	}
	return crds, nil
}

// loadPatches returns the JSON patches by their file names, which are those of the
// resources that they correct.
func loadPatches(files fs.FS) (map[string]jsonpatch.Patch, error) {
	names, err := fs.Glob(files, "patches/*.yaml")
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	patches := map[string]jsonpatch.Patch{}
	for _, name := range names {
		doc, err := readJSON(files, name)
		if err != nil {
			return nil, err
		}
		patch, err := jsonpatch.DecodePatch(doc)
		if err != nil {
			return nil, fmt.Errorf("config: %s: %w", name, err)
		}
		patches[path.Base(name)] = patch
	}
	return patches, nil
}

func readJSON(files fs.FS, name string) ([]byte, error) {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	doc, err := yaml.ToJSON(b)
	if err != nil {
		return nil, fmt.Errorf("config: %s: %w", name, err)
	}
	return doc, nil
}

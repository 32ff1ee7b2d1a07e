// Package config owns the Kubernetes manifests of Metalab: the definitions of
// the resources it serves, as files that kubectl apply -k takes and as values
// that a program installs.
//
// The files under crd are generated from the published metal3.io API and never
// edited. Where that API and its own definitions disagree, a JSON patch under
// patches, named after the resource it corrects, is applied while loading, so
// that generating again never loses it; kustomization.yaml names the same patch.
//
// What upstream's webhooks refuse beyond that, the policies under admission do, in
// CEL: they hold whether controllers run or not, and see annotations, names and
// what an object was before, which rules in a definition do not. What CEL cannot
// read is sent to the controllers; see webhook.
//
// The package refuses to know clusters, clients and how a definition is
// installed; see controller/kube.
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
// go.mod requires. Host claims and deploy policies share hosts between
// namespaces, which Metalab does not do: nothing would act on them.
//
//go:generate rm -rf crd
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd:allowDangerousTypes=true paths=github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1 output:crd:dir=crd
//go:generate rm crd/metal3.io_hostclaims.yaml crd/metal3.io_hostdeploypolicies.yaml

//go:embed crd/*.yaml patches/*.yaml
var manifests embed.FS

// CRDs returns the definitions of the resources that Metalab serves, patched,
// in the order of their names. Each call parses anew, so that the caller may
// change what it gets.
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
		return nil, fmt.Errorf("config: patches that correct no definition: %q", slices.Sorted(maps.Keys(patches)))
	}
	return crds, nil
}

// loadPatches returns the JSON patches by the file name of the resource that
// each corrects.
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

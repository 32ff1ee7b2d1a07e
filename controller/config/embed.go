// Package config holds the Kubernetes manifests of Metalab: the custom resource
// definitions and admission policies, as files for kubectl apply -k and as values
// that a program installs.
//
// controller-gen generates the files under crd from the published metal3.io API, and those
// of the family hoc from controller/api; those of the family machineconfig are copies of files of
// the module github.com/openshift/api. They are never edited. Where that API and its own definitions disagree, a JSON patch
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
	"errors"
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

// A family's definitions and policies are in a directory of its name. They are installed
// only where the family is asked for.
//
// controller-gen reads the Go types of the metal3.io module at the version that
// go.mod requires. HostClaims and HostDeployPolicies share hosts between namespaces;
// they are removed, because no controller here acts on them.
//
//go:generate rm -rf crd
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd:allowDangerousTypes=true paths=github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1 output:crd:dir=crd
//go:generate rm crd/metal3.io_hostclaims.yaml crd/metal3.io_hostdeploypolicies.yaml
//go:generate rm -rf hoc/crd
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd:allowDangerousTypes=true paths={../api/baremetal/...,../api/cluster/...,../api/hostprofile/...,../api/iam/...,../api/ipam/...,../api/kaas/...,../api/lcm/...} output:crd:dir=hoc/crd
//go:generate rm -rf elemental/crd
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 object crd:allowDangerousTypes=true paths=../api/elemental/... output:crd:dir=elemental/crd
//go:generate rm -rf cluster-api/crd
//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0 crd:allowDangerousTypes=true paths=sigs.k8s.io/cluster-api/api/v1beta1 output:crd:dir=cluster-api/crd
//go:generate rm cluster-api/crd/cluster.x-k8s.io_clusterclasses.yaml cluster-api/crd/cluster.x-k8s.io_machinedeployments.yaml cluster-api/crd/cluster.x-k8s.io_machinehealthchecks.yaml cluster-api/crd/cluster.x-k8s.io_machinesets.yaml
//go:generate go test . -run TestMachineConfigDefinitionsAreThoseOfTheModule -update

//go:embed crd/*.yaml patches/*.yaml hoc/crd/*.yaml machineconfig/crd/*.yaml elemental/crd/*.yaml cluster-api/crd/*.yaml cluster-api/patches/*.yaml
var manifests embed.FS

// ChartRights is the ClusterRole of the charts of HelmBundles, as YAML.
//
//go:embed hoc/deploy/charts.yaml
var ChartRights string

// NodeAgents are the rights of the node agents of a lab's servers, as documents of YAML.
//
//go:embed nodes/agents.yaml
var NodeAgents string

// MachineConfigDaemons are the rights of the machine-config daemons of a lab's servers, as
// documents of YAML.
//
//go:embed machineconfig/daemons.yaml
var MachineConfigDaemons string

// HOC is the family of host OS configuration, LCM and the bare metal provider.
const HOC = "hoc"

// Nodes is the family of the kinds of a cluster that has nodes: Node, Pod, Service and the
// workloads. They are built in to Kubernetes, so the family has no definition: an API of
// controller/kube serves them by its option Nodes.
const Nodes = "nodes"

// MachineConfig is the family of machine configuration: rendered configurations, the images
// that are built of them, and their rollout to nodes.
const MachineConfig = "machineconfig"

// Elemental is the family of servers that register themselves, and of the infrastructure that
// they are for Cluster API.
const Elemental = "elemental"

// ClusterAPI is the family of the kinds of Cluster API's core that infrastructure is made for:
// Cluster and Machine. A cluster that has Cluster API has them already, with its own versions:
// the family is for an API that has not.
const ClusterAPI = "cluster-api"

// Families are the names of the families of kinds beside those of hosts.
var Families = []string{HOC, MachineConfig, Elemental, ClusterAPI, Nodes}

// needNodes are the families whose controllers work on nodes: they cordon and drain them, or
// write their provider IDs.
var needNodes = []string{HOC, MachineConfig, Elemental, Nodes}

// NeedNodes reports whether one of the families needs the kinds of Nodes.
func NeedNodes(families []string) bool {
	return slices.ContainsFunc(families, func(f string) bool { return slices.Contains(needNodes, f) })
}

// CheckFamilies returns an error that names the families that do not exist.
func CheckFamilies(families []string) error {
	for _, f := range families {
		if !slices.Contains(Families, f) {
			return fmt.Errorf("there is no family %q: use some of %s", f, strings.Join(Families, ", "))
		}
	}
	return nil
}

// CRDs returns the patched custom resource definitions that Metalab serves, in the
// order of their names: those of hosts, then those of each family. Each call parses the
// files again, so the caller may change the result.
func CRDs(families ...string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	if err := CheckFamilies(families); err != nil {
		return nil, err
	}
	out, err := load(manifests)
	for _, f := range families {
		files, subErr := fs.Sub(manifests, f)
		if err = errors.Join(err, subErr); err != nil {
			return nil, err
		}
		var crds []*apiextensionsv1.CustomResourceDefinition
		crds, err = load(files)
		out = append(out, crds...)
	}
	return out, err
}

// ofWorkload are the kinds of the family HOC that live in the cluster that LCM deploys, and not in
// the management cluster: the protocol of maintenance.
var ofWorkload = []string{"ClusterMaintenanceRequest", "ClusterWorkloadLock", "NodeDeletionRequest", "NodeMaintenanceRequest", "NodeWorkloadLock"}

// WorkloadCRDs returns the definitions of a cluster that LCM deploys, in the order of their names.
func WorkloadCRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Sub(manifests, HOC)
	if err != nil {
		return nil, err
	}
	all, err := load(files)
	return slices.DeleteFunc(all, func(d *apiextensionsv1.CustomResourceDefinition) bool {
		return !slices.Contains(ofWorkload, d.Spec.Names.Kind)
	}), err
}

func load(files fs.FS) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	patches, err := loadPatches(files)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "crd/*.yaml")
	if err != nil {
		return nil, err
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
				return nil, fmt.Errorf("patches/%s: %w", resource, err)
			}
			delete(patches, resource)
		}
		crd := new(apiextensionsv1.CustomResourceDefinition)
		if err := json.Unmarshal(doc, crd); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		crds = append(crds, crd)
	}
	if len(patches) > 0 {
		return nil, fmt.Errorf("patches without a definition that they apply to: %q", slices.Sorted(maps.Keys(patches)))
	}
	return crds, nil
}

// loadPatches returns the JSON patches by their file names, which are those of the
// resources that they correct.
func loadPatches(files fs.FS) (map[string]jsonpatch.Patch, error) {
	names, err := fs.Glob(files, "patches/*.yaml")
	if err != nil {
		return nil, err
	}
	patches := map[string]jsonpatch.Patch{}
	for _, name := range names {
		doc, err := readJSON(files, name)
		if err != nil {
			return nil, err
		}
		patch, err := jsonpatch.DecodePatch(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		patches[path.Base(name)] = patch
	}
	return patches, nil
}

func readJSON(files fs.FS, name string) ([]byte, error) {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		return nil, err
	}
	doc, err := yaml.ToJSON(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return doc, nil
}

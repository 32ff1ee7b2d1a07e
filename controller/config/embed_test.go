package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
)

func crds(t *testing.T) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	list, err := CRDs()
	if err != nil {
		t.Fatalf("CRDs() error = %v, want none", err)
	}
	return list
}

func bareMetalHost(t *testing.T) apiextensionsv1.CustomResourceDefinitionVersion {
	t.Helper()
	for _, crd := range crds(t) {
		if crd.Name == "baremetalhosts.metal3.io" {
			return crd.Spec.Versions[0]
		}
	}
	t.Fatal("CRDs() holds no baremetalhosts.metal3.io")
	panic("unreachable")
}

func TestCRDsReturnsTheNineMetal3Definitions(t *testing.T) {
	want := []string{
		"baremetalhosts.metal3.io [bmh bmhost]",
		"bmceventsubscriptions.metal3.io [bes bmcevent]",
		"dataimages.metal3.io []",
		"firmwareschemas.metal3.io []",
		"hardwaredata.metal3.io [hd]",
		"hostfirmwarecomponents.metal3.io []",
		"hostfirmwaresettings.metal3.io [hfs]",
		"hostupdatepolicies.metal3.io []",
		"preprovisioningimages.metal3.io [ppimg]",
	}
	var got []string
	for _, crd := range crds(t) {
		got = append(got, crd.Name+" ["+strings.Join(crd.Spec.Names.ShortNames, " ")+"]")
		if len(crd.Spec.Versions) != 1 || crd.Spec.Versions[0].Name != "v1alpha1" {
			t.Errorf("%s: versions = %v, want v1alpha1 alone", crd.Name, crd.Spec.Versions)
		}
		if crd.Spec.Group != "metal3.io" || crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
			t.Errorf("%s: group and scope = %s, %s, want metal3.io, Namespaced", crd.Name, crd.Spec.Group, crd.Spec.Scope)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CRDs() (-want +got):\n%s", diff)
	}
}

func TestBareMetalHostColumns(t *testing.T) {
	want := []string{"Status wide", "State", "Consumer", "BMC wide", "Online", "Error", "Age"}
	var got []string
	for _, c := range bareMetalHost(t).AdditionalPrinterColumns {
		name := c.Name
		if c.Priority > 0 {
			name += " wide"
		}
		got = append(got, name)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("printer columns (-want +got):\n%s", diff)
	}
}

func TestBareMetalHostStatusSubresource(t *testing.T) {
	if s := bareMetalHost(t).Subresources; s == nil || s.Status == nil {
		t.Errorf("subresources = %v, want status", s)
	}
}

func TestDetachErrorIsAccepted(t *testing.T) {
	status := bareMetalHost(t).Schema.OpenAPIV3Schema.Properties["status"]
	var got []string
	for _, v := range status.Properties["errorType"].Enum {
		got = append(got, string(v.Raw))
	}
	// The first seven are the generated ones: the patch adds one and removes none.
	want := []string{
		`"provisioned registration error"`, `"registration error"`, `"inspection error"`, `"preparation error"`,
		`"provisioning error"`, `"power management error"`, `"servicing error"`, `"detach error"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status.errorType (-want +got):\n%s", diff)
	}
}

// B-262: kubectl explain shows the specification's note, not upstream's end of support.
func TestFirmwareFieldIsDescribedAsSupported(t *testing.T) {
	got := bareMetalHost(t).Schema.OpenAPIV3Schema.Properties["spec"].Properties["firmware"].Description
	if !strings.Contains(got, "only supported by ilo4/ilo5/irmc/idrac") || strings.Contains(got, "no longer supported") {
		t.Errorf("the description of spec.firmware is %q, want the drivers that support it", got)
	}
}

// An installer may change the result of CRDs. The next call must not return that
// change.
func TestCRDsReturnsACopy(t *testing.T) {
	crds(t)[0].Spec.Versions[0].Name = "changed"
	if got := crds(t)[0].Spec.Versions[0].Name; got != "v1alpha1" {
		t.Errorf("version after a change of an earlier result = %s, want v1alpha1", got)
	}
}

// kubectl apply -k must install the same definitions and patches as CRDs returns.
func TestKustomizationNamesEveryFile(t *testing.T) {
	for _, dir := range append([]string{"."}, Families...) {
		if dir != Nodes { // whose kinds are built in
			namesEveryFile(t, dir)
		}
	}
}

func TestFamiliesThatNeedNodes(t *testing.T) {
	for _, tt := range []struct {
		families []string
		want     bool
	}{{nil, false}, {[]string{HOC}, true}, {[]string{MachineConfig}, true}, {[]string{Nodes}, true}} {
		if got := NeedNodes(tt.families); got != tt.want {
			t.Errorf("NeedNodes(%v) = %v, want %v", tt.families, got, tt.want)
		}
	}
	crds, err := CRDs(Nodes)
	hosts, hostsErr := CRDs()
	if err != nil || hostsErr != nil || len(crds) != len(hosts) {
		t.Errorf("CRDs(%s) = %d definitions, %v; want the %d of hosts: its kinds are built in", Nodes, len(crds), err, len(hosts))
	}
}

func namesEveryFile(t *testing.T, in string) {
	var k struct {
		Resources []string `json:"resources"`
		Patches   []struct {
			Path string `json:"path"`
		} `json:"patches"`
	}
	b, err := os.ReadFile(filepath.Join(in, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &k); err != nil {
		t.Fatal(err)
	}
	got := slices.Clone(k.Resources)
	slices.Sort(got) // kustomization.yaml orders them for readers
	for _, p := range k.Patches {
		if p.Path == "" { // a patch in the file
			continue
		}
		got = append(got, p.Path)
	}
	var want []string
	for _, dir := range []string{"admission", "crd", "deploy", "patches"} {
		files, err := os.ReadDir(filepath.Join(in, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, f := range files {
			want = append(want, dir+"/"+f.Name())
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kustomization.yaml of %s (-files +named):\n%s", in, diff)
	}
}

func TestLoadReturnsErrorForInvalidFiles(t *testing.T) {
	crd := &fstest.MapFile{Data: []byte("metadata: {name: racks.example.org}")}
	for _, tt := range []struct {
		name  string
		files fstest.MapFS
		want  string
	}{
		{
			name:  "patch without a definition",
			files: fstest.MapFS{"crd/example.org_racks.yaml": crd, "patches/shelves.yaml": {Data: []byte("[]")}},
			want:  `patches without a definition that they apply to: ["shelves.yaml"]`,
		},
		{
			name: "patch of a path that does not exist",
			files: fstest.MapFS{"crd/example.org_racks.yaml": crd,
				"patches/racks.yaml": {Data: []byte("- {op: add, path: /spec/versions/0/name, value: v1}")}},
			want: "patches/racks.yaml: ",
		},
		{
			name:  "invalid YAML",
			files: fstest.MapFS{"crd/example.org_racks.yaml": {Data: []byte("a: b: c")}},
			want:  "crd/example.org_racks.yaml: ",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := load(tt.files); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("load() error = %v, want %s…", err, tt.want)
			}
		})
	}
}

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The kinds of Elemental and of Cluster API's core: their label of the contract, short names and
// columns.
func TestElementalDefinitions(t *testing.T) {
	list, err := CRDs(Elemental, ClusterAPI)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, crd := range list {
		if crd.Spec.Group == "metal3.io" {
			continue
		}
		if crd.Labels["cluster.x-k8s.io/v1beta1"] != "v1beta1" || crd.Spec.Scope != apiextensionsv1.NamespaceScoped {
			t.Errorf("%s has labels %v and scope %s, want the contract's and Namespaced", crd.Name, crd.Labels, crd.Spec.Scope)
		}
		var columns []string
		for _, c := range crd.Spec.Versions[0].AdditionalPrinterColumns {
			columns = append(columns, c.Name)
		}
		got[crd.Spec.Names.Kind] = strings.Join(crd.Spec.Names.ShortNames, " ") + ": " + strings.Join(columns, ",")
	}
	want := map[string]string{
		"ElementalRegistration":    ": ",
		"ElementalHost":            ": Cluster,Machine,ElementalMachine,Phase,Ready,Age",
		"ElementalMachine":         ": Cluster,Machine,ProviderID,Ready,Age",
		"ElementalMachineTemplate": "emt: ",
		"ElementalCluster":         ": ",
		"ElementalClusterTemplate": ": ",
		"Cluster":                  "cl: ClusterClass,Phase,Age,Version",
		"Machine":                  "ma: Cluster,NodeName,ProviderID,Phase,Age,Version",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("short names and columns (-want +got):\n%s", diff)
	}
}

// The defaults of an agent's configuration are upstream's.
func TestElementalAgentDefaults(t *testing.T) {
	list, err := CRDs(Elemental)
	if err != nil {
		t.Fatal(err)
	}
	for _, crd := range list {
		if crd.Spec.Names.Kind != "ElementalRegistration" {
			continue
		}
		schema := *crd.Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, name := range []string{"spec", "config", "elemental", "agent"} {
			schema = schema.Properties[name]
		}
		got := map[string]string{}
		for _, name := range []string{"workDir", "osPlugin", "reconciliation", "hostname"} {
			if d := schema.Properties[name].Default; d != nil {
				got[name] = string(d.Raw)
			}
		}
		want := map[string]string{
			"workDir": `"/var/lib/elemental/agent"`, "osPlugin": `"/usr/lib/elemental/plugins/elemental.so"`, "reconciliation": "10000000000", "hostname": `{"useExisting":false}`,
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("defaults (-want +got):\n%s", diff)
		}
		return
	}
	t.Error("there is no ElementalRegistration")
}

package kube

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
)

// A rule is an expression of a definition. Its path is that of the schema: [] stands for each
// item of a list and {} for each value of a map.
type rule struct{ kind, path, message string }

func (r rule) String() string { return r.kind + " " + r.path + ": " + r.message }

// rulesOf returns the rules of definitions.
func rulesOf(crds []*apiextensionsv1.CustomResourceDefinition) []rule {
	var rules []rule
	for _, crd := range crds {
		for _, v := range crd.Spec.Versions {
			rules = append(rules, rulesBelow(crd.Spec.Names.Kind, "", *v.Schema.OpenAPIV3Schema)...)
		}
	}
	return rules
}

func rulesBelow(kind, path string, s apiextensionsv1.JSONSchemaProps) []rule {
	var rules []rule
	for _, v := range s.XValidations {
		rules = append(rules, rule{kind, path, cmp.Or(v.Message, v.MessageExpression, v.Rule)})
	}
	for name, p := range s.Properties {
		rules = append(rules, rulesBelow(kind, strings.TrimPrefix(path+"."+name, "."), p)...)
	}
	if s.Items != nil && s.Items.Schema != nil {
		rules = append(rules, rulesBelow(kind, path+"[]", *s.Items.Schema)...)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		rules = append(rules, rulesBelow(kind, path+"{}", *s.AdditionalProperties.Schema)...)
	}
	return rules
}

// aRuleOfHOC breaks one rule, and does not by a little. With an object that was there, the
// others are merged into it.
type aRuleOfHOC struct {
	apiVersion string
	rule
	was, refused, taken string
}

const (
	binding    = `{"cluster":{"name":"c1"},"role":{"name":"user"},"user":{"name":"ann"}}`
	boundRole  = `role of a binding never changes: make another binding`
	boundUser  = `user of a binding never changes: make another binding`
	otherRole  = `{"role":{"name":"operator"}}`
	otherUser  = `{"user":{"name":"bob"}}`
	labeled    = `{"metadata":{"labels":{"a":"b"}}}`
	aNetwork   = `give a network as ADDRESS/LENGTH`
	aRange     = `give an address or FIRST-LAST`
	anAddress  = `give an address`
	immutable  = `is immutable: delete the request and create another`
	proxyURL   = `give a URL of http or https; encode spaces, quotes, #, $ and backslashes with %`
	size       = `give a size such as 60Gi`
	hashBang   = `begin with #! and an interpreter`
	updatePlan = `{"spec":{"cluster":"c1","source":"1.0.0","target":"1.1.0","steps":[{"id":"a","name":"a","commence":true},{"id":"b","name":"b","commence":true}]},
		"status":{"steps":[{"id":"a","status":"InProgress"},{"id":"b","status":"NotStarted"}]}}`
)

// subnet is a Subnet with more fields.
func subnet(fields string) string { return `{"spec":{"cidr":"10.0.0.0/24"` + fields + `}}` }

// pool is a SubnetPool with a network and more fields.
func pool(cidr, fields string) string {
	return `{"spec":{"cidr":"` + cidr + `","blockSize":"/25"` + fields + `}}`
}

// rulesOfHOC has a row for each rule of the definitions in controller/config/hoc.
var rulesOfHOC = []aRuleOfHOC{
	{iamV1, rule{"IAMClusterRoleBinding", "cluster", "cluster of a binding never changes: make another binding"}, binding, `{"cluster":{"name":"c2"}}`, labeled},
	{iamV1, rule{"IAMClusterRoleBinding", "role", boundRole}, binding, otherRole, labeled},
	{iamV1, rule{"IAMClusterRoleBinding", "user", boundUser}, binding, otherUser, labeled},
	{iamV1, rule{"IAMGlobalRoleBinding", "role", boundRole}, binding, otherRole, labeled},
	{iamV1, rule{"IAMGlobalRoleBinding", "user", boundUser}, binding, otherUser, labeled},
	{iamV1, rule{"IAMRoleBinding", "role", boundRole}, binding, otherRole, labeled},
	{iamV1, rule{"IAMRoleBinding", "user", boundUser}, binding, otherUser, labeled},
	{iamV1, rule{"IAMRole", "", "scope: the scope of a role never changes: make another role"}, `{"scope":"namespace"}`, `{"scope":"global"}`, `{"description":"a"}`},
	{iamV1, rule{"Scope", "spec", "cluster: give the cluster's namespace, too"}, "", `{"spec":{"cluster":"c1","roles":[]}}`, `{"spec":{"cluster":"c1","namespace":"lab","roles":[]}}`},

	{ipamV1, rule{"IPaddr", "spec", "an address never changes: delete it"}, `{"spec":{"subnetRef":"a","wantedAddress":"10.0.0.2"}}`, `{"spec":{"wantedAddress":"10.0.0.3"}}`, labeled},
	{ipamV1, rule{"SubnetPool", "spec.cidr", aNetwork}, "", pool("10.0.0.0", ""), pool("10.0.0.0/24", "")},
	{ipamV1, rule{"SubnetPool", "spec.nameservers[]", anAddress}, "", pool("10.0.0.0/24", `,"nameservers":["dns.example"]`), pool("10.0.0.0/24", `,"nameservers":["fd00::1"]`)},
	{ipamV1, rule{"Subnet", "spec.cidr", aNetwork}, "", `{"spec":{"cidr":"10.0.0.0/33"}}`, `{"spec":{"cidr":"fd00::/64"}}`},
	{ipamV1, rule{"Subnet", "spec.excludeRanges[]", aRange}, "", subnet(`,"excludeRanges":["10.0.0.1-10.0.0.2-10.0.0.3"]`), subnet(`,"excludeRanges":["10.0.0.1-10.0.0.2","10.0.0.9"]`)},
	{ipamV1, rule{"Subnet", "spec.gateway", anAddress}, "", subnet(`,"gateway":"10.0.0.256"`), subnet(`,"gateway":"10.0.0.254"`)},
	{ipamV1, rule{"Subnet", "spec.includeRanges[]", aRange}, "", subnet(`,"includeRanges":["10.0.0.1-9"]`), subnet(`,"includeRanges":["10.0.0.1-10.0.0.9"]`)},
	{ipamV1, rule{"Subnet", "spec.nameservers[]", anAddress}, "", subnet(`,"nameservers":[""]`), subnet(`,"nameservers":["10.0.0.1"]`)},

	{kaasV1, rule{"BareMetalHostCredential", "", "metadata.name has more than 240 characters: a Secret is named after it"}, "",
		`{"metadata":{"name":"` + strings.Repeat("a", 241) + `"},"spec":{"username":"u","password":{"value":"p"}}}`, `{"metadata":{"name":"` + strings.Repeat("a", 240) + `"},"spec":{"username":"u","password":{"value":"p"}}}`},
	{kaasV1, rule{"BareMetalHostCredential", "spec.password", "give value, the password, or name, the Secret that the provider has moved it to"}, "",
		`{"spec":{"username":"u","password":{}}}`, `{"spec":{"username":"u","password":{"name":"s"}}}`},
	{kaasV1, rule{"ClusterUpdatePlan", "", "spec: cluster, source and target never change: the provider makes another plan"}, updatePlan, `{"spec":{"target":"1.2.0"}}`, labeled},
	{kaasV1, rule{"ClusterUpdatePlan", "", "spec.steps: commence of a step that has begun stays true"}, updatePlan,
		`{"spec":{"steps":[{"id":"a","name":"a","commence":false},{"id":"b","name":"b","commence":true}]}}`, `{"spec":{"steps":[{"id":"a","name":"a","commence":true},{"id":"b","name":"b","commence":false}]}}`},
	{kaasV1, rule{"HostOSConfigurationModules", "spec.modules[]", "url and sha256sum of a version of a module never change: add a new version, or remove this one first"},
		modules(`{"name":"a","version":"1.0.0","sha256sum":"` + sha256Hex + `"}`), modules(`{"name":"a","version":"1.0.0","sha256sum":"` + strings.Repeat("f", 64) + `"}`), modules(`{"name":"a","version":"1.0.1","sha256sum":"` + strings.Repeat("f", 64) + `"}`)},
	{kaasV1, rule{"HostOSConfiguration", "spec.configs", "two configs have the same order: give each its own, or leave it out"}, "",
		configs(`{"module":"a","moduleVersion":"1.0.0","order":1},{"module":"b","moduleVersion":"1.0.0","order":1}`), configs(`{"module":"a","moduleVersion":"1.0.0","order":1},{"module":"b","moduleVersion":"1.0.0"}`)},
	{kaasV1, rule{"Proxy", "", "spec: give httpProxy, httpsProxy, or both"}, "", `{"spec":{}}`, `{"spec":{"httpProxy":"http://a"}}`},
	{kaasV1, rule{"Proxy", "spec.httpProxy", proxyURL}, "", `{"spec":{"httpProxy":"http://u:$@a"}}`, `{"spec":{"httpProxy":"http://u:%24@a"}}`},
	{kaasV1, rule{"Proxy", "spec.httpsProxy", proxyURL}, "", `{"spec":{"httpsProxy":"ftp://a"}}`, `{"spec":{"httpsProxy":"https://a"}}`},
	{kaasV1, rule{"Proxy", "spec.noProxy", "give hosts, domains, addresses and networks, separated by commas"}, "", `{"spec":{"httpProxy":"http://a","noProxy":"a b"}}`, `{"spec":{"httpProxy":"http://a","noProxy":"a,b"}}`},

	{lcmV1, rule{"ClusterMaintenanceRequest", "spec", immutable}, `{"spec":{"scope":"os"}}`, `{"spec":{"scope":"drain"}}`, labeled},
	{lcmV1, rule{"HelmBundle", "spec.releases[]", "give either chart or chartURL"}, "", `{"spec":{"releases":[{"name":"a","chart":"a","chartURL":"http://r/a.tgz"}]}}`, `{"spec":{"releases":[{"name":"a","chartURL":"http://r/a.tgz"}]}}`},
	{lcmV1, rule{"LCMCluster", "spec", "give machinesTypes"}, "", `{"spec":{"managementClusterEndpoint":{"host":"a","port":1},"helmControllerServiceAccountName":"h"}}`, machines(`{}`)},
	{lcmV1, rule{"LCMClusterState", "spec", "only value can change: delete the object and create another"}, `{"spec":{"clusterName":"c","type":"cordon-drain","arg":"w-0","value":"true"}}`, `{"spec":{"arg":"w-1"}}`, `{"spec":{"value":"false"}}`},
	{lcmV1, rule{"NodeDeletionRequest", "spec", immutable}, `{"spec":{"nodeName":"w-0"}}`, `{"spec":{"nodeName":"w-1"}}`, labeled},
	{lcmV1, rule{"NodeMaintenanceRequest", "spec", immutable}, `{"spec":{"nodeName":"w-0","scope":"os"}}`, `{"spec":{"scope":"drain"}}`, labeled},

	{metal3V1, rule{"BareMetalHostProfile", "spec.devices[].device", "minSize is above maxSize"}, "", profileDevice(`"minSize":"61Gi","maxSize":"60Gi"`), profileDevice(`"minSize":"60Gi","maxSize":"60Gi"`)},
	{metal3V1, rule{"BareMetalHostProfile", "spec.devices[].device.byName", "give a path below /dev/"}, "", profileDevice(`"byName":"dev/sda"`), profileDevice(`"byName":"/dev/sda"`)},
	{metal3V1, rule{"BareMetalHostProfile", "spec.devices[].device.maxSize", size}, "", profileDevice(`"maxSize":"60GiB"`), profileDevice(`"maxSize":"60Gi"`)},
	{metal3V1, rule{"BareMetalHostProfile", "spec.devices[].device.minSize", size}, "", profileDevice(`"minSize":"-60Gi"`), profileDevice(`"minSize":"60Gi"`)},
	{metal3V1, rule{"BareMetalHostProfile", "spec.devices[].device.type", "give one of hdd, ssd and nvme"}, "", profileDevice(`"type":"disk"`), profileDevice(`"type":"NVMe"`)},
	{metal3V1, rule{"BareMetalHostProfile", "spec.devices[].device.workBy", "give some of by_id, by_path, by_wwn and by_name, separated by commas"}, "", profileDevice(`"workBy":"by_uuid"`), profileDevice(`"workBy":"by_id, by_wwn"`)},
	{metal3V1, rule{"BareMetalHostProfile", "spec.fileSystems[]", "give one of partition, softRaidDevice and logicalVolume"}, "", `{"spec":{"fileSystems":[{"fileSystem":"ext4"}]}}`, `{"spec":{"fileSystems":[{"fileSystem":"ext4","partition":"a"}]}}`},
	{metal3V1, rule{"BareMetalHostProfile", "spec.kernelParameters.modules[].filename", "give the name of a file that ends with .conf, without a directory"}, "",
		`{"spec":{"kernelParameters":{"modules":[{"filename":"a/b.conf","content":""}]}}}`, `{"spec":{"kernelParameters":{"modules":[{"filename":"b.conf","content":""}]}}}`},
	{metal3V1, rule{"BareMetalHostProfile", "spec.kernelParameters.sysctl", "a name has letters, digits and ._-/* alone"}, "", `{"spec":{"kernelParameters":{"sysctl":{"kernel panic":"1"}}}}`, `{"spec":{"kernelParameters":{"sysctl":{"kernel.panic":"1"}}}}`},
	{metal3V1, rule{"BareMetalHostProfile", "spec.kernelParameters.sysctl{}", "a value has one line"}, "", `{"spec":{"kernelParameters":{"sysctl":{"kernel.panic":"1\n2"}}}}`, `{"spec":{"kernelParameters":{"sysctl":{"kernel.panic":"1 2"}}}}`},
	{metal3V1, rule{"BareMetalHostProfile", "spec.postDeployScript", hashBang}, "", `{"spec":{"postDeployScript":" #!/bin/sh"}}`, `{"spec":{"postDeployScript":"#!/bin/sh"}}`},
	{metal3V1, rule{"BareMetalHostProfile", "spec.preDeployScript", hashBang}, "", `{"spec":{"preDeployScript":" #!/bin/sh"}}`, `{"spec":{"preDeployScript":"#!/bin/sh"}}`},
}

// TestEachRuleOfHOCHasARow fails for a rule without a row, and for a row without a rule.
func TestEachRuleOfHOCHasARow(t *testing.T) {
	crds, err := config.CRDs(config.HOC)
	if err != nil {
		t.Fatal(err)
	}
	base, err := config.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	rules := rulesOf(crds)
	others := rulesOf(base)
	rules = slices.DeleteFunc(rules, func(r rule) bool { return slices.Contains(others, r) })
	for _, r := range rules {
		if !slices.ContainsFunc(rulesOfHOC, func(row aRuleOfHOC) bool { return row.rule == r }) {
			t.Errorf("%v: no row of rulesOfHOC breaks it", r)
		}
	}
	for _, row := range rulesOfHOC {
		if !slices.Contains(rules, row.rule) {
			t.Errorf("%v: no definition has it", row.rule)
		}
	}
}

// eachRuleOfHOC has the API refuse what breaks a rule, with the rule's field and message, and take
// the neighbor that does not.
func eachRuleOfHOC(t *testing.T, c client.Client, ns string) {
	crds, err := config.CRDs(config.HOC)
	if err != nil {
		t.Fatal(err)
	}
	cluster := map[string]bool{}
	for _, crd := range crds {
		cluster[crd.Spec.Names.Kind] = crd.Spec.Scope == apiextensionsv1.ClusterScoped
	}
	for _, row := range rulesOfHOC {
		in := ns
		if cluster[row.kind] {
			in = ""
		}
		field := strings.NewReplacer("[]", "[0]", "{}", "").Replace(row.path)
		if row.was == "" {
			denied(t, row.String(), c.Create(t.Context(), parsed(t, row.apiVersion, row.kind, in, row.refused), client.DryRunAll), field, row.message)
			denied(t, row.String()+": its neighbor", c.Create(t.Context(), parsed(t, row.apiVersion, row.kind, in, row.taken), client.DryRunAll))
			continue
		}
		o := parsed(t, row.apiVersion, row.kind, in, row.was)
		status := map[string]any{"status": o.Object["status"]}
		create(t, c, o)
		if status["status"] != nil {
			text, err := json.Marshal(status)
			if err == nil {
				err = c.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, text))
			}
			if err != nil {
				t.Fatalf("%v: %v", row, err)
			}
		}
		denied(t, row.String(), c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(row.refused)), client.DryRunAll), field, row.message)
		denied(t, row.String()+": its neighbor", c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(row.taken)), client.DryRunAll))
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

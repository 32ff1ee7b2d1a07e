package kube

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
)

const (
	kaasV1    = "kaas.mirantis.com/v1alpha1"
	lcmV1     = "lcm.mirantis.com/v1alpha1"
	clusterV1 = "cluster.k8s.io/v1alpha1"
	iamV1     = "iam.mirantis.com/v1alpha1"
	ipamV1    = "ipam.mirantis.com/v1alpha1"
	metal3V1  = "metal3.io/v1alpha1"
)

// parsed returns an object from its JSON, which has neither kind nor name.
func parsed(t *testing.T, apiVersion, kind, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	o := object(t, kind, namespace, text)
	o.SetAPIVersion(apiVersion)
	return o
}

// statements H8, H18 and H42: modules that change, orders of configs, and releases.
func TestAdmissionOfTheFamilyHOC(t *testing.T) {
	api := start(t, Config{Dir: t.TempDir(), Families: []string{config.HOC}})
	c := clientFor(t, api.RESTConfig())
	ns := freshNamespace(t, c)
	t.Run("kinds", func(t *testing.T) { kindsOfHOC(t, api) })
	t.Run("new objects", func(t *testing.T) { newObjectsOfHOC(t, c, ns) })
	t.Run("webhooks", func(t *testing.T) { webhooksOfHOC(t, c) })
	t.Run("unknown fields", func(t *testing.T) { strictOfHOC(t, c, ns) })
	t.Run("defaults", func(t *testing.T) { defaultsOfHOC(t, c, ns) })
	t.Run("changes", func(t *testing.T) { changesOfHOC(t, c, ns) })
	t.Run("secrets in other namespaces", func(t *testing.T) { foreignSecrets(t, c, ns) })
	t.Run("profiles in other namespaces", func(t *testing.T) { foreignProfiles(t, api.RESTConfig(), ns) })
	t.Run("each rule", func(t *testing.T) { eachRuleOfHOC(t, c, ns) })
}

// Without the family, the API serves none of its kinds.
func TestFamilyIsNotInstalledUnlessAskedFor(t *testing.T) {
	cs, err := kubernetes.NewForConfig(sharedAPI(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, gv := range []string{kaasV1, lcmV1, clusterV1, iamV1, ipamV1} {
		if _, err := cs.Discovery().ServerResourcesForGroupVersion(gv); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v, want not found", gv, err)
		}
	}
	if err := Install(t.Context(), sharedAPI(t).RESTConfig(), "hock"); err == nil || !strings.Contains(err.Error(), `no family "hock": use some of hoc`) {
		t.Errorf("Install of another family: %v", err)
	}
}

func kindsOfHOC(t *testing.T, api *API) {
	cs, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{} // scope, short names and columns by kind
	for _, gv := range []string{kaasV1, lcmV1, clusterV1, iamV1, ipamV1, metal3V1} {
		list, err := cs.Discovery().ServerResourcesForGroupVersion(gv)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range list.APIResources {
			if gv == metal3V1 && r.Name != "baremetalhostprofiles" { // the others are those of hosts
				continue
			}
			if strings.Contains(r.Name, "/") {
				got[r.Kind] += " +" + strings.SplitN(r.Name, "/", 2)[1]
				continue
			}
			scope := "cluster"
			if r.Namespaced {
				scope = "namespaced"
			}
			body, err := cs.RESTClient().Get().AbsPath("/apis/"+gv+"/"+r.Name).SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
			var table metav1.Table
			if err == nil {
				err = json.Unmarshal(body, &table)
			}
			if err != nil {
				t.Fatal(err)
			}
			var columns []string
			for _, c := range table.ColumnDefinitions[1:] {
				columns = append(columns, c.Name)
			}
			got[r.Kind] = fmt.Sprint(scope, " ", r.ShortNames, " ", strings.Join(columns, ",")) + got[r.Kind]
		}
	}
	want := map[string]string{
		"HostOSConfiguration":        "namespaced [hoc] Valid,Done,Modules,Failure,Error,Deprecated,Age +status",
		"HostOSConfigurationModules": "cluster [hocm] Modules,Age +status",
		"KaaSRelease":                "cluster [] Version,ClusterRelease,Age",
		"ClusterRelease":             "cluster [] Version,LCMType,Age",
		"Proxy":                      "namespaced [] Age",
		"PublicKey":                  "namespaced [] Age",
		"BareMetalHostCredential":    "namespaced [bmhc] Username,Ready,Error,Age +status",
		"BareMetalHostInventory":     "namespaced [bmhi] State,Consumer,BootMode,Online,Error,Age +status",
		"IPaddr":                     "namespaced [] Address,Subnet,Host,Age +status",
		"IpamHost":                   "namespaced [] L2Template,Addresses,Netconfig,Age +status",
		"L2Template":                 "namespaced [] Cluster,Phase,Reason,Age +status",
		"SubnetPool":                 "namespaced [] CIDR,Message,Age +status",
		"Subnet":                     "namespaced [] CIDR,Gateway,Capacity,Allocatable,Status,Age +status",
		"LCMCluster":                 "namespaced [] LCMType,Release,Requested,Ready,Age +status",
		"LCMMachine":                 "namespaced [] ClusterName,Type,State,InternalIP,Hostname,AgentVersion +status",
		"LCMClusterState":            "namespaced [] ClusterName,Type,Arg,Value,Actual,Message +status",
		"ClusterMaintenanceRequest":  "cluster [] Scope,Age",
		"NodeMaintenanceRequest":     "cluster [] Node,Scope,Age",
		"ClusterWorkloadLock":        "cluster [] Controller,State,Error,Age +status",
		"NodeWorkloadLock":           "cluster [] Node,Controller,State,Error,Age +status",
		"NodeDeletionRequest":        "cluster [] Node,Age",
		"ClusterDeploymentStatus":    "namespaced [] Release,Stages,Age",
		"GracefulRebootRequest":      "namespaced [] State,Message,Age +status",
		"UpdateGroup":                "namespaced [] Cluster,Index,Concurrent,Reboot,Age",
		"ClusterUpdatePlan":          "namespaced [] Cluster,Source,Target,Status,Age +status",
		"BareMetalHostProfile":       "namespaced [bmhp] Root disk,Min size,Max size,Type,Age",
		"HelmBundle":                 "namespaced [] Release,Releases,Age +status",
		"IAMRole":                    "cluster [] Scope,Description",
		"IAMUser":                    "cluster [] User,ID",
		"Scope":                      "cluster [] Namespace,Cluster,Roles,Age",
		"IAMGlobalRoleBinding":       "cluster [] User,Role",
		"IAMRoleBinding":             "namespaced [] User,Role",
		"IAMClusterRoleBinding":      "namespaced [] Cluster,User,Role",
		"Cluster":                    "namespaced [] Release,Requested,Ready,Age +status",
		"Machine":                    "namespaced [] Cluster,Host,Status,Ready,Age +status",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds (-want +got):\n%s", diff)
	}
}

const sha256Hex = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// configs is a HostOSConfiguration with a list of configs.
func configs(list string) string { return `{"spec":{"configs":[` + list + `]}}` }

// modules are HostOSConfigurationModules with a list of modules.
func modules(list string) string { return `{"spec":{"modules":[` + list + `]}}` }

// machines is an LCMCluster with types of machines.
func machines(types string) string {
	return `{"spec":{"machinesTypes":` + types + `,"managementClusterEndpoint":{"host":"192.0.2.1","port":6443},"helmControllerServiceAccountName":"helm"}}`
}

var clusterScoped = map[string]bool{
	"HostOSConfigurationModules": true, "ClusterMaintenanceRequest": true, "NodeMaintenanceRequest": true,
	"ClusterWorkloadLock": true, "NodeWorkloadLock": true, "NodeDeletionRequest": true,
}

// allOfAProfile is a BareMetalHostProfile with each field of the reference.
const allOfAProfile = `{"spec":{
	"preDeployScript":"#!/bin/sh\ntrue","postDeployScript":"#!/bin/bash -ex\ntrue",
	"grubConfig":{"toDevices":["/dev/sda"],"toDeviceFailOver":true,"defaultGrubOptions":["GRUB_TIMEOUT=30"]},
	"devices":[{"device":{"byName":"/dev/sda","workBy":"by_id,by_wwn, by_path,by_name","minSize":"60Gi","maxSize":"2Ti","type":"SSD","wipe":true,"useFor":["root"]},
		"partitions":[{"name":"uefi","size":"200Mi","partflags":["esp"],"wipe":true},{"name":"lvm","size":0}]}],
	"softRaidDevices":[{"name":"/dev/md0","level":"raid1","metadata":"1.0","devices":[{"partition":"uefi"},{"partition":"lvm"}]}],
	"volumeGroups":[{"name":"vg","devices":[{"partition":"lvm"}]}],
	"logicalVolumes":[{"name":"root","vg":"vg","size":0,"type":"linear"}],
	"fileSystems":[{"mountPoint":"/","mountOpts":"noatime","opts":"-L root","logicalVolume":"root","fileSystem":"ext4"},{"softRaidDevice":"/dev/md0","fileSystem":"ext4"},{"partition":"uefi","fileSystem":"vfat"}],
	"rootFSURL":"https://images.example/root.tgz",
	"kernelParameters":{"sysctl":{"net.ipv4.conf.*.rp_filter":"0","kernel/panic":"30"},"modules":[{"filename":"kvm_intel.conf","content":"options kvm_intel nested=1\n"}]}}}`

// profileDevice is a BareMetalHostProfile with one disk of these fields.
func profileDevice(fields string) string { return `{"spec":{"devices":[{"device":{` + fields + `}}]}}` }

// webhooksOfHOC has the API check the expressions of the webhooks' configurations.
func webhooksOfHOC(t *testing.T, c client.Client) {
	for _, file := range []string{"hostosconfigurationmodules.yaml", "cluster.yaml", "fields.yaml"} {
		hook, err := config.Webhook(file, "https://192.0.2.1/hook", "")
		if err != nil {
			t.Fatal(err)
		}
		denied(t, file, c.Create(t.Context(), hook, client.DryRunAll))
		hook.Webhooks[0].MatchConditions[0].Expression += " &&"
		denied(t, file+" with a mistake", c.Create(t.Context(), hook, client.DryRunAll), "matchConditions[0].expression")
	}
}

// strictOfHOC creates objects as kubectl does, which asks for the refusal of unknown fields.
func strictOfHOC(t *testing.T, c client.Client, ns string) {
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	for _, tt := range []struct {
		apiVersion, kind, text string
		want                   []string
	}{
		{ipamV1, "L2Template", `{"spec":{"npTemplate":"version: 2","newer":true,"l3Layout":[{"subnetName":"a","newer":1}]}}`, nil},
		{kaasV1, "Proxy", `{"spec":{"httpProxy":"http://a","newer":true}}`, nil},
		{clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"hostSelector":{"matchLabel":{"a":"b"}}}}}}`, []string{"unknown field", "hostSelector.matchLabel"}},
		{kaasV1, "GracefulRebootRequest", `{"spec":{"machine":["a"]}}`, []string{"unknown field", "spec.machine"}},
		{metal3V1, "BareMetalHostProfile", profileDevice(`"byname":"/dev/sda"`), []string{"unknown field", "byname"}},
		{metal3V1, "BareMetalHostProfile", `{"spec":{"devices":[{"device":{"minSizeGiB":60.5,"wipeDevice":{"eraseMetadata":{"enabled":true,"newer":1}}},"partitions":[{"sizeGiB":0.2}]}],
			"grubConfig":{"toDeviceFailOver":"/dev/sdb"},"volumeGroups":[{"name":"a","devices":[{"type":"hdd","softRaidDevice":"/dev/md0"}]}]}}`, nil},
		{clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"ansibleExtraPassthrough":{"a":[1]}}}}}`, nil},
		{clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"ansibleExtraPassthrough":"a: 1"}}}}`, nil},
		{clusterV1, "Cluster", `{"spec":{"providerSpec":{"value":{"helmReleases":[{"name":"a","enabled":false}]}}}}`, nil},
	} {
		denied(t, tt.kind+": "+tt.text, strict.Create(t.Context(), parsed(t, tt.apiVersion, tt.kind, ns, tt.text), client.DryRunAll), tt.want...)
	}
}

func newObjectsOfHOC(t *testing.T, c client.Client, ns string) {
	const config1 = `"module":"sysctl","moduleVersion":"1.0.0"`
	for _, tt := range []struct {
		name, apiVersion, kind, text string
		want                         []string // nil: it is accepted
	}{
		{"the reference's example", kaasV1, "HostOSConfiguration", `{"spec":{"machineSelector":{"matchLabels":{"day2-custom-label":"true"}},"configs":[{"module":"sample-module",
			"moduleVersion":"1.0.0","description":"demo","order":1,"phase":"reconfigure","values":{"foo":1,"deep":{"list":[1,"a",null]}},"secretValues":{"name":"s","namespace":"` + ns + `"}}]}}`, nil},
		{"no selector, no values", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `}`), nil},
		{"no configs", kaasV1, "HostOSConfiguration", configs(``), []string{"spec.configs", "at least 1"}},
		{"no spec", kaasV1, "HostOSConfiguration", `{}`, []string{"spec", "Required"}},
		{"no version", kaasV1, "HostOSConfiguration", configs(`{"module":"sysctl"}`), []string{"moduleVersion", "Required"}},
		{"version of two numbers", kaasV1, "HostOSConfiguration", configs(`{"module":"sysctl","moduleVersion":"1.0"}`), []string{"spec.configs[0].moduleVersion"}},
		{"version with a v", kaasV1, "HostOSConfiguration", configs(`{"module":"sysctl","moduleVersion":"v1.0.0"}`), []string{"moduleVersion"}},
		{"version with a leading zero", kaasV1, "HostOSConfiguration", configs(`{"module":"sysctl","moduleVersion":"1.01.0"}`), []string{"moduleVersion"}},
		{"pre-release", kaasV1, "HostOSConfiguration", configs(`{"module":"sysctl","moduleVersion":"1.2.7-dev.1+build.5"}`), nil},
		{"name that is a path", kaasV1, "HostOSConfiguration", configs(`{"module":"../sysctl","moduleVersion":"1.0.0"}`), []string{"spec.configs[0].module"}},
		{"name with underscores", kaasV1, "HostOSConfiguration", configs(`{"module":"grub_settings","moduleVersion":"1.0.0"}`), nil},
		{"order 0", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `,"order":0}`), []string{"spec.configs[0].order", "greater than or equal to 1"}},
		{"order 1", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `,"order":1}`), nil},
		{"order 1024", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `,"order":1024}`), nil},
		{"order 1025", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `,"order":1025}`), []string{"spec.configs[0].order", "less than or equal to 1024"}},
		{"an order twice", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `,"order":7},{"module":"ntp","moduleVersion":"1.0.0","order":7}`), []string{"spec.configs", "two configs have the same order"}},
		{"no order twice", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `},{"module":"ntp","moduleVersion":"1.0.0"},{"module":"package","moduleVersion":"1.0.0","order":3}`), nil},
		{"another phase", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `,"phase":"deploy"}`), []string{"phase", `"reconfigure"`}},
		{"values that are a list", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `,"values":[1]}`), []string{"values", "object"}},
		{"secret without a name", kaasV1, "HostOSConfiguration", configs(`{` + config1 + `,"secretValues":{"namespace":"a"}}`), []string{"secretValues.name"}},

		{"modules", kaasV1, "HostOSConfigurationModules", modules(`{"name":"a","version":"1.0.0","sha256sum":"` + sha256Hex + `","url":"https://repo/a-1.0.0.tgz"},{"name":"a","version":"1.1.0","sha256sum":"` + sha256Hex + `"}`), nil},
		{"a proxy with a password", kaasV1, "Proxy", `{"spec":{"httpProxy":"http://u:p%20w@[fd00::1]:3128","httpsProxy":"https://proxy.example","noProxy":"10.0.0.0/8,.example,[::1],localhost:80"}}`, nil},
		{"a proxy without URLs", kaasV1, "Proxy", `{"spec":{"noProxy":"a"}}`, []string{"give httpProxy, httpsProxy, or both"}},
		{"a proxy of another scheme", kaasV1, "Proxy", `{"spec":{"httpProxy":"socks5://u:secretword@a"}}`, []string{"spec.httpProxy", "give a URL of http or https"}},
		{"a proxy without a scheme", kaasV1, "Proxy", `{"spec":{"httpsProxy":"proxy.example:3128"}}`, []string{"spec.httpsProxy", "give a URL of http or https"}},
		{"a proxy with a line break", kaasV1, "Proxy", `{"spec":{"httpProxy":"http://a\nb=c"}}`, []string{"spec.httpProxy"}},
		{"a proxy with a quote", kaasV1, "Proxy", `{"spec":{"httpProxy":"http://u:'@a"}}`, []string{"spec.httpProxy"}},
		{"direct hosts with a line break", kaasV1, "Proxy", `{"spec":{"httpProxy":"http://a","noProxy":"a\nb=c"}}`, []string{"spec.noProxy", "separated by commas"}},
		{"a scope of a cluster without its namespace", iamV1, "Scope", `{"spec":{"cluster":"c1","roles":[]}}`, []string{"give the cluster's namespace"}},
		{"a scope of Keycloak", iamV1, "Scope", `{"spec":{"namespace":"lab","cluster":"c1","roles":[{"role":"cluster-admin","client":"k8s","scope":"m:k8s:lab:c1@cluster-admin"}]}}`, nil},
		{"another scope than Keycloak's", iamV1, "Scope", `{"spec":{"roles":[{"role":"user","client":"kaas","scope":"kaas@user"}]}}`, []string{"spec.roles[0].scope"}},
		{"a Helm release of a chart and a URL", lcmV1, "HelmBundle", `{"spec":{"releases":[{"name":"a","chart":"a","chartURL":"http://r/a.tgz"}]}}`, []string{"give either chart or chartURL"}},
		{"a Helm release of no chart", lcmV1, "HelmBundle", `{"spec":{"releases":[{"name":"a"}]}}`, []string{"give either chart or chartURL"}},
		{"a module twice", kaasV1, "HostOSConfigurationModules", modules(`{"name":"a","version":"1.0.0","sha256sum":"` + sha256Hex + `"},{"name":"a","version":"1.0.0","sha256sum":"` + sha256Hex + `"}`), []string{"spec.modules[1]", "Duplicate"}},
		{"no digest", kaasV1, "HostOSConfigurationModules", modules(`{"name":"a","version":"1.0.0"}`), []string{"sha256sum", "Required"}},
		{"a digest that is short", kaasV1, "HostOSConfigurationModules", modules(`{"name":"a","version":"1.0.0","sha256sum":"abc"}`), []string{"sha256sum"}},
		{"a URL of a file", kaasV1, "HostOSConfigurationModules", modules(`{"name":"a","version":"1.0.0","sha256sum":"` + sha256Hex + `","url":"file:///etc/passwd"}`), []string{"url"}},

		{"cluster with empty items", lcmV1, "LCMCluster", machines(`{"control":[{"name":"a","runner":"downloader","version":"v1","phase":"reconfigure"}],"worker":[]}`), nil},
		{"another runner", lcmV1, "LCMCluster", machines(`{"control":[{"name":"a","runner":"shell","version":"v1"}]}`), []string{"runner", `"downloader", "bash", "ansible"`}},
		{"another phase of an item", lcmV1, "LCMCluster", machines(`{"control":[{"name":"a","runner":"bash","version":"v1","phase":"boot"}]}`), []string{"phase", `"prepare", "deploy", "reconfigure"`}},
		{"no endpoint", lcmV1, "LCMCluster", `{"spec":{"machinesTypes":{}}}`, []string{"managementClusterEndpoint", "helmControllerServiceAccountName"}},
		{"an empty machine", lcmV1, "LCMMachine", `{}`, nil},
		{"machine of another type", lcmV1, "LCMMachine", `{"spec":{"type":"master"}}`, []string{"spec.type", `"control", "worker", "bastion", "unassigned"`}},
		{"machine of another distribution", lcmV1, "LCMMachine", `{"spec":{"lcmType":"kubeadm"}}`, []string{"spec.lcmType"}},
		{"an item twice", lcmV1, "LCMMachine", `{"spec":{"stateItems":[{"name":"a","runner":"bash","version":"v1"},{"name":"a","runner":"bash","version":"v1"}]}}`, []string{"stateItems", "Duplicate"}},

		{"drain", lcmV1, "LCMClusterState", `{"spec":{"clusterName":"c","type":"cordon-drain","arg":"w-0","value":"true"}}`, nil},
		{"another type", lcmV1, "LCMClusterState", `{"spec":{"clusterName":"c","type":"drain","arg":"w-0","value":"true"}}`, []string{"spec.type", "helm-deployed"}},
		{"a value that is no string", lcmV1, "LCMClusterState", `{"spec":{"clusterName":"c","type":"cordon-drain","value":true}}`, []string{"spec.value"}},
		{"another value", lcmV1, "LCMClusterState", `{"spec":{"clusterName":"c","type":"cordon-drain","value":"yes"}}`, []string{"spec.value", `"true", "false"`}},
		{"scope os", lcmV1, "ClusterMaintenanceRequest", `{"spec":{"scope":"os"}}`, nil},
		{"another scope", lcmV1, "ClusterMaintenanceRequest", `{"spec":{"scope":"reboot"}}`, []string{"spec.scope", `"drain", "os"`}},
		{"scope drain", lcmV1, "NodeMaintenanceRequest", `{"spec":{"nodeName":"w-0","scope":"drain"}}`, nil},
		{"no node", lcmV1, "NodeMaintenanceRequest", `{"spec":{"scope":"drain"}}`, []string{"spec.nodeName", "Required"}},
		{"of a controller", lcmV1, "ClusterWorkloadLock", `{"spec":{"controllerName":"openstack"}}`, nil},
		{"of nobody", lcmV1, "ClusterWorkloadLock", `{"spec":{}}`, []string{"spec.controllerName", "Required"}},
		{"of a node", lcmV1, "NodeWorkloadLock", `{"spec":{"nodeName":"w-0","controllerName":"ceph"}}`, nil},
		{"of no node", lcmV1, "NodeWorkloadLock", `{"spec":{"controllerName":"ceph"}}`, []string{"spec.nodeName", "Required"}},
		{"of a node", lcmV1, "NodeDeletionRequest", `{"spec":{"nodeName":"w-0"}}`, nil},
		{"of an empty name", lcmV1, "NodeDeletionRequest", `{"spec":{"nodeName":""}}`, []string{"spec.nodeName"}},

		{"group of machines", kaasV1, "UpdateGroup", `{"spec":{"index":0,"concurrentUpdates":3,"rebootIfUpdateRequires":true}}`, nil},
		{"group that is never updated", kaasV1, "UpdateGroup", `{"spec":{"concurrentUpdates":0}}`, []string{"spec.concurrentUpdates", "greater than or equal to 1"}},
		{"group before the first", kaasV1, "UpdateGroup", `{"spec":{"index":-1}}`, []string{"spec.index"}},

		{"machine", clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"apiVersion":"baremetal.k8s.io/v1alpha1","kind":"BareMetalMachineProviderSpec","hostSelector":{"matchLabels":{"a":"b"}}}}}}`, nil},
		{"machine without a provider", clusterV1, "Machine", `{"spec":{}}`, []string{"spec.providerSpec", "Required"}},
		{"another gate", clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"day1Provisioning":"later"}}}}`, []string{"day1Provisioning", `"manual", "auto"`}},
		{"machine with a field of another version", clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"secureOverlay":true,"day1Provisioning":"auto","day1Deployment":"auto","deletionPolicy":"graceful","delete":false}}}}`, nil},
		{"misspelt policy", clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"deletionPolcy":"graceful"}}}}`, []string{"unknown field that is spelt like deletionPolicy: correct the name"}},
		{"selector in lower case", clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"hostselector":{"matchLabels":{"a":"b"}}}}}}`, []string{"spelt like hostSelector"}},
		{"misspelt gate", clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"day1Provisoning":"manual"}}}}`, []string{"spelt like day1Provisioning"}},
		{"misspelt limit", clusterV1, "Cluster", `{"spec":{"providerSpec":{"value":{"maxWorkersUpgradeCount":2}}}}`, []string{"spelt like maxWorkerUpgradeCount"}},
		{"both limits", clusterV1, "Cluster", `{"spec":{"providerSpec":{"value":{"maxWorkerUpgradeCount":2,"maxWorkerPrepareCount":3,"secureOverlay":true}}}}`, nil},
		{"template without clusterRef", ipamV1, "L2Template", `{"metadata":{"labels":{"cluster.sigs.k8s.io/cluster-name":"c1"}},"spec":{"npTemplate":"version: 2","l3Layout":[{"subnetName":"lcm","scope":"global"}]}}`, nil},
		{"older spelling of machinesTypes", lcmV1, "LCMCluster", `{"spec":{"machineTypes":{"control":[]},"managementClusterEndpoint":{"host":"a","port":1},"helmControllerServiceAccountName":"h"}}`, nil},
		{"neither spelling of machinesTypes", lcmV1, "LCMCluster", `{"spec":{"managementClusterEndpoint":{"host":"a","port":1},"helmControllerServiceAccountName":"h"}}`, []string{"give machinesTypes"}},
		{"another deletion policy", clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"deletionPolicy":"soon"}}}}`, []string{"deletionPolicy"}},

		{"profile with all fields", metal3V1, "BareMetalHostProfile", allOfAProfile, nil},
		{"profile without fields", metal3V1, "BareMetalHostProfile", `{"spec":{}}`, nil},
		{"least size above the greatest", metal3V1, "BareMetalHostProfile", profileDevice(`"minSize":"1Ti","maxSize":"60Gi"`), []string{"spec.devices[0].device", "minSize is above maxSize"}},
		{"equal sizes", metal3V1, "BareMetalHostProfile", profileDevice(`"minSize":"1024Mi","maxSize":"1Gi"`), nil},
		{"size without a unit", metal3V1, "BareMetalHostProfile", profileDevice(`"minSize":"64424509440"`), nil},
		{"size below 0", metal3V1, "BareMetalHostProfile", profileDevice(`"minSize":"-1Gi"`), []string{"spec.devices[0].device.minSize", "give a size such as 60Gi"}},
		{"size of another form", metal3V1, "BareMetalHostProfile", profileDevice(`"maxSize":"60GiB"`), []string{"spec.devices[0].device.maxSize"}},
		{"name of no path", metal3V1, "BareMetalHostProfile", profileDevice(`"byName":"sda"`), []string{"spec.devices[0].device.byName", "/dev/"}},
		{"another way to name a disk", metal3V1, "BareMetalHostProfile", profileDevice(`"workBy":"by_id,by_uuid"`), []string{"spec.devices[0].device.workBy", "by_id, by_path, by_wwn and by_name"}},
		{"another type of disk", metal3V1, "BareMetalHostProfile", profileDevice(`"type":"tape"`), []string{"spec.devices[0].device.type", "hdd, ssd and nvme"}},
		{"script without an interpreter", metal3V1, "BareMetalHostProfile", `{"spec":{"preDeployScript":"true"}}`, []string{"spec.preDeployScript", "begin with #!"}},
		{"script without an interpreter", metal3V1, "BareMetalHostProfile", `{"spec":{"postDeployScript":"true"}}`, []string{"spec.postDeployScript", "begin with #!"}},
		{"file system on two parts", metal3V1, "BareMetalHostProfile", `{"spec":{"fileSystems":[{"fileSystem":"ext4","partition":"a","logicalVolume":"b"}]}}`, []string{"spec.fileSystems[0]", "give one of partition"}},
		{"value of two lines", metal3V1, "BareMetalHostProfile", `{"spec":{"kernelParameters":{"sysctl":{"kernel.panic":"1\nkernel.x=2"}}}}`, []string{"spec.kernelParameters.sysctl", "one line"}},
		{"name of two lines", metal3V1, "BareMetalHostProfile", `{"spec":{"kernelParameters":{"sysctl":{"kernel.panic\nx":"1"}}}}`, []string{"spec.kernelParameters.sysctl", "letters, digits"}},
		{"file of another directory", metal3V1, "BareMetalHostProfile", `{"spec":{"kernelParameters":{"modules":[{"filename":"../kvm.conf","content":""}]}}}`, []string{"spec.kernelParameters.modules[0].filename", "without a directory"}},
		{"file twice", metal3V1, "BareMetalHostProfile", `{"spec":{"kernelParameters":{"modules":[{"filename":"a.conf","content":""},{"filename":"a.conf","content":""}]}}}`, []string{"spec.kernelParameters.modules[1]", "Duplicate"}},
		{"cluster", clusterV1, "Cluster", `{"spec":{"providerSpec":{"value":{"release":"mosk-1","credentials":"bmc"}}}}`, nil},
	} {
		in := ns
		if clusterScoped[tt.kind] {
			in = ""
		}
		denied(t, tt.kind+": "+tt.name, c.Create(t.Context(), parsed(t, tt.apiVersion, tt.kind, in, tt.text), client.DryRunAll), tt.want...)
	}
}

func defaultsOfHOC(t *testing.T, c client.Client, ns string) {
	for _, tt := range []struct {
		apiVersion, kind, text string
		want                   map[string]any // by path
	}{
		{kaasV1, "HostOSConfiguration", configs(`{"module":"a","moduleVersion":"1.0.0","values":{"unknown":{"to":"us"}}}`), map[string]any{
			"spec.configs[0].phase": "reconfigure", "spec.configs[0].values.unknown.to": "us",
		}},
		{lcmV1, "LCMCluster", machines(`{}`), map[string]any{
			"spec.tokenTTL": "24h", "spec.minTokenRemainingTTL": "1h", "spec.dedicatedControlPlane": true, "spec.maxWorkerUpgradeCount": int64(1), "spec.mkeUpgradeAttempts": int64(5),
		}},
		{lcmV1, "LCMMachine", `{"spec":{"clusterName":"c"}}`, map[string]any{"spec.type": "unassigned"}},
		{clusterV1, "Machine", `{"spec":{"providerSpec":{"value":{"of":"another version"}}}}`, map[string]any{
			"spec.providerSpec.value.deletionPolicy": "unsafe", "spec.providerSpec.value.day1Provisioning": "manual", "spec.providerSpec.value.day1Deployment": "manual",
			"spec.providerSpec.value.of": "another version",
		}},
		{kaasV1, "UpdateGroup", `{}`, map[string]any{"spec.index": int64(1), "spec.concurrentUpdates": int64(1)}},
	} {
		o := parsed(t, tt.apiVersion, tt.kind, ns, tt.text)
		if err := c.Create(t.Context(), o, client.DryRunAll); err != nil {
			t.Errorf("%s: %v", tt.kind, err)
			continue
		}
		for path, want := range tt.want {
			if diff := cmp.Diff(want, at(o.Object, path)); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", tt.kind, path, diff)
			}
		}
	}
}

// at returns the value at a path of fields and indexes 0.
func at(v any, path string) any {
	for field := range strings.SplitSeq(path, ".") {
		name, first := strings.CutSuffix(field, "[0]")
		m, _ := v.(map[string]any)
		if v = m[name]; first {
			list, _ := v.([]any)
			if len(list) == 0 {
				return nil
			}
			v = list[0]
		}
	}
	return v
}

// clusterRelease and kaasRelease are releases.
const (
	clusterRelease = `{"spec":{"version":"1.0.0","helm":{"releases":[{"name":"a","values":{"a":1}}]},"machineTypes":{"worker":[{"runner":"bash","name":"a","version":"v1"}]}}}`
	kaasRelease    = `{"spec":{"version":"2.30.0","clusterRelease":"mosk-1","supportedClusterReleases":[{"name":"mosk-1","version":"1.0.0"}]}}`
)

func changesOfHOC(t *testing.T, c client.Client, ns string) {
	module := func(version, sum, url string) string {
		return `{"name":"a","version":"` + version + `","sha256sum":"` + sum + `","url":"` + url + `"}`
	}
	other := strings.Repeat("f", 64)
	for _, tt := range []struct {
		name, apiVersion, kind string
		was, patch             string
		want                   []string
	}{
		{"another digest of a version", kaasV1, "HostOSConfigurationModules", modules(module("1.0.0", sha256Hex, "http://r/a")), modules(module("1.0.0", other, "http://r/a")), []string{"never change: add a new version"}},
		{"another URL of a version", kaasV1, "HostOSConfigurationModules", modules(module("1.0.0", sha256Hex, "http://r/a")), modules(module("1.0.0", sha256Hex, "http://r/b")), []string{"never change: add a new version"}},
		{"no URL of a version", kaasV1, "HostOSConfigurationModules", modules(module("1.0.0", sha256Hex, "http://r/a")), modules(`{"name":"a","version":"1.0.0","sha256sum":"` + sha256Hex + `"}`), []string{"never change: add a new version"}},
		{"a version more", kaasV1, "HostOSConfigurationModules", modules(module("1.0.0", sha256Hex, "http://r/a")), modules(module("1.1.0", other, "http://r/b") + "," + module("1.0.0", sha256Hex, "http://r/a")), nil},
		{"role of a binding", iamV1, "IAMRoleBinding", `{"role":{"name":"user"},"user":{"name":"ann"}}`, `{"role":{"name":"operator"}}`, []string{"role of a binding never changes"}},
		{"scope of a role", iamV1, "IAMRole", `{"scope":"namespace"}`, `{"scope":"global"}`, []string{"the scope of a role never changes"}},
		{"version of a release", kaasV1, "ClusterRelease", clusterRelease, `{"spec":{"version":"1.0.1"}}`, []string{"clusterreleases.kaas.mirantis.com", "a release never changes"}},
		{"values of a release's chart", kaasV1, "ClusterRelease", clusterRelease, strings.Replace(clusterRelease, `"a":1`, `"a":2`, 1), []string{"a release never changes"}},
		{"label of a release", kaasV1, "ClusterRelease", clusterRelease, `{"metadata":{"labels":{"a":"b"}}}`, nil},
		{"upgrade path", kaasV1, "KaaSRelease", kaasRelease, `{"spec":{"supportedClusterReleases":[]}}`, []string{"kaasreleases.kaas.mirantis.com", "a release never changes"}},
		{"the same spec", kaasV1, "KaaSRelease", kaasRelease, kaasRelease, nil},
		{"a version less", kaasV1, "HostOSConfigurationModules", modules(module("1.0.0", sha256Hex, "http://r/a")), modules(``), nil},
	} {
		in := ns
		if slices.Contains([]string{"HostOSConfigurationModules", "ClusterRelease", "KaaSRelease"}, tt.kind) {
			in = ""
		}
		o := parsed(t, tt.apiVersion, tt.kind, in, tt.was)
		if err := c.Create(t.Context(), o); err != nil {
			t.Errorf("%s: %s: %v", tt.kind, tt.name, err)
			continue
		}
		denied(t, tt.kind+": "+tt.name, c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(tt.patch))), tt.want...)
		if err := c.Delete(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// foreignSecrets refers to Secrets of other namespaces, as an administrator.
func foreignSecrets(t *testing.T, admin client.Client, ns string) {
	refers := func(name, namespace string) *unstructured.Unstructured {
		return parsed(t, kaasV1, "HostOSConfiguration", ns, `{"metadata":{"name":"`+name+`"},"spec":{"configs":[{"module":"a","moduleVersion":"1.0.0","secretValues":{"name":"s","namespace":"`+namespace+`"}}]}}`)
	}
	denied(t, "another namespace", admin.Create(t.Context(), refers("foreign", "kaas")),
		`hostosconfigurations.kaas.mirantis.com "foreign" is forbidden: secretValues: Secret "s" is in the namespace "kaas", and agents read those of "`+ns+`" alone: copy it there`)
	denied(t, "the object's namespace", admin.Create(t.Context(), refers("here", ns), client.DryRunAll))
	denied(t, "no namespace", admin.Create(t.Context(), refers("here", "")))
	edit := func(patch string) error {
		return admin.Patch(t.Context(), refers("here", ""), client.RawPatch(types.JSONPatchType, []byte(patch)), client.DryRunAll)
	}
	denied(t, "an edit of something else", edit(`[{"op":"add","path":"/spec/configs/0/order","value":3}]`))
	denied(t, "an edit of the reference", edit(`[{"op":"replace","path":"/spec/configs/0/secretValues","value":{"name":"x","namespace":"kaas"}}]`), `Secret "x" is in the namespace "kaas"`)
}

package lab

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/emulator/rack/control"
	"github.com/metalab-dev/metalab/scenarios/view"
)

func TestAddressOfABMCIsThatOfTheNewLab(t *testing.T) {
	h := control.Host{BMCAddress: "redfish-virtualmedia://127.0.0.1:9000/redfish/v1/Systems/1", IPMI: "127.0.0.1:9001"}
	for old, want := range map[string]string{
		"redfish-virtualmedia://127.64.0.1:8443/redfish/v1/Systems/1": "redfish-virtualmedia://127.0.0.1:9000/redfish/v1/Systems/1",
		"idrac-redfish+https://127.64.0.1:8443/redfish/v1/Systems/1":  "idrac-redfish+https://127.0.0.1:9000/redfish/v1/Systems/1",
		"redfish://bmc-0.example.com/redfish/v1/Systems/1":            "redfish://bmc-0.example.com/redfish/v1/Systems/1",
		"ipmi://127.64.0.1:6230":                                      "ipmi://127.0.0.1:9001",
		"127.64.0.1:6230":                                             "127.0.0.1:9001",
	} {
		if got := addressOf(old, h); got != want {
			t.Errorf("addressOf(%q) = %q, want %q", old, got, want)
		}
	}
	if got := addressOf("ipmi://127.64.0.1:6230", control.Host{BMCAddress: h.BMCAddress}); got != "ipmi://127.64.0.1:6230" {
		t.Errorf("addressOf() of a host without IPMI = %q, want the address as it was", got)
	}
}

func TestObjectsThatTheRecordingDoesNotHaveAreNamed(t *testing.T) {
	host := view.Described{Kind: "BareMetalHost", Name: "default/node-0", YAML: `
metadata: {name: node-0, namespace: default}
spec:
  bmc: {address: x, credentialsName: node-0-bmc}
  image: {url: "http://me:xxxxx@images/a.img", ociAuthSecretName: pull}
  userData: {name: user, namespace: other}
  networkData: {name: net}
  preprovisioningNetworkDataName: pre
`}
	got, err := RestoreObjects(t.TempDir(), view.Recorded{Hosts: []view.HostObjects{{Host: "node-0", Objects: []view.Described{
		host, {Kind: "Machine", Name: "default/worker-0", YAML: "kind: Machine"}, {Kind: "Events", Name: "default/node-0", YAML: "text"}, {Kind: "PreprovisioningImage", Name: "default/node-0"}, {Kind: "HardwareData", Name: "default/node-0"},
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Secret default/net (networkData of node-0)", "Secret default/pre (preprovisioningNetworkDataName of node-0)", "Secret default/pull (image.ociAuthSecretName of node-0)",
		"Secret other/user (userData of node-0)", "the password in a URL of BareMetalHost default/node-0", "Machine default/worker-0, which uses a host",
	}
	if len(got) != len(want) {
		t.Fatalf("RestoreObjects() = %q, want %d lines", got, len(want))
	}
	for i, prefix := range want {
		if !strings.HasPrefix(got[i], prefix+": ") {
			t.Errorf("line %d = %q, want %q and the fix", i, got[i], prefix)
		}
	}
}

// A condition of the latest generation stays one, an older one does not become one: a new
// object begins at generation 1.
func TestConditionsFitTheNewGeneration(t *testing.T) {
	for _, tt := range []struct{ generation, observed, want int64 }{{3, 3, 1}, {2, 1, 0}, {1, 1, 1}} {
		c := map[string]any{"type": "Valid", "observedGeneration": tt.observed}
		asObserved(map[string]any{"conditions": []any{c}}, tt.generation)
		if got := c["observedGeneration"]; got != tt.want {
			t.Errorf("observedGeneration %d of generation %d became %v, want %d", tt.observed, tt.generation, got, tt.want)
		}
	}
}

// The garbage collector deletes an object whose owners are not there.
func TestOwnersThatAreNotRestoredAreRemoved(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{
		"name": "node-0", "uid": "old", "resourceVersion": "7", "deletionTimestamp": "2031-01-02T03:04:05Z", "finalizers": []any{"a/b"},
		"ownerReferences": []any{
			map[string]any{"apiVersion": "v1", "kind": "BareMetalHost", "name": "node-0", "uid": "host", "controller": true},
			map[string]any{"apiVersion": "v1", "kind": "Cluster", "name": "x", "uid": "gone"},
		},
	}}}
	b := restoration{made: map[types.UID]types.UID{"host": "new"}}
	b.strip(o)
	owners := o.GetOwnerReferences()
	if len(owners) != 1 || owners[0].UID != "new" || owners[0].Controller == nil || !*owners[0].Controller {
		t.Errorf("owners = %+v, want the host with its new UID", owners)
	}
	if o.GetUID() != "" || o.GetResourceVersion() != "" || o.GetDeletionTimestamp() != nil || !slices.Equal(o.GetFinalizers(), []string{"a/b"}) {
		t.Errorf("metadata = %v, want the finalizers and nothing of the API's", o.Object["metadata"])
	}
}

package kube

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// B-01: the group, version, kinds, short names and status subresources that discovery lists,
// and the columns that kubectl get prints of a host.
func TestKindsAndColumnsOfTheGroup(t *testing.T) {
	api := sharedAPI(t)
	cs, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	list, err := cs.Discovery().ServerResourcesForGroupVersion("metal3.io/v1alpha1")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{} // short names by kind; the status subresource by KIND/status
	for _, r := range list.APIResources {
		switch {
		case r.Name == "baremetalhosts/status":
			got[r.Kind+"/status"] = nil
		case r.Name == "baremetalhosts" && !r.Namespaced:
			t.Error("BareMetalHost is not namespaced")
			fallthrough
		default:
			if _, seen := got[r.Kind]; !seen {
				got[r.Kind] = r.ShortNames
			}
		}
	}
	want := map[string][]string{
		"BareMetalHost": {"bmh", "bmhost"}, "BareMetalHost/status": nil, "HostFirmwareSettings": {"hfs"}, "FirmwareSchema": nil,
		"HostFirmwareComponents": nil, "HostUpdatePolicy": nil, "HardwareData": {"hd"}, "DataImage": nil,
		"PreprovisioningImage": {"ppimg"}, "BMCEventSubscription": {"bes", "bmcevent"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("short names by kind (-want +got):\n%s", diff)
	}

	type column struct {
		Name string
		Wide bool
	}
	body, err := cs.RESTClient().Get().AbsPath("/apis/metal3.io/v1alpha1/baremetalhosts").
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(body, &table); err != nil {
		t.Fatal(err)
	}
	var columns []column
	for _, c := range table.ColumnDefinitions {
		columns = append(columns, column{c.Name, c.Priority > 0})
	}
	wantColumns := []column{{"Name", false}, {"Status", true}, {"State", false}, {"Consumer", false}, {"BMC", true}, {"Online", false}, {"Error", false}, {"Age", false}}
	if diff := cmp.Diff(wantColumns, columns); diff != "" {
		t.Errorf("columns of a host (-want +got):\n%s", diff)
	}
}

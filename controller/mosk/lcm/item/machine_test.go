package item

import (
	"math"
	"testing"

	"k8s.io/utils/ptr"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

func TestNodeIsNamedByTheHostName(t *testing.T) {
	for name, tt := range map[string]struct {
		addresses []lcmv1.NodeAddress
		want      string
	}{
		"nothing reported": {nil, "m"},
		"host name":        {[]lcmv1.NodeAddress{{Type: lcmv1.AddressInternalIP, Address: "192.0.2.1"}, {Type: lcmv1.AddressHostname, Address: "h"}}, "h"},
		"empty host name":  {[]lcmv1.NodeAddress{{Type: lcmv1.AddressHostname}}, "m"},
	} {
		m := &lcmv1.LCMMachine{}
		m.Name, m.Status.Addresses = "m", tt.addresses
		if got := Node(m); got != tt.want {
			t.Errorf("%s: Node() = %q, want %q", name, got, tt.want)
		}
	}
}

func TestUpgradeIndex(t *testing.T) {
	first := new(clusterv1.Machine)
	first.Spec.ProviderSpec.Value.UpgradeIndex = ptr.To[int32](0)
	for name, tt := range map[string]struct {
		m    *clusterv1.Machine
		want int64
	}{
		"first":       {first, 0},
		"without one": {new(clusterv1.Machine), math.MaxInt64},
		"no Machine":  {nil, math.MaxInt64},
	} {
		if got := UpgradeIndex(tt.m); got != tt.want {
			t.Errorf("%s: UpgradeIndex() = %d, want %d", name, got, tt.want)
		}
	}
}

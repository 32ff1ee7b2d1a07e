package item

import (
	"math"
	"testing"

	"k8s.io/utils/ptr"

	cluster "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcm "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

func TestNodeIsNamedByTheHostName(t *testing.T) {
	for name, tt := range map[string]struct {
		addresses []lcm.NodeAddress
		want      string
	}{
		"nothing reported": {nil, "m"},
		"host name":        {[]lcm.NodeAddress{{Type: lcm.AddressInternalIP, Address: "192.0.2.1"}, {Type: lcm.AddressHostname, Address: "h"}}, "h"},
		"empty host name":  {[]lcm.NodeAddress{{Type: lcm.AddressHostname}}, "m"},
	} {
		m := &lcm.LCMMachine{}
		m.Name, m.Status.Addresses = "m", tt.addresses
		if got := Node(m); got != tt.want {
			t.Errorf("%s: Node() = %q, want %q", name, got, tt.want)
		}
	}
}

func TestUpgradeIndex(t *testing.T) {
	first := new(cluster.Machine)
	first.Spec.ProviderSpec.Value.UpgradeIndex = ptr.To[int32](0)
	for name, tt := range map[string]struct {
		m    *cluster.Machine
		want int64
	}{
		"first":       {first, 0},
		"without one": {new(cluster.Machine), math.MaxInt64},
		"no Machine":  {nil, math.MaxInt64},
	} {
		if got := UpgradeIndex(tt.m); got != tt.want {
			t.Errorf("%s: UpgradeIndex() = %d, want %d", name, got, tt.want)
		}
	}
}

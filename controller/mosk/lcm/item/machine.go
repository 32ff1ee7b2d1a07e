package item

import (
	"math"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// Node returns the name of a machine's node: its host name, as its agent reports it.
func Node(m *lcmv1.LCMMachine) string {
	for _, a := range m.Status.Addresses {
		if a.Type == lcmv1.AddressHostname && a.Address != "" {
			return a.Address
		}
	}
	return m.Name
}

// UpgradeIndex returns the place of a machine in the order of updates and reboots. Machines
// without an upgradeIndex come last, and those that the provider did not make: m is nil.
func UpgradeIndex(m *clusterv1.Machine) int64 {
	if m == nil || m.Spec.ProviderSpec.Value.UpgradeIndex == nil {
		return math.MaxInt64
	}
	return int64(*m.Spec.ProviderSpec.Value.UpgradeIndex)
}

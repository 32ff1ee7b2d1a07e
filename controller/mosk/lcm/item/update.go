package item

import (
	"maps"
	"slices"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// UpdatingAnnotation marks an LCMMachine whose node is taken out of service for an update of
// its items.
const UpdatingAnnotation = "metalab.dev/updating"

// RebootedAnnotation on an LCMMachine names the release for which its server was rebooted, as
// nodesRebootRequired of the LCMCluster demands.
const RebootedAnnotation = "metalab.dev/rebooted-for-release"

// ofRelease returns the items that do not belong to host OS configurations. It compares names,
// because the items of a machine have params (see IsHostOS).
func ofRelease(items []lcmv1.LCMStateItem) []lcmv1.LCMStateItem {
	return slices.DeleteFunc(slices.Clone(items), func(it lcmv1.LCMStateItem) bool { return IsHostOSName(it.Name) })
}

// HasReleaseItems reports whether a machine has any items of a release.
func HasReleaseItems(m *lcmv1.LCMMachine) bool { return len(ofRelease(m.Spec.StateItems)) > 0 }

// ReleaseDone reports whether a machine has executed all items of its release.
func ReleaseDone(m *lcmv1.LCMMachine) bool {
	for _, it := range ofRelease(m.Spec.StateItems) {
		if !Ready(it, m.Status.StateItemStatuses, m.Status.AgentVersion) {
			return false
		}
	}
	return true
}

// HasRelease reports whether a machine must have the release of its LCMCluster. The provider
// changes spec.release when a ClusterUpdatePlan reaches the machine.
func HasRelease(c *lcmv1.LCMCluster, m *lcmv1.LCMMachine) bool {
	return m.Spec.Release == "" || c.Spec.Release == "" || m.Spec.Release == c.Spec.Release
}

// RebootDue reports whether a machine has to be rebooted before it has the release of its LCMCluster. One
// that has no release yet is deployed, not upgraded.
func RebootDue(c *lcmv1.LCMCluster, m *lcmv1.LCMMachine) bool {
	has := m.Status.Release
	return c.Spec.NodesRebootRequired && HasRelease(c, m) && has != "" && has != c.Spec.Release && m.Annotations[RebootedAnnotation] != c.Spec.Release
}

// Behind reports whether a machine must have the release of its LCMCluster, and has other
// release items or was not rebooted for it.
func Behind(c *lcmv1.LCMCluster, m *lcmv1.LCMMachine) bool {
	return OtherItems(c, m) || RebootDue(c, m)
}

// OtherItems reports whether a machine must have the release of its LCMCluster and has other
// release items.
func OtherItems(c *lcmv1.LCMCluster, m *lcmv1.LCMMachine) bool {
	if !HasRelease(c, m) {
		return false
	}
	has, wants := ofRelease(m.Spec.StateItems), ofRelease(Merge(c.Spec.MachinesTypes[m.Spec.Type], m.Spec.StateItemsOverwrites))
	return !slices.EqualFunc(has, wants, func(a, b lcmv1.LCMStateItem) bool {
		return a.Runner == b.Runner && a.Name == b.Name && a.Version == b.Version && a.Phase == b.Phase && maps.Equal(a.Params, b.Params)
	})
}

// MayUpdate reports whether a machine may get the items of another release: its node is out of
// service for the update, or is not in service yet, because the machine has not executed all
// of its present release items.
func MayUpdate(m *lcmv1.LCMMachine) bool {
	drained := m.Annotations[UpdatingAnnotation] != "" && m.Status.KubernetesCordonDrain == lcmv1.CordonDrained
	return drained || !HasReleaseItems(m) || !ReleaseDone(m)
}

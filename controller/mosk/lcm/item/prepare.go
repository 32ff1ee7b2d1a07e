package item

import (
	"slices"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// PreparingAnnotation on the LCMMachine of a worker says whether it may execute release items of the
// phase prepare, where maxWorkerPrepareCount of the LCMCluster bounds how many workers do at a
// time. A worker that has executed them all has no annotation.
const PreparingAnnotation = "metalab.dev/preparing"

// The values of PreparingAnnotation.
const (
	Preparing         = "true"
	AwaitsPreparation = "waits"
)

// MustPrepare reports whether a worker has not executed all items of the phase prepare that its
// LCMCluster's release has for it.
func MustPrepare(c *lcmv1.LCMCluster, m *lcmv1.LCMMachine) bool {
	return m.Spec.Type == lcmv1.MachineWorker && HasRelease(c, m) && unprepared(Merge(c.Spec.MachinesTypes[m.Spec.Type], m.Spec.StateItemsOverwrites), m)
}

// Prepares reports whether a machine has release items of the phase prepare which it has not executed.
func Prepares(m *lcmv1.LCMMachine) bool { return unprepared(m.Spec.StateItems, m) }

// MayPrepare reports whether a machine may get the items of the phase prepare, if it needs any.
func MayPrepare(c *lcmv1.LCMCluster, m *lcmv1.LCMMachine) bool {
	return c.Spec.MaxWorkerPrepareCount <= 0 || m.Annotations[PreparingAnnotation] == Preparing || !MustPrepare(c, m)
}

func unprepared(items []lcmv1.LCMStateItem, m *lcmv1.LCMMachine) bool {
	return slices.ContainsFunc(ofRelease(items), func(it lcmv1.LCMStateItem) bool {
		return it.Phase == lcmv1.PhasePrepare && !Ready(it, m.Status.StateItemStatuses, m.Status.AgentVersion)
	})
}

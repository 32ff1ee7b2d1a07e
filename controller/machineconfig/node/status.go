package node

import (
	"fmt"
	"slices"
	"strings"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// condition is one condition of a pool.
type condition struct {
	typ     mcv1.MachineConfigPoolConditionType
	holds   bool
	reason  string
	message string
}

// maxNamed is how many nodes a message names.
const maxNamed = 10

// count writes the counts and conditions of a pool's status.
func count(p *mcv1.MachineConfigPool, nodes []*corev1.Node, r rollout, now metav1.Time) {
	st := &p.Status
	st.ObservedGeneration = p.Generation
	st.MachineCount, st.UpdatedMachineCount, st.ReadyMachineCount, st.UnavailableMachineCount, st.DegradedMachineCount = int32(len(nodes)), 0, 0, 0, 0
	var degraded []string
	for _, n := range nodes {
		s := state{n}
		if s.updated(r.target) && r.config != "" {
			st.UpdatedMachineCount++
			if s.available() {
				st.ReadyMachineCount++
			}
		}
		if !s.available() || !s.managed() {
			st.UnavailableMachineCount++
		}
		if s.failing() {
			st.DegradedMachineCount++
			degraded = append(degraded, fmt.Sprintf("Node %s is reporting: %q", n.Name, s.annotation(machineconfig.Reason)))
		}
	}
	slices.Sort(degraded)
	if n := len(degraded); n > maxNamed {
		degraded = append(degraded[:maxNamed], fmt.Sprintf("and %d more", n-maxNamed))
	}
	// A layered pool whose image is not there yet is not updated, whatever its nodes have.
	updated := r.ready && st.UpdatedMachineCount == st.MachineCount
	if updated {
		st.Configuration = *p.Spec.Configuration.DeepCopy()
	}
	for _, c := range conditionsOf(p, r, updated, degraded) {
		status := corev1.ConditionFalse
		if c.holds {
			status = corev1.ConditionTrue
		}
		machineconfig.SetCondition(p, c.typ, status, c.reason, c.message, now)
	}
}

func conditionsOf(p *mcv1.MachineConfigPool, r rollout, updated bool, degraded []string) []condition {
	what := "MachineConfig " + r.config
	if r.image != "" {
		what += " with OS image " + r.image
	}
	var done, doing condition
	switch {
	case r.config == "":
		doing.message = "Pool has no rendered configuration yet"
	case updated:
		done = condition{holds: true, message: "All nodes are updated with " + what}
	case p.Spec.Paused:
		doing = condition{reason: "Paused", message: "Pool is paused; will not update to " + what}
	case r.refused != "":
		doing = condition{reason: "ImageBuildFailed", message: r.refused}
	case r.waits != "":
		doing = condition{holds: true, reason: "WaitingForImage", message: r.waits}
	default:
		doing = condition{holds: true, message: "All nodes are updating to " + what}
	}
	done.typ, doing.typ = mcv1.MachineConfigPoolUpdated, mcv1.MachineConfigPoolUpdating
	nodeDegraded := condition{typ: mcv1.MachineConfigPoolNodeDegraded}
	if n := p.Status.DegradedMachineCount; n > 0 {
		nodeDegraded.holds, nodeDegraded.reason = true, fmt.Sprintf("%d nodes are reporting degraded status on sync", n)
		nodeDegraded.message = strings.Join(degraded, ", ")
	}
	isDegraded := nodeDegraded.holds
	for _, typ := range []mcv1.MachineConfigPoolConditionType{mcv1.MachineConfigPoolRenderDegraded, mcv1.MachineConfigPoolImageBuildDegraded} {
		isDegraded = isDegraded || machineconfig.ConditionIsTrue(p, typ)
	}
	return []condition{done, doing, nodeDegraded, {typ: mcv1.MachineConfigPoolDegraded, holds: isDegraded}}
}

package node

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// target is the configuration and the image that the nodes of a pool should run.
type target struct {
	config string // name of the rendered MachineConfig
	image  string // REPOSITORY@sha256:DIGEST; "" in a pool that is not layered
}

// state is the configuration of a Node by its annotations.
type state struct {
	node *corev1.Node
}

func (s state) annotation(name string) string { return s.node.Annotations[name] }

// managed reports whether the daemon has reported the node's configuration. A node that joins
// has none yet.
func (s state) managed() bool { return s.annotation(machineconfig.CurrentConfig) != "" }

// targeted reports whether the node was told to take the target.
func (s state) targeted(t target) bool {
	return s.annotation(machineconfig.DesiredConfig) == t.config &&
		s.annotation(machineconfig.DesiredOSImage) == t.image && s.annotation(machineconfig.DesiredImage) == t.image
}

// done reports whether the node is at its desired configuration and image. Either both images are absent, or
// they are equal. The daemon reports it before the node takes pods again.
func (s state) done() bool {
	return s.managed() && !s.uncordoning() && s.annotation(machineconfig.State) == machineconfig.Done &&
		s.annotation(machineconfig.CurrentConfig) == s.annotation(machineconfig.DesiredConfig) &&
		s.annotation(machineconfig.CurrentImage) == s.annotation(machineconfig.DesiredOSImage)
}

// updated reports whether the node has the target.
func (s state) updated(t target) bool { return s.targeted(t) && s.done() }

// failing reports whether the daemon has given up.
func (s state) failing() bool {
	v := s.annotation(machineconfig.State)
	return v == machineconfig.Degraded || v == machineconfig.Unreconcilable
}

// drained reports whether the cordon of the node is that of its update. A node that failed
// after its drain is cordoned still.
func (s state) drained() bool {
	d := s.annotation(machineconfig.DesiredDrain)
	return strings.HasPrefix(d, machineconfig.DrainVerb+"-")
}

// uncordoning reports whether the node waits for the end of its cordon.
func (s state) uncordoning() bool {
	d := s.annotation(machineconfig.DesiredDrain)
	return strings.HasPrefix(d, machineconfig.UncordonVerb+"-") && d != s.annotation(machineconfig.LastAppliedDrain)
}

// unready reports whether the node can run workloads, but for its cordon: reason is "" then.
func (s state) unready() (reason string) {
	ready := false
	for _, c := range s.node.Status.Conditions {
		switch {
		case c.Type == corev1.NodeReady:
			if ready = c.Status == corev1.ConditionTrue; !ready {
				return "it is not Ready"
			}
		case c.Type == corev1.NodeDiskPressure && c.Status != corev1.ConditionFalse:
			return "it has disk pressure"
		case c.Type == corev1.NodeNetworkUnavailable && c.Status != corev1.ConditionFalse:
			return "its network is unavailable"
		}
	}
	if !ready {
		return "it is not Ready"
	}
	return ""
}

// available reports whether the node can run workloads and does not change.
func (s state) available() bool {
	return s.unready() == "" && !s.node.Spec.Unschedulable && (s.done() || s.failing() || !s.managed())
}

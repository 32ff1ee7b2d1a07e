package clusters

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
)

// machinesCondition counts the Machines that are ready, and names the first one that is not.
func machinesCondition(machines []clusterv1.Machine, ready int) baremetalv1.Condition {
	c := baremetalv1.Condition{Type: ConditionMachines, Ready: len(machines) > 0 && ready == len(machines)}
	if c.Ready {
		return c
	}
	c.Message = fmt.Sprintf("%d of %d Machines are ready", ready, len(machines))
	var first *clusterv1.Machine
	for i := range machines {
		m := &machines[i]
		if p := m.Status.ProviderStatus; (p == nil || !p.Ready) && (first == nil || m.Name < first.Name) {
			first = m
		}
	}
	if first != nil {
		c.Message += "; " + first.Name + " is not: " + notReady(first)
	}
	return c
}

// notReady returns why a Machine is not ready: the message of its first condition that is not.
func notReady(m *clusterv1.Machine) string {
	p := m.Status.ProviderStatus
	if p == nil {
		return "the provider has not written its status"
	}
	if i := slices.IndexFunc(p.Conditions, func(c baremetalv1.Condition) bool { return !c.Ready }); i >= 0 {
		return p.Conditions[i].Type + ": " + cmp.Or(strings.TrimSpace(p.Conditions[i].Message), "not ready")
	}
	return "its status is " + cmp.Or(p.Status, "not written yet")
}

package node

import (
	"fmt"
	"slices"
	"strings"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/metalab-dev/metalab/controller/machineconfig"
)

// membership assigns nodes to pools.
type membership struct {
	pools     []*mcv1.MachineConfigPool
	selectors []labels.Selector
}

// selectsAll reports whether a pool has an empty node selector. It would take every node of the
// cluster, which nobody means.
func selectsAll(p *mcv1.MachineConfigPool) bool {
	s := p.Spec.NodeSelector
	return s != nil && len(s.MatchLabels) == 0 && len(s.MatchExpressions) == 0
}

// newMembership returns the membership of nodes in pools. A pool whose selector is invalid or
// empty has none.
func newMembership(pools []mcv1.MachineConfigPool) membership {
	var m membership
	for i := range pools {
		p := &pools[i]
		s, err := metav1.LabelSelectorAsSelector(p.Spec.NodeSelector)
		if err != nil || selectsAll(p) || p.DeletionTimestamp != nil {
			continue
		}
		m.pools, m.selectors = append(m.pools, p), append(m.selectors, s)
	}
	return m
}

// of returns the pool of a node: the control plane's where it matches, else a custom pool, else
// worker; nil without one. Two custom pools, or a custom pool on the control plane, are an error:
// none of them gets the node.
func (m membership) of(n *corev1.Node) (*mcv1.MachineConfigPool, error) {
	var control, worker *mcv1.MachineConfigPool
	var custom []*mcv1.MachineConfigPool
	for i, s := range m.selectors {
		if !s.Matches(labels.Set(n.Labels)) {
			continue
		}
		switch p := m.pools[i]; p.Name {
		case machineconfig.ControlPlanePool:
			control = p
		case machineconfig.WorkerPool:
			worker = p
		default:
			custom = append(custom, p)
		}
	}
	switch {
	case len(custom) > 1 || len(custom) == 1 && control != nil:
		var names []string
		for _, p := range append(custom, control) {
			if p != nil {
				names = append(names, p.Name)
			}
		}
		slices.Sort(names)
		return nil, fmt.Errorf("node %s matches the MachineConfigPools %s: a node can be in one: change its labels", n.Name, strings.Join(names, ", "))
	case control != nil:
		return control, nil
	case len(custom) == 1:
		return custom[0], nil
	}
	return worker, nil
}

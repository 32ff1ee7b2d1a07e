package node

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// MaxUnavailable returns how many nodes of a pool may be unavailable: a number, or a part of
// all in percent, rounded down, and at least one. A value that is neither is one, as is none.
func MaxUnavailable(v *intstr.IntOrString, nodes int) int {
	if v == nil {
		return 1
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(v, nodes, false)
	if err != nil {
		return 1
	}
	return max(n, 1)
}

// choice is which nodes get the target now.
type choice struct {
	nodes []*corev1.Node
	// deferred is a node that would be next, but for the operator on it.
	deferred string
}

// choose returns the nodes of a pool that get the target next. Nodes that are unavailable count
// against the limit, and so do those that fail on the target: all might recover at once. A node
// that fails on something else may get the target: that is its repair. operator is the node
// that the operator runs on: it is last.
func choose(nodes []*corev1.Node, t target, limit int, operator string) choice {
	var candidates, free []*corev1.Node
	capacity := limit
	for _, n := range nodes {
		s := state{n}
		switch {
		case s.targeted(t):
			if !s.available() || s.failing() {
				capacity--
			}
		case !s.managed():
			free = append(free, n) // it joins, and runs no workload that an update would end
		case s.failing() && s.unready() == "" && n.Spec.Unschedulable && s.drained():
			capacity-- // its update has made it unavailable, and only another can end that
			free = append(free, n)
		case !s.available():
			capacity--
		default:
			candidates = append(candidates, n)
		}
	}
	order(candidates)
	out := choice{nodes: free}
	if i := slices.IndexFunc(candidates, func(n *corev1.Node) bool { return n.Name == operator }); i >= 0 && i < len(candidates)-1 {
		if i < capacity {
			out.deferred = operator
		}
		candidates = append(slices.Delete(slices.Clone(candidates), i, i+1), candidates[i])
	}
	if capacity > 0 {
		out.nodes = append(out.nodes, candidates[:min(capacity, len(candidates))]...)
	}
	if slices.ContainsFunc(out.nodes, func(n *corev1.Node) bool { return n.Name == out.deferred }) {
		out.deferred = "" // all fit
	}
	return out
}

// order sorts nodes by their zone, then by their age: so an update leaves one zone before it
// comes to the next. Nodes without a zone are last.
func order(nodes []*corev1.Node) {
	zone := func(n *corev1.Node) string { return n.Labels[corev1.LabelTopologyZone] }
	slices.SortStableFunc(nodes, func(a, b *corev1.Node) int {
		za, zb := zone(a), zone(b)
		if (za == "") != (zb == "") {
			return strings.Compare(zb, za) // "" is last
		}
		return cmp.Or(strings.Compare(za, zb), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
}

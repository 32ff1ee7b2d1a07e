package machines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
)

// conditionNodeLabels is the type of the condition of a Machine that gives its Node labels or
// taints.
const conditionNodeLabels = "NodeLabels"

// Annotations of a Node name the labels and taints that its Machine has written, so that the Machine
// removes its own and leaves those of others.
const (
	labelsAnnotation = "metalab.dev/machine-labels" // keys of labels, with commas between them
	taintsAnnotation = "metalab.dev/machine-taints" // KEY:EFFECT of taints, with commas between them
)

// kubelets are the labels that a Node's agent writes: its programs rely on them.
var kubelets = []string{corev1.LabelHostname, corev1.LabelOSStable, corev1.LabelArchStable}

// effects are the effects of taints.
var effects = []string{string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule), string(corev1.TaintEffectNoExecute)}

// marks are the labels and taints that a Machine gives its Node.
type marks struct {
	labels   map[string]string
	taints   []corev1.Taint
	mistakes []string // each names its field, which does not reach the Node
}

// marksOf returns the labels and taints of a Machine that its release allows. f.release is not nil.
func marksOf(f *facts) marks {
	out := marks{labels: map[string]string{}}
	for i, l := range f.machine.Spec.ProviderSpec.Value.NodeLabels {
		if why := labelMistake(f, out.labels, l); why != "" {
			out.mistakes = append(out.mistakes, fmt.Sprintf("spec.providerSpec.value.nodeLabels[%d]: %s", i, why))
			continue
		}
		out.labels[l.Key] = l.Value
	}
	for i, t := range f.machine.Spec.Taints {
		if why := taintMistake(out.taints, t); why != "" {
			out.mistakes = append(out.mistakes, fmt.Sprintf("spec.taints[%d]: %s", i, why))
			continue
		}
		out.taints = append(out.taints, corev1.Taint{Key: t.Key, Value: t.Value, Effect: corev1.TaintEffect(t.Effect), TimeAdded: t.TimeAdded})
	}
	return out
}

func labelMistake(f *facts, have map[string]string, l baremetalv1.KeyValue) string {
	_, twice := have[l.Key]
	switch wrong := append(validation.IsQualifiedName(l.Key), validation.IsValidLabelValue(l.Value)...); {
	case len(wrong) > 0:
		return fmt.Sprintf("%s=%s is no label: %s", l.Key, l.Value, wrong[0])
	case slices.Contains(kubelets, l.Key):
		return fmt.Sprintf("the Node's agent writes %s: remove it", l.Key)
	case twice:
		return fmt.Sprintf("%s is there twice: remove one", l.Key)
	}
	return release.CheckNodeLabel(f.release, l)
}

func taintMistake(have []corev1.Taint, t clusterv1.Taint) string {
	switch wrong := append(validation.IsQualifiedName(t.Key), validation.IsValidLabelValue(t.Value)...); {
	case len(wrong) > 0:
		return fmt.Sprintf("%s=%s is no taint: %s", t.Key, t.Value, wrong[0])
	case !slices.Contains(effects, t.Effect):
		return fmt.Sprintf("effect %q is not one of %s", t.Effect, strings.Join(effects, ", "))
	case slices.ContainsFunc(have, func(o corev1.Taint) bool { return id(o) == t.Key+":"+t.Effect }):
		return fmt.Sprintf("%s:%s is there twice: remove one", t.Key, t.Effect)
	}
	return ""
}

// id identifies a taint of a Node.
func id(t corev1.Taint) string { return t.Key + ":" + string(t.Effect) }

// marked returns a Node with the marks of its Machine, and without those that the Machine gave it before.
func marked(n *corev1.Node, want marks) *corev1.Node {
	out := n.DeepCopy()
	for _, key := range list(n.Annotations[labelsAnnotation]) {
		if _, ok := want.labels[key]; !ok {
			delete(out.Labels, key)
		}
	}
	for key, value := range want.labels {
		metav1.SetMetaDataLabel(&out.ObjectMeta, key, value)
	}
	wanted := map[string]corev1.Taint{}
	var ids []string
	for _, t := range want.taints {
		wanted[id(t)] = t
		ids = append(ids, id(t))
	}
	ours := list(n.Annotations[taintsAnnotation])
	out.Spec.Taints = nil
	for _, t := range n.Spec.Taints { // in their order, so that nothing is written for an order
		w, ok := wanted[id(t)]
		switch {
		case ok && w.TimeAdded == nil:
			w.TimeAdded = t.TimeAdded
			fallthrough
		case ok:
			out.Spec.Taints = append(out.Spec.Taints, w)
			delete(wanted, id(t))
		case !slices.Contains(ours, id(t)):
			out.Spec.Taints = append(out.Spec.Taints, t)
		}
	}
	for _, t := range want.taints {
		if _, missing := wanted[id(t)]; missing {
			out.Spec.Taints = append(out.Spec.Taints, t)
		}
	}
	remember(out, labelsAnnotation, slices.Sorted(maps.Keys(want.labels)))
	remember(out, taintsAnnotation, ids)
	return out
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

func remember(n *corev1.Node, annotation string, names []string) {
	if len(names) == 0 {
		delete(n.Annotations, annotation)
		return
	}
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, annotation, strings.Join(names, ","))
}

// unmarked reports whether the Node lacks labels or taints of its Machine, or has those of before.
func unmarked(f *facts) bool {
	return f.node != nil && f.release != nil && !sameMarks(f.node, marked(f.node, marksOf(f)))
}

// sameMarks reports whether two states of a Node have the same labels, taints and annotations of
// Machines.
func sameMarks(a, b *corev1.Node) bool {
	return equality.Semantic.DeepEqual(a.Labels, b.Labels) && equality.Semantic.DeepEqual(a.Spec.Taints, b.Spec.Taints) &&
		a.Annotations[labelsAnnotation] == b.Annotations[labelsAnnotation] && a.Annotations[taintsAnnotation] == b.Annotations[taintsAnnotation]
}

// mark writes the labels and taints to the Node. A Node that has changed meanwhile is looked at again.
func mark(ctx context.Context, r *Reconciler, f *facts) (time.Duration, error) {
	to := r.Client
	if f.ownAPI {
		api, err := r.workload(ctx, f)
		if err != nil {
			return 0, err
		}
		to = api.Client
	}
	// In an API of the Cluster's own nothing is watched: the pass that notes the success comes by time.
	return time.Second, to.Patch(ctx, marked(f.node, marksOf(f)), patch.IfUnchanged(f.node))
}

// nodeLabelsCondition is there while the Machine has labels or taints for its Node. It is not ready
// while one is refused, or while the Node lacks one.
func nodeLabelsCondition(f *facts, _ decision, _ []baremetalv1.Condition) *baremetalv1.Condition {
	if len(f.machine.Spec.ProviderSpec.Value.NodeLabels) == 0 && len(f.machine.Spec.Taints) == 0 || f.release == nil {
		return nil
	}
	want := marksOf(f)
	switch {
	case len(want.mistakes) > 0:
		return &baremetalv1.Condition{Message: strings.Join(want.mistakes, "; ")}
	case f.node == nil: // a release without a node agent must not stop its Machines
		return &baremetalv1.Condition{Ready: true, Message: "the labels and taints wait for the Node of the server"}
	case unmarked(f):
		return &baremetalv1.Condition{Message: fmt.Sprintf("Node %s does not have all labels and taints yet", f.node.Name)}
	}
	return &baremetalv1.Condition{Ready: true}
}

package steps

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
)

// registerNodeLabels binds the steps on the labels and taints that Machines give their Nodes. A list
// of labels is KEY=VALUE with commas between them, a taint is KEY=VALUE:EFFECT, and none is an empty list.
func (s *scenario) registerNodeLabels(sc *stepRegistry) {
	sc.Step(`^the operator gives the machine "([^"]*)" the node labels "([^"]*)" and the taint "([^"]*)"$`, "sets nodeLabels and taints of a Machine, in the place of those of before", s.giveLabels)
	sc.Step(`^the operator labels the node "([^"]*)" with "([^"]*)"$`, "adds a label to a Node", func(ctx context.Context, name, label string) error {
		key, value, _ := strings.Cut(label, "=")
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, key, value)
		return s.kube.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch("application/merge-patch+json", patch))
	})
	sc.Step(`^the node "([^"]*)" has the labels "([^"]*)" and the taints "([^"]*)"$`, "waits until a Node has these labels and taints, and no others", s.hasLabels)
	sc.Step(`^the machine "([^"]*)" reports (\w+): '([^']*)'$`, "waits until this condition of the Machine is not ready, and its message contains this text", func(ctx context.Context, name, kind, text string) error {
		return s.awaitMachine(ctx, name, "reports "+kind, func(p *baremetalv1.MachineProviderStatus) bool {
			c := conditionOf(p, kind)
			return c != nil && !c.Ready && strings.Contains(c.Message, text)
		})
	})
}

// labelPairs returns the keys and values of a list of labels.
func labelPairs(list string) (out []baremetalv1.KeyValue) {
	for _, text := range fields(list) { // "none" has no =
		if key, value, ok := strings.Cut(text, "="); ok {
			out = append(out, baremetalv1.KeyValue{Key: key, Value: value})
		}
	}
	return out
}

func (s *scenario) giveLabels(ctx context.Context, name, labels, taint string) error {
	taints := []clusterv1.Taint{}
	for _, p := range labelPairs(taint) {
		value, effect, _ := strings.Cut(p.Value, ":")
		taints = append(taints, clusterv1.Taint{Key: p.Key, Value: value, Effect: effect})
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"taints": taints, "providerSpec": map[string]any{"value": map[string]any{"nodeLabels": labelPairs(labels)}},
	}})
	if err != nil {
		return err
	}
	return s.kube.Patch(ctx, &clusterv1.Machine{ObjectMeta: day2Meta(name)}, client.RawPatch("application/merge-patch+json", patch))
}

func (s *scenario) hasLabels(ctx context.Context, name, labels, taints string) error {
	want := map[string]string{}
	for _, p := range labelPairs(labels) {
		want[p.Key] = p.Value
	}
	return eventually(ctx, "the node "+name+" has the labels "+labels, func(ctx context.Context) (bool, string, error) {
		n := &corev1.Node{}
		err := s.kube.Get(ctx, client.ObjectKey{Name: name}, n)
		var all []string
		for _, t := range n.Spec.Taints {
			all = append(all, t.ToString())
		}
		text := cmp.Or(strings.Join(all, ", "), "none")
		return maps.Equal(n.Labels, want) && text == taints, fmt.Sprintf("labels %v, taints %s", n.Labels, text), err
	})
}

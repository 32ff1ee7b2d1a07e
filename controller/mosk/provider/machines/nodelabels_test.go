package machines

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// The Node of a Machine has its labels and taints while the Machine has them; those of others stay.
func TestLabelsAndTaintsOfTheNode(t *testing.T) {
	for _, tt := range []struct {
		name string
		api  func(*lab) client.Client
	}{
		{"shared API", func(l *lab) client.Client { return l.Client }},
		{"own API", func(l *lab) client.Client { return l.own() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := start(t, objects(host("a"), machine("m"))...)
			api := tt.api(l)
			edit(l, l.machine("m"), func(m *clusterv1.Machine) {
				m.Spec.ProviderSpec.Value.NodeLabels = []baremetalv1.KeyValue{{Key: "zone", Value: "a"}, {Key: "role", Value: "db"}}
				m.Spec.Taints = []clusterv1.Taint{{Key: "db", Value: "yes", Effect: "NoSchedule"}, {Key: "slow", Effect: "PreferNoSchedule"}}
			})
			l.run()
			if got, want := l.condition("m", conditionNodeLabels), (baremetalv1.Condition{Type: conditionNodeLabels, Ready: true, Message: "the labels and taints wait for the Node of the server"}); got != want {
				t.Errorf("without a Node: %+v, want %+v", got, want)
			}
			foreign := corev1.Taint{Key: "node.kubernetes.io/unschedulable", Effect: corev1.TaintEffectNoSchedule}
			l.must(api.Create(t.Context(), &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: agentOf("m"), Labels: map[string]string{corev1.LabelHostname: "m", "role": "web"}},
				Spec:       corev1.NodeSpec{Taints: []corev1.Taint{foreign, {Key: "slow", Value: "old", Effect: corev1.TaintEffectPreferNoSchedule}}},
			}))
			look := func(when string, labels map[string]string, taints ...corev1.Taint) {
				t.Helper()
				l.settle()
				var n corev1.Node
				l.must(api.Get(t.Context(), client.ObjectKey{Name: "m"}, &n))
				if diff := cmp.Diff(labels, n.Labels); diff != "" {
					t.Errorf("%s: labels (-want +got):\n%s", when, diff)
				}
				if diff := cmp.Diff(taints, n.Spec.Taints); diff != "" {
					t.Errorf("%s: taints (-want +got):\n%s", when, diff)
				}
			}
			look("at first", map[string]string{corev1.LabelHostname: "m", "zone": "a", "role": "db"},
				foreign, corev1.Taint{Key: "slow", Effect: corev1.TaintEffectPreferNoSchedule}, corev1.Taint{Key: "db", Value: "yes", Effect: corev1.TaintEffectNoSchedule})
			if got := l.condition("m", conditionNodeLabels); !got.Ready || got.Message != "" {
				t.Errorf("with the Node: %+v", got)
			}
			var n corev1.Node
			l.must(api.Get(t.Context(), client.ObjectKey{Name: "m"}, &n))
			n.Labels["rack"] = "r1"
			delete(n.Labels, "zone")
			l.must(api.Update(t.Context(), &n))
			edit(l, l.machine("m"), func(m *clusterv1.Machine) {
				m.Spec.ProviderSpec.Value.NodeLabels = []baremetalv1.KeyValue{{Key: "zone", Value: "b"}}
				m.Spec.Taints = m.Spec.Taints[:1]
			})
			look("changed", map[string]string{corev1.LabelHostname: "m", "zone": "b", "rack": "r1"}, foreign, corev1.Taint{Key: "db", Value: "yes", Effect: corev1.TaintEffectNoSchedule})
			edit(l, l.machine("m"), func(m *clusterv1.Machine) { m.Spec.ProviderSpec.Value.NodeLabels, m.Spec.Taints = nil, nil })
			look("removed", map[string]string{corev1.LabelHostname: "m", "rack": "r1"}, foreign)
			l.must(api.Get(t.Context(), client.ObjectKey{Name: "m"}, &n))
			if n.Annotations[labelsAnnotation]+n.Annotations[taintsAnnotation] != "" || l.condition("m", conditionNodeLabels).Type != "" {
				t.Errorf("after the removal: annotations %v, condition %+v", n.Annotations, l.condition("m", conditionNodeLabels))
			}
		})
	}
}

// A label that the release does not allow, or that is none, is named and does not reach the Node; the
// others do.
func TestForbiddenLabelsAreNamed(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	edit(l, &kaasv1.ClusterRelease{ObjectMeta: metav1.ObjectMeta{Name: "mosk-1"}}, func(r *kaasv1.ClusterRelease) {
		r.Spec.AllowedNodeLabels = []kaasv1.AllowedNodeLabel{{Key: "zone"}, {Key: corev1.LabelHostname}}
	})
	edit(l, l.machine("m"), func(m *clusterv1.Machine) {
		m.Spec.ProviderSpec.Value.NodeLabels = []baremetalv1.KeyValue{{Key: "gpu", Value: "yes"}, {Key: "zone", Value: "a"}, {Key: "zone", Value: "b"}, {Key: corev1.LabelHostname, Value: "x"}, {Key: "a b"}}
		m.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: "Never"}, {Key: "k", Effect: "NoExecute"}, {Key: "k", Value: "v", Effect: "NoExecute"}, {Key: "k", Value: "a b", Effect: "NoSchedule"}}
	})
	l.run()
	l.must(l.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: agentOf("m")}}))
	l.settle()
	want := `spec.providerSpec.value.nodeLabels[0]: ClusterRelease "mosk-1" does not allow the label gpu=yes: give one of zone, kubernetes.io/hostname; ` +
		`spec.providerSpec.value.nodeLabels[2]: zone is there twice: remove one; ` +
		`spec.providerSpec.value.nodeLabels[3]: the Node's agent writes kubernetes.io/hostname: remove it; ` +
		`spec.providerSpec.value.nodeLabels[4]: a b= is no label: `
	got := l.condition("m", conditionNodeLabels)
	if got.Ready || len(got.Message) < len(want) || got.Message[:len(want)] != want || l.machine("m").Status.ProviderStatus.Ready {
		t.Errorf("condition %+v, want %q", got, want)
	}
	r, err := l.provider(nil).observe(t.Context(), key("m"))
	l.must(err)
	mistakes := marksOf(r).mistakes[4:]
	if len(mistakes) != 3 || mistakes[0] != `spec.taints[0]: effect "Never" is not one of NoSchedule, PreferNoSchedule, NoExecute` || mistakes[1] != "spec.taints[2]: k:NoExecute is there twice: remove one" {
		t.Errorf("mistakes of the taints %q", mistakes)
	}
	var n corev1.Node
	l.must(l.Get(t.Context(), client.ObjectKey{Name: "m"}, &n))
	if diff := cmp.Diff(map[string]string{"zone": "a"}, n.Labels); diff != "" || !slices.Equal(n.Spec.Taints, []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoExecute}}) {
		t.Errorf("the Node has the labels (-want +got):\n%s and the taints %+v", diff, n.Spec.Taints)
	}
}

// agentOf returns the annotations of a Node that the agent of a machine has registered.
func agentOf(machine string) map[string]string {
	return map[string]string{"metalab.dev/node-agent": "system:serviceaccount:" + ns + ":" + machine + "-lcm-agent"}
}

// A Node that has the machine's host name, and is not the machine's, gets no label or taint, and the
// Machine does not refer to it: NoExecute would end others' pods.
func TestNodeOfAnotherMachineIsNotLabeled(t *testing.T) {
	for _, account := range []string{"system:serviceaccount:other:m-lcm-agent", "system:serviceaccount:" + ns + ":m2-lcm-agent", "system:serviceaccount:lab-nodes:m", ""} {
		l := start(t, objects(host("a"), machine("m"))...)
		edit(l, l.machine("m"), func(m *clusterv1.Machine) {
			m.Spec.ProviderSpec.Value.NodeLabels = []baremetalv1.KeyValue{{Key: "zone", Value: "a"}}
			m.Spec.Taints = []clusterv1.Taint{{Key: "k", Effect: "NoExecute"}}
		})
		l.must(l.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m", Annotations: map[string]string{"metalab.dev/node-agent": account}}}))
		l.run()
		var n corev1.Node
		l.must(l.Get(t.Context(), client.ObjectKey{Name: "m"}, &n))
		if len(n.Labels)+len(n.Spec.Taints) > 0 || l.machine("m").Status.NodeRef != nil {
			t.Errorf("registered by %q: labels %v, taints %v, nodeRef %v, want none", account, n.Labels, n.Spec.Taints, l.machine("m").Status.NodeRef)
		}
	}
}

// An edit of the labels or taints of a Node concerns its Machine, which gives it its own back.
func TestEditsOfANodesLabelsPass(t *testing.T) {
	for name, after := range map[string]*corev1.Node{
		"labels": {ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}},
		"taints": {Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}}},
		"memory": {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{labelsAnnotation: "a"}}},
	} {
		if !nodeChanged.Update(event.UpdateEvent{ObjectOld: &corev1.Node{}, ObjectNew: after}) {
			t.Errorf("%s: an update does not pass", name)
		}
	}
}

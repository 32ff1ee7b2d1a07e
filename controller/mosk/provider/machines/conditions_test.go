package machines

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// The condition Kubelet follows the Node of the server's host name.
func TestConditionKubelet(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m", UID: "n", Annotations: agentOf("m")}}
	l.must(l.Create(t.Context(), n))
	l.settle()
	if m := l.machine("m"); l.condition("m", baremetalv1.ConditionKubelet) != (baremetalv1.Condition{}) || !m.Status.ProviderStatus.Ready || m.Status.NodeRef == nil || m.Status.NodeRef.Name != "m" || m.Status.NodeRef.UID != "n" {
		t.Errorf("a Node that reports nothing: conditions %+v, nodeRef %+v", m.Status.ProviderStatus.Conditions, m.Status.NodeRef)
	}
	report := func(status corev1.ConditionStatus, reason, message string) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, Reason: reason, Message: message}}
		l.must(l.Status().Update(t.Context(), n))
		l.settle()
	}
	report(corev1.ConditionUnknown, "NodeStatusUnknown", "the node agent has not renewed the Lease for 1m0s")
	if got := l.condition("m", baremetalv1.ConditionKubelet); got.Ready || got.Message != "Node m is not Ready (NodeStatusUnknown): the node agent has not renewed the Lease for 1m0s" || l.machine("m").Status.ProviderStatus.Ready {
		t.Errorf("a Node that is lost: %+v", got)
	}
	report(corev1.ConditionTrue, "KubeletReady", "")
	if got := l.condition("m", baremetalv1.ConditionKubelet); !got.Ready || !l.machine("m").Status.ProviderStatus.Ready {
		t.Errorf("a Node that is Ready: %+v", got)
	}
	l.must(l.Delete(t.Context(), n))
	l.settle()
	if m := l.machine("m"); l.condition("m", baremetalv1.ConditionKubelet).Message != "Node m does not exist any more: its node agent has to register it" || m.Status.ProviderStatus.Ready || m.Status.NodeRef == nil {
		t.Errorf("a Node that is gone: conditions %+v, nodeRef %+v", m.Status.ProviderStatus.Conditions, m.Status.NodeRef)
	}
}

// A Node's event concerns the Machine whose server has its name, and only one that changes the
// condition Ready: others are frequent.
func TestEventsOfNodesReachTheirMachines(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	r := l.provider(nil)
	if got := r.machinesOfNode(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m"}}); len(got) != 1 || got[0].Name != "m" {
		t.Errorf("requests of the Node m: %v", got)
	}
	if got := r.machinesOfNode(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "other"}}); len(got) != 0 {
		t.Errorf("requests of another Node: %v", got)
	}
	node := func(status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.Now()}}}}
	}
	for _, tt := range []struct {
		name          string
		before, after *corev1.Node
		want          bool
	}{
		{"a heartbeat", node(corev1.ConditionTrue), node(corev1.ConditionTrue), false},
		{"lost", node(corev1.ConditionTrue), node(corev1.ConditionUnknown), true},
		{"the first report", &corev1.Node{}, node(corev1.ConditionTrue), true},
		{"none", &corev1.Node{}, &corev1.Node{}, false},
	} {
		if got := nodeChanged.Update(event.UpdateEvent{ObjectOld: tt.before, ObjectNew: tt.after}); got != tt.want {
			t.Errorf("%s: passed %t, want %t", tt.name, got, tt.want)
		}
	}
}

// The conditions of a machine whose node is taken out of service and that is rebooted.
func TestConditionsOfMaintenanceAndReboots(t *testing.T) {
	l := start(t, objects(host("a"), machine("m"))...)
	l.run()
	conditions := func(when string, want ...baremetalv1.Condition) {
		t.Helper()
		l.settle()
		ready := true
		for _, c := range want {
			ready = ready && c.Ready
			if got := l.condition("m", c.Type); got != c {
				t.Errorf("%s: condition %+v, want %+v", when, got, c)
			}
		}
		if p := l.machine("m").Status.ProviderStatus; p.Ready != ready {
			t.Errorf("%s: ready %t, want %t: %+v", when, p.Ready, ready, p.Conditions)
		}
	}
	const maintenance, graceful, reboot = baremetalv1.ConditionMaintenance, baremetalv1.ConditionGracefulReboot, baremetalv1.ConditionReboot
	conditions("at first", baremetalv1.Condition{Type: maintenance, Ready: true}, baremetalv1.Condition{Type: graceful, Ready: true}, baremetalv1.Condition{Type: reboot, Ready: true})
	l.lcmStatus("m", func(x *lcmv1.LCMMachine) {
		x.Status.HostInfo = &lcmv1.HostInfo{RebootRequired: true, RebootReason: "a new kernel\nmore"}
	})
	conditions("the system asks", baremetalv1.Condition{Type: reboot, Ready: true, Message: "the operating system asks for a reboot: a new kernel"})
	edit(l, l.lcm("m"), func(x *lcmv1.LCMMachine) {
		x.Annotations = map[string]string{item.GracefulRebootAnnotation: "true", item.RebootRequestAnnotation: "c1"}
	})
	conditions("demanded", baremetalv1.Condition{Type: graceful, Message: "a graceful reboot is demanded by GracefulRebootRequest c1"})
	l.lcmStatus("m", func(x *lcmv1.LCMMachine) {
		x.Status.KubernetesCordonDrain, x.Status.KubernetesCordonDrainError = lcmv1.CordonDraining, "pod a/b cannot be evicted"
	})
	conditions("a pod blocks", baremetalv1.Condition{Type: maintenance, Message: "the node is cordondraining: pod a/b cannot be evicted"})
	if !l.machine("m").Status.ProviderStatus.Maintenance {
		t.Error("status.maintenance is false while the node is drained")
	}
	edit(l, l.lcm("m"), func(x *lcmv1.LCMMachine) { x.Spec.RebootRequired = true })
	l.lcmStatus("m", func(x *lcmv1.LCMMachine) {
		x.Status.KubernetesCordonDrain, x.Status.KubernetesCordonDrainError = lcmv1.CordonDrained, ""
		x.Status.Reboot = &lcmv1.RebootStatus{ErrorMessage: "blocked by elemental: reset"}
	})
	conditions("the agent waits", baremetalv1.Condition{Type: maintenance, Message: "the node is cordondrained"}, baremetalv1.Condition{Type: reboot, Message: "the agent reboots the server: blocked by elemental: reset"})
	edit(l, l.lcm("m"), func(x *lcmv1.LCMMachine) { x.Annotations, x.Spec.RebootRequired = nil, false })
	l.lcmStatus("m", func(x *lcmv1.LCMMachine) {
		x.Status.KubernetesCordonDrain, x.Status.Reboot, x.Status.HostInfo = "", nil, nil
	})
	conditions("done", baremetalv1.Condition{Type: maintenance, Ready: true}, baremetalv1.Condition{Type: graceful, Ready: true}, baremetalv1.Condition{Type: reboot, Ready: true})
}

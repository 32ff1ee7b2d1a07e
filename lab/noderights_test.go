package lab

import (
	"cmp"
	"regexp"
	"testing"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/guest/node"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestAccountOfANodeWritesThatNodeAlone uses the token of a node on its own objects, which the API
// allows, and on those of another node, which it refuses, as NodeRestriction does for kubelets. The
// account of a Machine, of Cluster API or of an LCM agent, writes the Node that it has created. They read
// the Pods of that Node alone.
func TestAccountOfANodeWritesThatNodeAlone(t *testing.T) {
	w, admin := startWithoutControllers(t, config.MachineConfig)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	clientOf := func(namespace, name string) client.WithWatch {
		t.Helper()
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
		request := &authenticationv1.TokenRequest{}
		must(client.IgnoreAlreadyExists(admin.Create(ctx, account)))
		must(admin.SubResource("token").Create(ctx, account, request))
		api := rest.AnonymousClientConfig(w.kube.api)
		api.BearerToken = request.Status.Token
		return newClient(t, api)
	}
	for _, name := range []string{"w-0", "w-1"} {
		n := &machineConfigNode{name: name, lab: w}
		must(n.join(ctx, admin))
		must(admin.Create(ctx, &mcv1.MachineConfigNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: mcv1.MachineConfigNodeSpec{
			Node: mcv1.MCOObjectReference{Name: name}, Pool: mcv1.MCOObjectReference{Name: "worker"}, ConfigVersion: mcv1.MachineConfigNodeSpecMachineConfigVersion{Desired: "not-yet-set"},
		}}))
		must(admin.Create(ctx, podOn(name)))
	}
	for _, name := range []string{"h-0", "h-1", ""} {
		must(admin.Create(ctx, podOn(name)))
	}
	const machines = "lab-machines"
	agents := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: "m-0-lcm-agent"}}
	must(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "lcm"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "lab-node-agent"}, Subjects: agents,
	}))
	must(admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "lcm"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "lab-node-agent"}, Subjects: agents,
	}))
	first, dotted := clientOf(NodeAccounts, "w-0"), clientOf(NodeAccounts, "default.m-0")
	machine, second, lcm := clientOf(machines, "default.m-0"), clientOf(machines, "default.m-1"), clientOf(Namespace, "m-0-lcm-agent")
	annotate := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"a":"b"}}}`))
	status := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"conditions":null}}`))
	disowned := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"`+node.AgentAnnotation+`":null}}}`))
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	nodeOf := func(name string) *corev1.Node { return &corev1.Node{ObjectMeta: meta(name)} }
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	}
	renew := func(c client.Client, name string) error {
		l := lease(name)
		if err := c.Get(ctx, client.ObjectKeyFromObject(l), l); err != nil {
			return err
		}
		l.Spec.HolderIdentity = &name
		return c.Update(ctx, l)
	}
	claimed := func(name, namespace, account string) *corev1.Node {
		n := nodeOf(name)
		n.Annotations = map[string]string{node.AgentAnnotation: "system:serviceaccount:" + namespace + ":" + account}
		return n
	}
	onNode := func(name string) client.ListOption { return client.MatchingFields{"spec.nodeName": name} }
	watch := func(c client.WithWatch, options ...client.ListOption) error {
		x, err := c.Watch(ctx, &corev1.PodList{}, options...)
		if err == nil {
			x.Stop()
		}
		return err
	}
	patience.Await(t, "the policy is in force", func() bool {
		return apierrors.IsForbidden(first.Status().Patch(ctx, &mcv1.MachineConfigNode{ObjectMeta: meta("w-1")}, status))
	})
	for _, tt := range []struct {
		what    string
		do      func() error
		allowed bool
	}{
		{"its Node", func() error { return first.Patch(ctx, nodeOf("w-0"), annotate) }, true},
		{"its Node's status", func() error { return first.Status().Patch(ctx, nodeOf("w-0"), status) }, true},
		{"its Lease", func() error { return first.Create(ctx, lease("w-0")) }, true},
		{"its MachineConfigNode's status", func() error {
			return first.Status().Patch(ctx, &mcv1.MachineConfigNode{ObjectMeta: meta("w-0")}, status)
		}, true},
		{"its Pod's status", func() error { return first.Status().Patch(ctx, podOn("w-0"), status) }, true},
		{"its Pod", func() error { return first.Delete(ctx, podOn("w-0"), client.GracePeriodSeconds(0)) }, true},
		{"another Node", func() error { return first.Patch(ctx, nodeOf("w-1"), annotate) }, false},
		{"another Node's status", func() error { return first.Status().Patch(ctx, nodeOf("w-1"), status) }, false},
		{"a new Node of another name", func() error { return first.Create(ctx, claimed("w-2", NodeAccounts, "w-0")) }, false},
		{"another Lease", func() error { return first.Create(ctx, lease("w-1")) }, false},
		{"another MachineConfigNode's status", func() error {
			return first.Status().Patch(ctx, &mcv1.MachineConfigNode{ObjectMeta: meta("w-1")}, status)
		}, false},
		{"another Node's Pod's status", func() error { return first.Status().Patch(ctx, podOn("w-1"), status) }, false},
		{"another Node's Pod", func() error { return first.Delete(ctx, podOn("w-1"), client.GracePeriodSeconds(0)) }, false},
		{"a new Node, though its name is that of a Machine", func() error { return dotted.Create(ctx, claimed("w-2", NodeAccounts, "default.m-0")) }, false},
		{"a Pod, though its name is that of a Machine", func() error { return dotted.Delete(ctx, podOn("w-1")) }, false},
		{"the Node of a Machine's host, without its account", func() error { return machine.Create(ctx, nodeOf("h-0")) }, false},
		{"the Node of a Machine's host, with another account", func() error { return machine.Create(ctx, claimed("h-0", machines, "default.m-1")) }, false},
		{"the Node of a Machine's host", func() error { return machine.Create(ctx, claimed("h-0", machines, "default.m-0")) }, true},
		{"that Node's status", func() error { return machine.Status().Patch(ctx, nodeOf("h-0"), status) }, true},
		{"that Node's account", func() error { return machine.Status().Patch(ctx, nodeOf("h-0"), disowned) }, false},
		{"a Node that the Machine has not created", func() error { return machine.Status().Patch(ctx, nodeOf("w-1"), status) }, false},
		{"a Node of another Machine", func() error { return second.Status().Patch(ctx, nodeOf("h-0"), status) }, false},
		{"the Node of an LCM agent's host, without its account", func() error { return lcm.Create(ctx, nodeOf("h-1")) }, false},
		{"the Node of an LCM agent's host", func() error { return lcm.Create(ctx, claimed("h-1", Namespace, "m-0-lcm-agent")) }, true},
		{"its Node's status, of an LCM agent", func() error { return lcm.Status().Patch(ctx, nodeOf("h-1"), status) }, true},
		{"a Node of a Machine of Cluster API, of an LCM agent", func() error { return lcm.Status().Patch(ctx, nodeOf("h-0"), status) }, false},
		{"a second Node of a Machine's host", func() error { return machine.Create(ctx, claimed("h-2", machines, "default.m-0")) }, false},
		{"a second Node of an LCM agent's host", func() error { return lcm.Create(ctx, claimed("h-2", Namespace, "m-0-lcm-agent")) }, false},
		{"the Lease of its Node, of a Machine", func() error { return machine.Create(ctx, lease("h-0")) }, true},
		{"the Lease of its Node again", func() error { return renew(machine, "h-0") }, true},
		{"the Lease of its Node, of an LCM agent", func() error { return lcm.Create(ctx, lease("h-1")) }, true},
		{"the Lease of another Machine's Node", func() error { return renew(machine, "h-1") }, false},
		{"the Lease of another Machine's Node, of an LCM agent", func() error { return renew(lcm, "h-0") }, false},
		{"the Lease of an operator's Node", func() error { return machine.Create(ctx, lease("w-1")) }, false},
		{"the Lease of a Node that does not exist", func() error { return machine.Create(ctx, lease("h-2")) }, false},
		{"a Lease, before the Node of the Machine exists", func() error { return renew(second, "h-0") }, false},
		{"the status of its Node's Pod, of a Machine", func() error { return machine.Status().Patch(ctx, podOn("h-0"), status) }, true},
		{"the status of its Node's Pod, of an LCM agent", func() error { return lcm.Status().Patch(ctx, podOn("h-1"), status) }, true},
		{"the status of another Node's Pod, of a Machine", func() error { return machine.Status().Patch(ctx, podOn("h-1"), status) }, false},
		{"the status of another Node's Pod, of an LCM agent", func() error { return lcm.Status().Patch(ctx, podOn("w-1"), status) }, false},
		{"the labels of its Node's Pod, by its status", func() error {
			return machine.Status().Patch(ctx, podOn("h-0"), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"a":"b"}}}`)))
		}, false},
		{"another Node's Pod, of a Machine", func() error { return machine.Delete(ctx, podOn("h-1"), client.GracePeriodSeconds(0)) }, false},
		{"another Node's Pod, of an LCM agent", func() error { return lcm.Delete(ctx, podOn("h-0"), client.GracePeriodSeconds(0)) }, false},
		{"a Pod that is bound to no Node, of a Machine", func() error { return machine.Delete(ctx, podOn("")) }, false},
		{"a Pod that is bound to no Node", func() error { return first.Delete(ctx, podOn("")) }, false},
		{"its Node's Pod, of a Machine", func() error { return machine.Delete(ctx, podOn("h-0"), client.GracePeriodSeconds(0)) }, true},
		{"its Node's Pod, of an LCM agent", func() error { return lcm.Delete(ctx, podOn("h-1"), client.GracePeriodSeconds(0)) }, true},
		{"the Pods of its Node", func() error { return first.List(ctx, &corev1.PodList{}, onNode("w-0")) }, true},
		{"a watch of the Pods of its Node", func() error { return watch(first, onNode("w-0")) }, true},
		{"the Pods of its Node in a namespace", func() error {
			return first.List(ctx, &corev1.PodList{}, onNode("w-0"), client.InNamespace(Namespace))
		}, true},
		{"all Pods", func() error { return first.List(ctx, &corev1.PodList{}) }, false},
		{"all Pods of a namespace", func() error { return first.List(ctx, &corev1.PodList{}, client.InNamespace(Namespace)) }, false},
		{"a watch of all Pods", func() error { return watch(first) }, false},
		{"another Node's Pods", func() error { return first.List(ctx, &corev1.PodList{}, onNode("w-1")) }, false},
		{"a watch of another Node's Pods", func() error { return watch(first, onNode("w-1")) }, false},
		{"the Pods of all Nodes but its own", func() error {
			return first.List(ctx, &corev1.PodList{}, client.MatchingFieldsSelector{Selector: fields.OneTermNotEqualSelector("spec.nodeName", "w-0")})
		}, false},
		{"the Pods of the Node that the account of a Machine has created", func() error { return machine.List(ctx, &corev1.PodList{}, onNode("h-0")) }, true},
		{"the Pods of the Node that an LCM agent has created", func() error { return lcm.List(ctx, &corev1.PodList{}, onNode("h-1")) }, true},
		{"the Pods of another Machine's Node", func() error { return second.List(ctx, &corev1.PodList{}, onNode("h-0")) }, false},
		{"the Pods of another Machine's Node, of an LCM agent", func() error { return lcm.List(ctx, &corev1.PodList{}, onNode("h-0")) }, false},
		{"the Pods of a Node that does not exist", func() error { return lcm.List(ctx, &corev1.PodList{}, onNode("h-9")) }, false},
		{"all Pods, of an LCM agent", func() error { return lcm.List(ctx, &corev1.PodList{}) }, false},
	} {
		// The roles must not be what refuses: they know no names.
		if err := tt.do(); tt.allowed != (err == nil) || !tt.allowed && !(apierrors.IsForbidden(err) && ofPolicy.MatchString(err.Error())) {
			t.Errorf("an account and %s: %v, want allowed %t", tt.what, err, tt.allowed)
		}
	}
}

var ofPolicy = regexp.MustCompile(`writes its own node alone, not|reads the Pods of its own node alone|node-agent: it stays as it was|node "h-0" cannot update labels through pod status`)

// podOn returns a Pod that is bound to a node.
func podOn(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "pod-of-" + cmp.Or(name, "none")}, Spec: corev1.PodSpec{
		NodeName: name, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}},
	}}
}

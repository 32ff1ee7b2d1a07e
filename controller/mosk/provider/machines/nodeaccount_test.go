package machines

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
)

// own gives all clusters of a lab an API of their own, with objects.
func (l *lab) own(objects ...client.Object) client.Client {
	c := fake.NewClientBuilder().WithScheme(l.Scheme()).WithObjects(objects...).Build()
	l.workload = func(context.Context, string, string) (workload.API, error) {
		return workload.API{Client: c, Own: true, Config: &rest.Config{Host: "https://192.0.2.7:6443", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("CA")}}}, nil
	}
	return c
}

// A server becomes a Node of its Cluster's own API, with an account there that ends with the
// Machine.
func TestNodeOfAnOwnAPI(t *testing.T) {
	l := start(t, objects(host("h-0"), machine("m-0"))...)
	api := l.own(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "lab-nodes"}})
	l.run()
	data := string(get(l, "m-0-user-data", new(corev1.Secret)).Data["userData"])
	for _, want := range []string{"/etc/lab-agent/node.yaml", "/etc/lab-agent/node-token", "systemctl enable --now lab-agent-node.service"} {
		if !strings.Contains(data, want) {
			t.Errorf("the user data have no %s:\n%s", want, data)
		}
	}
	account := client.ObjectKey{Namespace: "lab-nodes", Name: "m-0"}
	l.must(api.Get(t.Context(), account, &corev1.ServiceAccount{}))
	l.must(l.Delete(t.Context(), l.machine("m-0")))
	l.run()
	if err := api.Get(t.Context(), account, &corev1.ServiceAccount{}); !apierrors.IsNotFound(err) {
		t.Errorf("the account of a Machine that is gone: %v", err)
	}
	if len(l.machines()) > 0 {
		t.Error("the Machine is not deleted")
	}
}

// An API that no lab has started has kubelets, and no account of node agents.
func TestNodesOfOthersRegisterThemselves(t *testing.T) {
	l := start(t, objects(host("h-0"), machine("m-0"))...)
	l.own()
	l.run()
	if data := string(get(l, "m-0-user-data", new(corev1.Secret)).Data["userData"]); strings.Contains(data, "node") {
		t.Errorf("the user data have a node agent:\n%s", data)
	}
}

// While the Cluster's API cannot be used no server gets its image, and a Machine is deleted though
// its API is gone.
func TestMachineWaitsForTheAPI(t *testing.T) {
	l := start(t, objects(host("h-0"), machine("m-0"))...)
	c := get(l, "c1", new(clusterv1.Cluster))
	api := baremetalv1.Condition{Type: "Kubernetes", Message: "Secret lab/c1-kubeconfig does not exist yet"}
	c.Status.ProviderStatus.Conditions = append(c.Status.ProviderStatus.Conditions, api)
	l.must(l.Status().Update(t.Context(), c))
	l.run()
	if got, want := l.instance("m-0").Message, `Cluster "c1": `+api.Message; got != want {
		t.Errorf("the Machine waits for %q, want %q", got, want)
	}
	c = get(l, "c1", new(clusterv1.Cluster))
	c.Status.ProviderStatus.Conditions = nil
	l.must(l.Status().Update(t.Context(), c))
	l.run()
	if !l.instance("m-0").Ready {
		t.Errorf("the Machine: %+v", l.instance("m-0"))
	}
	l.workload = func(context.Context, string, string) (workload.API, error) {
		return workload.API{}, &workload.SecretError{}
	}
	l.must(l.Delete(t.Context(), l.machine("m-0")))
	l.run()
	if len(l.machines()) > 0 {
		t.Error("a Machine whose API is gone is not deleted")
	}
}

// The condition Kubelet follows the Node in the Cluster's own API, which nothing watches; nodeRef
// stays when the Node is gone, so that a drain misses it.
func TestKubeletOfAnOwnAPI(t *testing.T) {
	l := start(t, objects(host("h-0"), machine("m-0"))...)
	api := l.own()
	l.run()
	kubelet := func() (out baremetalv1.Condition) {
		t.Helper()
		l.settle()
		for _, c := range l.machine("m-0").Status.ProviderStatus.Conditions {
			if c.Type == baremetalv1.ConditionKubelet {
				out = c
			}
		}
		return out
	}
	if got := kubelet(); got.Type != "" || l.machine("m-0").Status.NodeRef != nil {
		t.Errorf("without a Node: %+v", got)
	}
	if res, err := l.provider(nil).Reconcile(t.Context(), ctrl.Request{NamespacedName: key("m-0")}); err != nil || res.RequeueAfter > nodePeriod || res.RequeueAfter == 0 {
		t.Errorf("Reconcile() = %+v, %v; want another look within %s", res, err, nodePeriod)
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "m-0"}}
	n.Name = item.Node(l.lcm("m-0"))
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	l.must(api.Create(t.Context(), n))
	if got := kubelet(); !got.Ready || l.machine("m-0").Status.NodeRef == nil {
		t.Errorf("with a Node: %+v, nodeRef %+v", got, l.machine("m-0").Status.NodeRef)
	}
	l.must(api.Delete(t.Context(), n))
	if got := kubelet(); got.Ready || got.Message != "Node m-0 does not exist any more: its node agent has to register it" || l.machine("m-0").Status.NodeRef == nil {
		t.Errorf("after the Node is gone: %+v, nodeRef %+v", got, l.machine("m-0").Status.NodeRef)
	}
	l.workload = func(context.Context, string, string) (workload.API, error) {
		return workload.API{Client: interceptor.NewClient(api.(client.WithWatch), interceptor.Funcs{Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("connection refused")
		}}), Own: true}, nil
	}
	if got := kubelet(); got.Ready || got.Message != "Kubernetes API of the Cluster: connection refused" {
		t.Errorf("while the API is down: %+v", got)
	}
}

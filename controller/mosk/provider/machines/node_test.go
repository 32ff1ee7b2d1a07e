package machines

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
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

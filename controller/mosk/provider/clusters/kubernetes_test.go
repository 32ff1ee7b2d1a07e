package clusters

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

const config = `apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://192.0.2.1:6443"}}]
users: [{name: u, user: {token: t}}]
`

// A Cluster that asks for an API of its own has it for good: the LCMCluster names its kubeconfig.
func TestOwnAPIOfACluster(t *testing.T) {
	all := objects()
	all[0].SetAnnotations(map[string]string{workload.Annotation: workload.Own})
	l := start(t, all...)
	if got := condition(t, l.pass(), ConditionKubernetes); got.Ready || got.Message != "Secret lab/c1-kubeconfig does not exist yet: it has the kubeconfig, with the key kubeconfig" {
		t.Errorf("without the Secret: %+v", got)
	}
	if got := l.lcm().Spec.KubeconfigSecretName; got != "c1-kubeconfig" {
		t.Errorf("kubeconfigSecretName is %q", got)
	}
	if res, err := l.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || res.RequeueAfter != queue.SecretWait {
		t.Errorf("Reconcile() = %+v, %v; want another look at the Secret after %s", res, err, queue.SecretWait)
	}
	l.must(l.Create(t.Context(), &corev1.Secret{ObjectMeta: meta("c1-kubeconfig"), Data: map[string][]byte{"kubeconfig": []byte(config)}}))
	c := l.pass()
	if got := condition(t, c, ConditionKubernetes); !got.Ready {
		t.Errorf("with the Secret: %+v", got)
	}
	for value, want := range map[string]string{
		"":       `metadata.annotations: the Cluster has a Kubernetes API of its own, and keeps it: set metalab.dev/kubernetes-api to "own" again`,
		"shared": `metadata.annotations: metalab.dev/kubernetes-api is "shared": give "own", or remove it`,
	} {
		update(l, c, func(c *clusterv1.Cluster) {
			c.Annotations = map[string]string{workload.Annotation: value}
			if value == "" {
				c.Annotations = nil
			}
		})
		if got := condition(t, l.pass(), ConditionKubernetes); got.Ready || got.Message != want || l.lcm().Spec.KubeconfigSecretName != "c1-kubeconfig" {
			t.Errorf("annotation %q: %+v, want %q; the LCMCluster has %q", value, got, want, l.lcm().Spec.KubeconfigSecretName)
		}
	}
}

func TestClusterThatAsksTooLate(t *testing.T) {
	l := start(t, objects()...)
	c := l.pass()
	update(l, c, func(c *clusterv1.Cluster) { c.Annotations = map[string]string{workload.Annotation: workload.Own} })
	want := "metadata.annotations: metalab.dev/kubernetes-api came after the Cluster was deployed, and does nothing: remove it, or make the Cluster anew"
	if got := condition(t, l.pass(), ConditionKubernetes); got.Ready || got.Message != want || l.lcm().Spec.KubeconfigSecretName != "" {
		t.Errorf("condition %+v, want %q; the LCMCluster has %q", got, want, l.lcm().Spec.KubeconfigSecretName)
	}
	update(l, c, func(c *clusterv1.Cluster) { c.Annotations = nil })
	for _, x := range l.pass().Status.ProviderStatus.Conditions {
		if x.Type == ConditionKubernetes {
			t.Errorf("the condition stays: %+v", x)
		}
	}
}

package kube

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubectlMutex serialises runs of kubectl, which reports failures through a variable of
// its package.
var kubectlMutex sync.Mutex

// kubectl runs upstream's kubectl and returns what it prints, and its error.
func kubectl(t *testing.T, api *API, args ...string) (string, error) {
	t.Helper()
	kubectlMutex.Lock()
	defer kubectlMutex.Unlock()
	kubeconfig, cache := api.Kubeconfig(), filepath.Join(t.TempDir(), "cache")
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig, flags.CacheDir = &kubeconfig, &cache
	out := new(bytes.Buffer)
	command := cmd.NewKubectlCommand(cmd.KubectlOptions{
		ConfigFlags: flags, IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out},
	})
	command.SetArgs(args)
	command.SetOut(out)
	command.SetErr(out)
	util.BehaviorOnFatal(func(text string, _ int) { panic(fatalText(text)) })
	defer util.DefaultBehaviorOnFatal()
	err := func() (err error) {
		defer func() {
			switch r := recover().(type) {
			case nil:
			case fatalText:
				err = fmt.Errorf("kubectl %s: %s", strings.Join(args, " "), r)
			default:
				panic(r)
			}
		}()
		return command.ExecuteContext(t.Context())
	}()
	return out.String(), err
}

// fatalText is the panic that ends kubectl when it fails.
type fatalText string

func mustKubectl(t *testing.T, api *API, want string, args ...string) {
	t.Helper()
	if out, err := kubectl(t, api, args...); err != nil || !strings.Contains(out, want) {
		t.Fatalf("kubectl %s printed %q, error %v; want %q and no error", strings.Join(args, " "), out, err, want)
	}
}

// node returns a node.
func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// bound returns a pod that is bound to a node.
func bound(ns, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "example.org/c"}}},
	}
}

// runPod sets the status that a kubelet sets for a pod whose containers run.
func runPod(t *testing.T, c client.Client, p *corev1.Pod) {
	t.Helper()
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := c.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
}

// finish deletes a pod as a kubelet does when the containers of a deleted pod have ended.
func finish(t *testing.T, c client.Client, p *corev1.Pod) {
	t.Helper()
	if err := c.Delete(t.Context(), p, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

func TestNodesOffByDefault(t *testing.T) {
	cs, err := kubernetes.NewForConfig(sharedAPI(t).RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cs.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("List() of nodes without Config.Nodes: error = %v, want NotFound", err)
	}
}

// TestNodes starts one API with Config.Nodes for all checks of it.
func TestNodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	api := start(t, Config{Dir: dir, Nodes: true})
	t.Run("groups", func(t *testing.T) { servesNodeGroups(t, api) })
	t.Run("objects", func(t *testing.T) { storesNodeKinds(t, api) })
	t.Run("drain", func(t *testing.T) { drainsWithKubectl(t, api) })
	c := clientFor(t, api.RESTConfig())
	create(t, c, node("kept"))
	stop(t, api)
	again := start(t, Config{Dir: dir, Nodes: true})
	if err := clientFor(t, again.RESTConfig()).Get(t.Context(), client.ObjectKey{Name: "kept"}, new(corev1.Node)); err != nil {
		t.Errorf("Get() of a node after a restart: %v", err)
	}
}

func servesNodeGroups(t *testing.T, api *API) {
	cs, err := kubernetes.NewForConfig(api.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for gv, want := range map[string][]string{
		"v1": {
			"nodes", "nodes/status", "pods", "pods/status", "pods/binding", "pods/eviction", "services",
			"persistentvolumes", "persistentvolumeclaims",
		},
		"apps/v1":              {"deployments", "daemonsets", "replicasets", "statefulsets"},
		"batch/v1":             {"jobs", "cronjobs"},
		"policy/v1":            {"poddisruptionbudgets", "poddisruptionbudgets/status"},
		"networking.k8s.io/v1": {"ingresses", "networkpolicies"},
		"metal3.io/v1alpha1":   {"baremetalhosts"}, // hosts are served as without nodes
	} {
		list, err := cs.Discovery().ServerResourcesForGroupVersion(gv)
		if err != nil {
			t.Errorf("discovery of %s: %v", gv, err)
			continue
		}
		for _, name := range want {
			if !slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name }) {
				t.Errorf("discovery of %s lacks %s", gv, name)
			}
		}
	}
	mustKubectl(t, api, "deployments", "api-resources", "--api-group=apps")
	mustKubectl(t, api, "service/kubernetes", "get", "svc", "-n", "default", "-o", "name")
}

func storesNodeKinds(t *testing.T, api *API) {
	c := clientFor(t, api.RESTConfig())
	ns := freshNamespace(t, c)
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
	create(t, c, svc)
	if svc.Spec.ClusterIP == "" {
		t.Error("a created Service has no cluster IP, want one of the range")
	}
	create(t, c, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}})
	create(t, c, node("binds"))
	p := bound(ns, "unbound", "")
	create(t, c, p)
	if err := c.SubResource("binding").Create(t.Context(), p, &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "binds"}}); err != nil {
		t.Fatalf("binding: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(p), p); err != nil || p.Spec.NodeName != "binds" {
		t.Errorf("a bound pod has node %q, error %v; want binds", p.Spec.NodeName, err)
	}
	if p.Status.Phase != corev1.PodPending {
		t.Errorf("a bound pod is %s, want Pending: nothing runs it", p.Status.Phase)
	}
	create(t, c, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "b"}})
	refused := bound(ns, "No_Name", "")
	if err := c.Create(t.Context(), refused); !apierrors.IsInvalid(err) {
		t.Errorf("Create() of a pod with an invalid name: error = %v, want Invalid", err)
	}
}

// drainsWithKubectl cordons and drains a node on which one pod is in a budget that lets
// none go, and then one.
func drainsWithKubectl(t *testing.T, api *API) {
	c := clientFor(t, api.RESTConfig())
	ns := freshNamespace(t, c)
	create(t, c, node("worker-0"))
	mustKubectl(t, api, "worker-0", "get", "nodes")
	mustKubectl(t, api, "cordoned", "cordon", "worker-0")
	mustKubectl(t, api, "SchedulingDisabled", "get", "node", "worker-0")

	free, held, other := bound(ns, "free", "worker-0"), bound(ns, "held", "worker-0"), bound(ns, "elsewhere", "worker-1")
	for _, p := range []*corev1.Pod{free, held, other} {
		create(t, c, p)
		runPod(t, c, p)
	}
	one := intstr.FromInt32(1)
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "held"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &one, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "held"}}},
	}
	create(t, c, budget)
	current := func(healthy int32) {
		t.Helper()
		eventually(t, "the status of the budget", func(ctx context.Context) (bool, error) {
			err := c.Get(ctx, client.ObjectKeyFromObject(budget), budget)
			return budget.Status.ObservedGeneration == budget.Generation && budget.Status.CurrentHealthy == healthy, err
		})
	}
	current(1)
	drain := []string{"drain", "worker-0", "--force", "--timeout=1s", "--pod-selector=app in (free,held)"}
	out, err := kubectl(t, api, drain...)
	if err == nil || !strings.Contains(out, "violate the pod's disruption budget") {
		t.Fatalf("kubectl drain with a budget that lets no pod go printed %q, error %v; want a refusal by the budget", out, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil || held.DeletionTimestamp != nil {
		t.Errorf("the pod in the budget is deleted at %v, error %v; want it untouched", held.DeletionTimestamp, err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(free), free); err != nil || free.DeletionTimestamp == nil {
		t.Fatalf("the pod in no budget is not deleted, error %v; want it evicted, and there until its node lets it go", err)
	}
	finish(t, c, free)

	// A second pod elsewhere makes the budget let one go.
	second := bound(ns, "held-2", "worker-1")
	second.Labels["app"] = "held"
	create(t, c, second)
	runPod(t, c, second)
	current(2)
	_, _ = kubectl(t, api, drain...) // evicts it, and waits for its end
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(held), held); err != nil || held.DeletionTimestamp == nil {
		t.Fatalf("the pod in a budget that lets one go is not deleted, error %v", err)
	}
	finish(t, c, held)
	mustKubectl(t, api, "drained", drain...)
	mustKubectl(t, api, "uncordoned", "uncordon", "worker-0")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil || other.DeletionTimestamp != nil {
		t.Errorf("the pod of another node is deleted at %v, error %v; want it untouched", other.DeletionTimestamp, err)
	}
}

package ownapi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// lab is a management API, and the APIs of its Clusters, which restart restarts.
type lab struct {
	*testing.T
	client.Client
	management *kube.API
	dir        string
	apis       *APIs
	stop       func()
}

func start(t *testing.T) *lab {
	t.Helper()
	k, err := kube.Start(t.Context(), kube.Config{Dir: t.TempDir(), FastPaths: true, Families: []string{config.HOC}, Nodes: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Stop() })
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), lcmv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(k.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{T: t, Client: c, management: k, dir: t.TempDir(), stop: func() {}}
	l.restart()
	t.Cleanup(func() { l.stop() })
	return l
}

func (l *lab) restart() {
	l.Helper()
	l.stop()
	apis, err := New(Config{
		Management: l.management.RESTConfig(), Kube: kube.Config{Dir: l.dir, FastPaths: true, Nodes: true, Workload: true},
		Prepare: func(context.Context, *rest.Config) (func(context.Context) error, error) { return nil, nil },
		Work:    queue.Work{Clock: clock.RealClock{}},
	})
	if err != nil {
		l.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- apis.Run(ctx) }()
	l.apis = apis
	l.stop = func() {
		cancel()
		if err := errors.Join(<-ended, apis.Stop()); err != nil {
			l.Error(err)
		}
	}
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// cluster creates a Cluster that asks for an API of its own.
func (l *lab) cluster(name string) *clusterv1.Cluster {
	l.Helper()
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, Labels: map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}, Annotations: map[string]string{workload.Annotation: workload.Own},
	}}
	l.must(l.Create(l.Context(), c))
	return c
}

// eventually waits until ok returns "", which otherwise says why not.
func (l *lab) eventually(what string, ok func() string) {
	l.Helper()
	why := ""
	err := wait.PollUntilContextTimeout(l.Context(), 20*time.Millisecond, patience.Limit(), true, func(context.Context) (bool, error) {
		why = ok()
		return why == "", nil
	})
	if err != nil {
		l.Fatalf("%s: %s", what, why)
	}
}

// api waits for the kubeconfig of a Cluster, and returns a client of its API.
func (l *lab) api(cluster string) client.Client {
	l.Helper()
	s := &corev1.Secret{}
	l.eventually("the kubeconfig of "+cluster, func() string {
		err := l.Get(l.Context(), client.ObjectKey{Namespace: "default", Name: workload.SecretName(cluster)}, s)
		if err == nil && l.apis.Of(client.ObjectKey{Namespace: "default", Name: cluster}) == nil {
			err = errors.New("the API does not run")
		}
		if err != nil {
			return err.Error()
		}
		return ""
	})
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Data[workload.KubeconfigKey])
	l.must(err)
	c, err := client.New(config, client.Options{Scheme: l.Scheme()})
	l.must(err)
	return c
}

func (l *lab) gone(what, dir string) {
	l.Helper()
	l.eventually(what, func() string {
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return dir + " is there"
		}
		return ""
	})
}

// Two Clusters have an API each, which live as long as their Clusters, and through a restart of
// the lab.
func TestEachClusterHasItsAPI(t *testing.T) {
	l := start(t)
	c1, c2 := l.cluster("c1"), l.cluster("c2")
	first, second := l.api("c1"), l.api("c2")
	l.must(first.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "w-0"}}))
	lock := &lcmv1.ClusterWorkloadLock{ObjectMeta: metav1.ObjectMeta{Name: "app"}, Spec: lcmv1.ClusterWorkloadLockSpec{ControllerName: "c"}}
	l.must(first.Create(t.Context(), lock))
	if err := second.Get(t.Context(), client.ObjectKey{Name: "w-0"}, &corev1.Node{}); !apierrors.IsNotFound(err) {
		t.Errorf("the other Cluster's API: %v, want no Node", err)
	}
	if err := first.List(t.Context(), &clusterv1.ClusterList{}); err == nil {
		t.Error("the API of a Cluster serves the kinds of the management cluster")
	}

	l.must(l.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: workload.SecretName("c1")}}))
	l.api("c1") // its kubeconfig is written again

	l.restart()
	l.must(l.api("c1").Get(t.Context(), client.ObjectKey{Name: "w-0"}, &corev1.Node{}))
	l.must(first.Get(t.Context(), client.ObjectKey{Name: "w-0"}, &corev1.Node{})) // at the same address

	l.must(l.Delete(t.Context(), c1))
	l.gone("the state of a Cluster that is gone", filepath.Join(l.dir, string(c1.UID)))
	l.must(l.api("c2").List(t.Context(), &corev1.NodeList{}))

	l.stop()
	l.stop = func() {}
	l.must(l.Delete(t.Context(), c2))
	l.restart()
	l.gone("the state of a Cluster that was deleted while the lab was stopped", filepath.Join(l.dir, string(c2.UID)))
}

// A Cluster that does not ask, one that asks too late, and one whose Secret is the user's.
func TestClustersWithoutAnAPI(t *testing.T) {
	l := start(t)
	deployed := &lcmv1.LCMCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}, Spec: lcmv1.LCMClusterSpec{
		ManagementClusterEndpoint: lcmv1.Endpoint{Host: "192.0.2.1", Port: 6443}, HelmControllerServiceAccountName: "helm", MachinesTypes: map[lcmv1.MachineType][]lcmv1.LCMStateItem{},
	}}
	l.must(l.Create(t.Context(), deployed))
	l.eventually("the LCMCluster is in the cache", func() string {
		if err := l.apis.client.Get(t.Context(), client.ObjectKeyFromObject(deployed), &lcmv1.LCMCluster{}); err != nil {
			return err.Error()
		}
		return ""
	})
	l.cluster("late")
	l.must(l.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: workload.SecretName("users")}, StringData: map[string]string{"kubeconfig": "{}"}}))
	l.cluster("users")
	shared := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "shared", Labels: map[string]string{clusterv1.ProviderLabel: clusterv1.ProviderBareMetal}}}
	l.must(l.Create(t.Context(), shared))
	for _, name := range []string{"late", "users", "shared"} {
		key := client.ObjectKey{Namespace: "default", Name: name}
		l.must(l.apis.reconcile(t.Context(), key))
		if l.apis.Of(key) != nil {
			t.Errorf("the Cluster %s has an API", name)
		}
	}
}

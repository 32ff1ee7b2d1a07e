// Package ownapi starts the Kubernetes APIs that Clusters of cluster.k8s.io ask for. In the field
// every Cluster has one; in a lab a Cluster shares the lab's own unless the annotation
// workload.Annotation asks for another, because each costs memory and seconds (docs/day2.md).
//
// An API has the kinds of nodes and of LCM's maintenance, and its kubeconfig is in the Secret that
// LCMCluster.spec.kubeconfigSecretName names. It lives as long as its Cluster: its state stays when
// the lab stops, and goes with the Cluster. A Secret of that name which is not the Cluster's is the
// user's: then the Cluster's API is elsewhere, and none is started.
package ownapi

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/kube"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Config configures APIs.
type Config struct {
	queue.Work
	Management *rest.Config // API in which the Clusters are
	// Kube is the configuration of the APIs. Its Dir has a directory for each, by the UID of the
	// Cluster.
	Kube kube.Config
	// Prepare makes an API ready for its nodes, before its kubeconfig is given away. run, if not nil,
	// is called in a goroutine until the API ends.
	Prepare func(ctx context.Context, api *rest.Config) (run func(context.Context) error, err error)
	Log     logr.Logger
}

// APIs are the APIs of Clusters.
type APIs struct {
	Config
	manager manager.Manager
	client  client.Client // its reads are cached, but those of Secrets
	failed  chan error

	mu      sync.Mutex
	running map[client.ObjectKey]*api // by the Cluster's key
}

// api is a running API.
type api struct {
	*kube.API
	uid  types.UID // of the Cluster
	stop func()    // ends what runs beside the API, and waits for that
}

// New returns the APIs of Clusters. None is started before Run.
func New(c Config) (*APIs, error) {
	if c.Management == nil || c.Clock == nil || c.Kube.Dir == "" || c.Prepare == nil {
		return nil, errors.New("Config.Management, Config.Clock, Config.Kube.Dir or Config.Prepare is missing")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), lcmv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	ofClusters, err := labels.Parse(clusterv1.ClusterNameLabel)
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(c.Management, ctrl.Options{
		Scheme: scheme, Logger: c.Log, Metrics: server.Options{BindAddress: "0"},
		Cache:  cache.Options{ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: ofClusters}}},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
	})
	if err != nil {
		return nil, err
	}
	a := &APIs{Config: c, manager: mgr, client: mgr.GetClient(), failed: make(chan error, 1), running: map[client.ObjectKey]*api{}}
	err = ctrl.NewControllerManagedBy(mgr).
		Named("cluster-apis").
		For(&clusterv1.Cluster{}).
		Watches(&lcmv1.LCMCluster{}, &handler.EnqueueRequestForObject{}).
		Owns(&corev1.Secret{}, builder.OnlyMetadata). // one that was deleted is written again
		WithOptions(c.Options()).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			return queue.Reconcile(c.Enter, func() error { return a.reconcile(ctx, req.NamespacedName) })
		}))
	if err != nil {
		return nil, err
	}
	return a, mgr.Add(manager.RunnableFunc(a.removeOld))
}

// Run starts and stops APIs until ctx ends. It returns an error when one of them fails. Stop ends
// those that run.
func (a *APIs) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case err := <-a.failed:
			cancel(err)
		case <-ctx.Done():
		}
	}()
	err := a.manager.Start(ctx)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	return err
}

// Stop stops all APIs. Their state stays.
func (a *APIs) Stop() error {
	var errs []error
	for _, key := range a.Clusters() {
		errs = append(errs, a.end(key))
	}
	return errors.Join(errs...)
}

// Clusters returns the keys of the Clusters whose APIs run, in their order.
func (a *APIs) Clusters() (out []client.ObjectKey) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for key := range a.running {
		out = append(out, key)
	}
	slices.SortFunc(out, func(x, y client.ObjectKey) int {
		return slices.Compare([]string{x.Namespace, x.Name}, []string{y.Namespace, y.Name})
	})
	return out
}

// Of returns the running API of a Cluster, nil when it has none.
func (a *APIs) Of(cluster client.ObjectKey) *kube.API {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.running[cluster]; x != nil {
		return x.API
	}
	return nil
}

func (a *APIs) reconcile(ctx context.Context, key client.ObjectKey) error {
	var c clusterv1.Cluster
	err := a.client.Get(ctx, key, &c)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("Cluster %s: %w", key, err)
	}
	if uid := a.uid(key); uid != "" && uid != c.UID { // the Cluster is gone, or another one of its name
		return errors.Join(a.end(key), a.remove(string(uid)))
	}
	if err != nil {
		return nil
	}
	wanted, err := a.wanted(ctx, &c)
	if err != nil || !wanted {
		return err
	}
	if a.uid(key) == "" {
		if err := a.start(ctx, key, c.UID); err != nil {
			return fmt.Errorf("Cluster %s: %w", key, err)
		}
	}
	if err := a.give(ctx, &c); err != nil {
		return fmt.Errorf("Cluster %s: %w", key, err)
	}
	return nil
}

func (a *APIs) uid(key client.ObjectKey) types.UID {
	a.mu.Lock()
	defer a.mu.Unlock()
	if x := a.running[key]; x != nil {
		return x.uid
	}
	return ""
}

// wanted reports whether a Cluster has an API here: it asks for one before it is deployed, or was
// deployed with one.
func (a *APIs) wanted(ctx context.Context, c *clusterv1.Cluster) (bool, error) {
	if c.Labels[clusterv1.ProviderLabel] != clusterv1.ProviderBareMetal {
		return false, nil
	}
	var l lcmv1.LCMCluster
	switch err := a.client.Get(ctx, client.ObjectKeyFromObject(c), &l); {
	case err == nil && l.Spec.KubeconfigSecretName != workload.SecretName(c.Name):
		return false, nil
	case apierrors.IsNotFound(err) && c.Annotations[workload.Annotation] != workload.Own:
		return false, nil
	case client.IgnoreNotFound(err) != nil:
		return false, fmt.Errorf("LCMCluster: %w", err)
	}
	s, err := a.secret(ctx, c)
	return err == nil && (s == nil || metav1.IsControlledBy(s, c)), err
}

// secret returns the Secret of a Cluster's kubeconfig, nil when there is none.
func (a *APIs) secret(ctx context.Context, c *clusterv1.Cluster) (*corev1.Secret, error) {
	s := new(corev1.Secret)
	err := a.client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: workload.SecretName(c.Name)}, s)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return s, err
}

// start starts the API of a Cluster, with the state that it has from an earlier run of the lab.
func (a *APIs) start(ctx context.Context, key client.ObjectKey, uid types.UID) (err error) {
	if a.Kube.Space != nil {
		if err := a.Kube.Space(); err != nil {
			return err
		}
	}
	config := a.Kube
	config.Dir = filepath.Join(a.Kube.Dir, string(uid))
	// Not ctx: the API outlives the controllers, and Stop ends it.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	k, err := kube.Start(life, config)
	if err != nil {
		return err
	}
	run, err := a.Prepare(ctx, k.RESTConfig())
	if err != nil {
		return errors.Join(err, k.Stop())
	}
	var beside sync.WaitGroup
	if run != nil {
		beside.Go(func() {
			if err := run(life); err != nil && life.Err() == nil {
				a.fail(fmt.Errorf("Cluster %s: %w", key, err))
			}
		})
	}
	beside.Go(func() {
		select {
		case <-life.Done():
		case <-k.Done():
			if life.Err() == nil {
				a.fail(fmt.Errorf("the Kubernetes API of Cluster %s has ended: %w", key, k.Err()))
			}
		}
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.running[key] = &api{API: k, uid: uid, stop: func() { cancel(); beside.Wait() }}
	return nil
}

func (a *APIs) fail(err error) {
	select {
	case a.failed <- err:
	default: // one failure ends the lab
	}
}

// end stops the API of a Cluster.
func (a *APIs) end(key client.ObjectKey) error {
	a.mu.Lock()
	x := a.running[key]
	delete(a.running, key)
	a.mu.Unlock()
	if x == nil {
		return nil
	}
	x.stop()
	if err := x.Stop(); err != nil {
		return fmt.Errorf("Cluster %s: %w", key, err)
	}
	return nil
}

// give writes the kubeconfig to the Cluster's Secret, which goes with the Cluster.
func (a *APIs) give(ctx context.Context, c *clusterv1.Cluster) error {
	text, err := os.ReadFile(a.Of(client.ObjectKeyFromObject(c)).Kubeconfig())
	if err != nil {
		return err
	}
	current, err := a.secret(ctx, c)
	if err != nil {
		return err
	}
	want := &corev1.Secret{}
	if current != nil {
		want = current.DeepCopy()
	}
	want.Namespace, want.Name, want.Data = c.Namespace, workload.SecretName(c.Name), map[string][]byte{workload.KubeconfigKey: text}
	metav1.SetMetaDataLabel(&want.ObjectMeta, clusterv1.ClusterNameLabel, c.Name)
	metav1.SetMetaDataAnnotation(&want.ObjectMeta, workload.SecretTypeAnnotation, "kubeconfig")
	want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, clusterv1.GroupVersion.WithKind("Cluster"))}
	switch {
	case current == nil:
		return a.client.Create(ctx, want)
	case equality.Semantic.DeepEqual(current, want):
		return nil
	}
	return a.client.Update(ctx, want)
}

// remove removes the state of an API.
func (a *APIs) remove(uid string) error {
	if err := os.RemoveAll(filepath.Join(a.Kube.Dir, uid)); err != nil {
		return err
	}
	return nil
}

// removeOld removes the state of Clusters that were deleted while the lab was stopped.
func (a *APIs) removeOld(ctx context.Context) error {
	entries, err := os.ReadDir(a.Kube.Dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var list clusterv1.ClusterList
	if err := errors.Join(err, a.client.List(ctx, &list)); err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.ContainsFunc(list.Items, func(c clusterv1.Cluster) bool { return string(c.UID) == e.Name() }) {
			if err := a.remove(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}

// Package helmpods makes the pods of the chart of a Cluster's Helm controller in a lab, which runs
// no other Deployment. The controller of the chart is code of the lab's process there, so that its
// pods are ready while the lab's controllers run, and not ready while they are stopped.
//
// It acts on the Deployment of a release of that chart alone: one with the chart's labels, which Helm
// has installed, and whose pods mount the Secret of the controller's account. As a cluster would, it
// makes the ReplicaSet of each template and a pod for each replica, writes their statuses, and rolls
// out a new template. The pods are on no Node, since no server runs them: a server that is drained,
// rebooted or deleted evicts none of them, and none keeps a drain waiting.
package helmpods

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Config configures Pods.
type Config struct {
	queue.Work
	API     *rest.Config // API that has the Deployments
	Process *Process     // process of the lab's controllers
	Log     logr.Logger
}

// Pods makes the pods of one API.
type Pods struct {
	Config
	manager manager.Manager
	client  client.Client // writes
	live    client.Reader // reads past the cache, which has no more than metadata
	end     func()
}

// New returns the Pods of an API. They do nothing before Run.
func New(c Config) (*Pods, error) {
	if c.API == nil || c.Process == nil || c.Clock == nil {
		return nil, errors.New("Config.API, Config.Process or Config.Clock is nil")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), appsv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(c.API, ctrl.Options{
		Scheme: scheme, Logger: c.Log, Metrics: server.Options{BindAddress: "0"},
		Cache: cache.Options{DefaultLabelSelector: labels.SelectorFromSet(helmcontroller.Labels)},
	})
	if err != nil {
		return nil, err
	}
	p := &Pods{Config: c, manager: mgr, client: mgr.GetClient(), live: mgr.GetAPIReader()}
	changes, end := c.Process.watch()
	p.end = end
	release := handler.EnqueueRequestsFromMapFunc(ofRelease)
	err = ctrl.NewControllerManagedBy(mgr).
		Named("helm-pods").
		For(&appsv1.Deployment{}, builder.OnlyMetadata).
		Watches(&appsv1.ReplicaSet{}, release, builder.OnlyMetadata).
		Watches(&corev1.Pod{}, release, builder.OnlyMetadata).
		Watches(&corev1.Secret{}, release, builder.OnlyMetadata).
		WatchesRawSource(source.Channel(changes, handler.EnqueueRequestsFromMapFunc(p.all))).
		WithOptions(c.Options()).
		Complete(reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			return queue.Reconcile(c.Enter, func() error { return p.reconcile(ctx, req.NamespacedName) })
		}))
	if err != nil {
		end()
		return nil, err
	}
	return p, nil
}

// Run makes pods until ctx ends.
func (p *Pods) Run(ctx context.Context) error {
	defer p.end()
	return p.manager.Start(ctx)
}

// ofRelease enqueues the Deployment of an object's release: it has the release's name.
func ofRelease(_ context.Context, o client.Object) []reconcile.Request {
	name := o.GetLabels()[helmcontroller.InstanceLabel]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// all enqueues all Deployments.
func (p *Pods) all(ctx context.Context, _ client.Object) (out []reconcile.Request) {
	var list appsv1.DeploymentList
	if err := p.live.List(ctx, &list, client.MatchingLabels(helmcontroller.Labels)); err != nil {
		p.Log.Error(err, "the Deployments of Helm controllers are not listed: their pods keep their state")
	}
	for i := range list.Items {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return out
}

// ours reports whether a Deployment is that of a release of the chart.
func ours(d *appsv1.Deployment) bool {
	for name, value := range helmcontroller.Labels { // in any order: all must match
		if d.Labels[name] != value || d.Spec.Template.Labels[name] != value {
			return false
		}
	}
	if d.Labels[helmcontroller.InstanceLabel] != d.Name || d.Spec.Template.Labels[helmcontroller.InstanceLabel] != d.Name ||
		d.Annotations[helmcontroller.ReleaseAnnotation] != d.Name || d.Annotations[helmcontroller.NamespaceAnnotation] != d.Namespace {
		return false
	}
	for _, v := range d.Spec.Template.Spec.Volumes {
		if v.Secret != nil && v.Secret.SecretName == helmcontroller.SecretName(d.Name) {
			return true
		}
	}
	return false
}

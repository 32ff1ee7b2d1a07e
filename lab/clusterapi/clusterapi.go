// Package clusterapi stands in for Cluster API's core and for a bootstrap provider in a lab, which
// has neither. Of their contracts (v1beta1) it does what infrastructure needs of them:
//
//   - a Cluster owns its infrastructure, copies the endpoint and the readiness from it, and is
//     deleted after its Machines;
//   - a Machine is owned by its Cluster and owns its infrastructure, copies provider ID and
//     readiness from it, finds its Node, and is deleted after its infrastructure and its Node;
//   - a Machine without bootstrap data gets a Secret whose cloud-config registers the server as a
//     Node of the lab's API;
//   - the control plane counts as initialized once a server has bootstrapped: the lab's API is
//     that of the workload cluster.
//
// It drains no node, rolls out no template, checks no health, and acts on the Elemental kinds of
// infrastructure alone. A cluster with Cluster API does all that itself: the stand-in runs only
// where the lab serves the kinds of the family cluster-api.
package clusterapi

import (
	"context"
	"errors"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Config configures a Core.
type Config struct {
	queue.Work
	API  *rest.Config // the API of the management cluster and of all workload clusters
	Wall clock.PassiveClock
	Log  logr.Logger
}

// Core is the stand-in.
type Core struct {
	Config
	manager manager.Manager
	client  client.Client // its reads are cached but those of Nodes and Secrets
	live    client.Client
}

// New returns a Core. It does nothing before Run.
func New(c Config) (*Core, error) {
	if c.API == nil || c.Clock == nil || c.Wall == nil {
		return nil, errors.New("Config.API, Config.Clock or Config.Wall is nil")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), capi.AddToScheme(scheme), elementalv1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(c.API, ctrl.Options{
		Scheme: scheme, Logger: c.Log, Metrics: server.Options{BindAddress: "0"},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Node{}, &corev1.Secret{}, &corev1.ServiceAccount{}}}},
	})
	if err != nil {
		return nil, err
	}
	live, err := client.New(c.API, client.Options{Scheme: scheme, Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, err
	}
	k := &Core{Config: c, manager: mgr, client: mgr.GetClient(), live: live}
	if err := errors.Join(k.setupClusters(), k.setupMachines()); err != nil {
		return nil, err
	}
	return k, nil
}

// Run works until ctx ends.
func (k *Core) Run(ctx context.Context) error { return k.manager.Start(ctx) }

// enqueue returns a handler that enqueues the objects that it maps another to.
func enqueue[T client.Object](keys func(context.Context, T) []client.ObjectKey) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) (out []ctrl.Request) {
		for _, key := range keys(ctx, o.(T)) {
			out = append(out, ctrl.Request{NamespacedName: key})
		}
		return out
	})
}

// owned returns the names of the owners of a kind of Cluster API.
func owned(o client.Object, kind string) (out []client.ObjectKey) {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Kind == kind && ref.APIVersion == capi.GroupVersion.String() {
			out = append(out, client.ObjectKey{Namespace: o.GetNamespace(), Name: ref.Name})
		}
	}
	return out
}

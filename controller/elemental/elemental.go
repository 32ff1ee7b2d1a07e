// Package elemental has the controllers of the Elemental kinds. A registration gets its address,
// key and token; a host that is deleted stays until its server has reset itself; a machine of
// Cluster API gets one installed host, and its Node a provider ID; a cluster is ready when it has
// an endpoint.
//
// One machine has one host, whatever controllers crash or run at a time: a machine's choice is
// a write of the machine, and a host's link a write of the host, each of which fails when
// somebody else has changed the object since it was read. What remains of a crash between
// the two is finished by the next pass, which finds the choice in the machine.
//
// The package serves no request of agents: controller/elemental/registration does.
package elemental

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/reconcile/breaker"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Config configures the controllers.
type Config struct {
	queue.Work
	Client client.Client
	// Reader reads past the cache: Secrets, which the cache must not hold, and hosts that others
	// have just changed.
	Reader client.Reader
	Wall   clock.PassiveClock // tokens and conditions are dated in real time
	URL    string             // URL of the Elemental API, which registrations without an address get
	CA     string             // PEM certificates that registrations without any get; "" means none
	// Seeds offers servers a system over the network that registers them; nil means that there is
	// no such network. With it, the cache must have BareMetalHosts.
	Seeds Seeds
	// Local is the cluster whose Nodes are those of a workload cluster without a kubeconfig Secret.
	Local client.Client

	breakers *breaker.Breakers // of the APIs of workload clusters
}

// Controllers are the controllers of the kinds.
type Controllers struct {
	registrations *registrations
	hosts         *hosts
	machines      *machines
	clusters      *clusters
}

// New returns the controllers, or an error when a required field of c is nil.
func New(c Config) (*Controllers, error) {
	if c.Client == nil || c.Reader == nil || c.Clock == nil || c.Wall == nil || c.Local == nil {
		return nil, errors.New("elemental: Config.Client, Config.Reader, Config.Clock, Config.Wall or Config.Local is nil")
	}
	c.breakers = new(breaker.Breakers)
	return &Controllers{&registrations{Config: c}, &hosts{c}, &machines{Config: c}, &clusters{c}}, nil
}

// Setup adds the controllers to a manager.
func (c *Controllers) Setup(mgr manager.Manager) error {
	return errors.Join(c.registrations.setup(mgr), c.hosts.setup(mgr), c.machines.setup(mgr), c.clusters.setup(mgr))
}

// AddToScheme adds the kinds of Cluster API that the controllers read.
var AddToScheme = capi.AddToScheme

const (
	// retryAfter is when what waits for something without an event is tried again.
	retryAfter = 10 * time.Second

	machineKind = "ElementalMachine"
	hostKind    = "ElementalHost"
)

// owner returns the name of the owner of a kind of Cluster API; "" when there is none.
func owner(o client.Object, kind string) string {
	for _, ref := range o.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err == nil && ref.Kind == kind && gv.Group == capi.GroupVersion.Group {
			return ref.Name
		}
	}
	return ""
}

// paused reports whether Cluster API has suspended the work on an object.
func paused(c *capi.Cluster, o client.Object) bool {
	_, annotated := o.GetAnnotations()[capi.PausedAnnotation]
	return annotated || c != nil && c.Spec.Paused
}

// reference returns a reference of an object, whose kind the object itself may not have.
func reference(o client.Object, kind string) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: elementalv1.GroupVersion.String(), Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(),
	}
}

// enqueue returns a handler that enqueues the objects that it maps another to.
func enqueue[T client.Object](keys func(context.Context, T) []client.ObjectKey) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) (out []ctrl.Request) {
		for _, k := range keys(ctx, o.(T)) {
			if k.Name != "" {
				out = append(out, ctrl.Request{NamespacedName: k})
			}
		}
		return out
	})
}

// wrap adds the reconciled object's name to an error, which stays a conflict or a NotFound.
func wrap(kind string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("elemental: %s: %w", kind, err)
}

package inventory

import (
	"context"
	"errors"
	"fmt"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// The finalizers suspend the deletion of an object until its dependents are gone. No public
// text names the product's finalizers.
const (
	Finalizer           = "inventory.kaas.mirantis.com/provider"
	CredentialFinalizer = "credential.kaas.mirantis.com/provider" //nolint:gosec // a name
)

// Config configures the reconcilers.
type Config struct {
	queue.Work
	Client client.Client
	// Reader reads Secrets past the cache, which must not hold those of all namespaces.
	Reader client.Reader
}

// Reconciler reconciles BareMetalHostInventories and BareMetalHostCredentials.
type Reconciler struct {
	servers     *servers
	credentials *credentials
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Reader == nil || c.Clock == nil {
		return nil, errors.New("inventory: Config.Client, Config.Reader or Config.Clock is nil")
	}
	return &Reconciler{&servers{c}, &credentials{Config: c}}, nil
}

// Setup adds the controllers to a manager. They do not poll.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	c := r.servers.Config
	options := c.Options()
	sameName := &handler.EnqueueRequestForObject{}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("provider-inventory").
		For(&kaasv1.BareMetalHostInventory{}).
		Watches(&metal3.BareMetalHost{}, sameName).
		Watches(&kaasv1.BareMetalHostCredential{}, handler.EnqueueRequestsFromMapFunc(c.inventoriesOf)).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(inventoryOfMachine)).
		WithOptions(options).
		Complete(r.servers)
	if err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("provider-credentials").
		For(&kaasv1.BareMetalHostCredential{}).
		Watches(&kaasv1.BareMetalHostInventory{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: o.(*kaasv1.BareMetalHostInventory).Spec.BMC.CredentialsName}}}
		})).
		WithOptions(c.RetryOptions(&r.credentials.retries)).
		Complete(r.credentials)
}

// inventoriesOf enqueues the inventories that name a credential.
func (c *Config) inventoriesOf(ctx context.Context, o client.Object) (out []reconcile.Request) {
	users, err := c.users(ctx, o.GetNamespace(), o.GetName())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "inventories are not listed")
	}
	for _, name := range users {
		out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}})
	}
	return out
}

// users returns the names of the inventories that name a credential.
func (c *Config) users(ctx context.Context, namespace, credential string) (out []string, err error) {
	var list kaasv1.BareMetalHostInventoryList
	if err := c.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Spec.BMC.CredentialsName == credential {
			out = append(out, list.Items[i].Name)
		}
	}
	return out, nil
}

// inventoryOfMachine enqueues the inventory of the host that a Machine names.
func inventoryOfMachine(_ context.Context, o client.Object) []reconcile.Request {
	name, ok := hostOf(o.(*clusterv1.Machine))
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: name}}}
}

// managed reports whether an object is the provider's.
func managed(o client.Object) bool {
	return o.GetLabels()[clusterv1.ProviderLabel] == clusterv1.ProviderBareMetal
}

// patch writes a change, if there is one, with the resourceVersion that was read.
func (c *Config) patch(ctx context.Context, before, after client.Object) error {
	p := client.MergeFrom(before)
	if b, err := p.Data(after); err != nil || string(b) == "{}" {
		return err
	}
	return c.Client.Patch(ctx, after, patch.IfUnchanged(before))
}

// patchStatus writes the change of a status, unless there is none.
func (c *Config) patchStatus(ctx context.Context, before, after client.Object) error {
	p := client.MergeFrom(before)
	if b, err := p.Data(after); err != nil || string(b) == "{}" {
		return err
	}
	if err := c.Client.Status().Patch(ctx, after, p); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	return nil
}

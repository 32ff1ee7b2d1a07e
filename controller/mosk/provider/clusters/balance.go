package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/loadbalancer"
	"github.com/metalab-dev/metalab/controller/mosk/provider/unmanaged"
)

// Balancer makes the load balancers of Clusters, by NAMESPACE/NAME.
type Balancer interface {
	// Apply forwards connections to an address to some backends.
	Apply(ctx context.Context, cluster, host string, backends []loadbalancer.Backend) error
	Remove(cluster string)
	// Holder returns the Cluster whose connections to an address are forwarded, "" for none.
	Holder(host string) string
}

// optional are the types of conditions that a Cluster has only while its spec asks for them.
var optional = map[string]bool{
	ConditionCredentials: true, ConditionLoadBalancer: true, ConditionProxy: true, ConditionKubernetes: true, baremetalv1.ConditionNotApplied: true,
	unmanaged.ConditionProvider: true,
}

// accountErrors are the types of a server's errors that the account of its BMC may cause.
var accountErrors = map[string]bool{"registration error": true, "provisioned registration error": true}

// accountChanged passes inventories that come or go, that name another credential, or whose
// error changes: a BMC may refuse the account, or accept it again.
var accountChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := e.ObjectOld.(*kaasv1.BareMetalHostInventory), e.ObjectNew.(*kaasv1.BareMetalHostInventory)
	return before.Spec.BMC.CredentialsName != after.Spec.BMC.CredentialsName ||
		before.Status.ErrorType != after.Status.ErrorType || before.Status.ErrorMessage != after.Status.ErrorMessage
}}

// clustersOfCredential enqueues the Clusters of an object's namespace that name a credential.
func (r *Reconciler) clustersOfCredential(ctx context.Context, o client.Object) (out []reconcile.Request) {
	var list clusterv1.ClusterList
	if err := r.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Clusters are not listed")
	}
	for i := range list.Items {
		if c := &list.Items[i]; c.Spec.ProviderSpec.Value.Credentials != "" {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(c)})
		}
	}
	return out
}

// credentials returns the condition Credentials of a Cluster that names a
// BareMetalHostCredential, else none. A credential counts as wrong only when every server that
// uses it reports an error of the account: one broken BMC must not stop other servers.
func (r *Reconciler) credentials(ctx context.Context, c *clusterv1.Cluster) ([]baremetalv1.Condition, error) {
	name := c.Spec.ProviderSpec.Value.Credentials
	if name == "" {
		return nil, nil
	}
	out := baremetalv1.Condition{Type: ConditionCredentials}
	var credential kaasv1.BareMetalHostCredential
	switch err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &credential); {
	case apierrors.IsNotFound(err):
		out.Message = fmt.Sprintf("spec.providerSpec.value.credentials: there is no BareMetalHostCredential %q in the namespace", name)
	case err != nil:
		return nil, fmt.Errorf("BareMetalHostCredential %s: %w", name, err)
	case credential.Status.ErrorMessage != "":
		out.Message = fmt.Sprintf("BareMetalHostCredential %q: %s", name, credential.Status.ErrorMessage)
	case !credential.Status.Ready:
		out.Message = fmt.Sprintf("BareMetalHostCredential %q is not ready yet", name)
	default:
		if out.Message, err = r.refusal(ctx, c.Namespace, name); err != nil {
			return nil, err
		}
	}
	out.Ready = out.Message == ""
	return []baremetalv1.Condition{out}, nil
}

// refusal returns the error of one server when every server that uses a credential reports an
// error of the account; "" otherwise.
func (r *Reconciler) refusal(ctx context.Context, namespace, credential string) (message string, err error) {
	var list kaasv1.BareMetalHostInventoryList
	if err := r.Client.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("BareMetalHostInventories: %w", err)
	}
	for i := range list.Items {
		s := &list.Items[i]
		if s.Spec.BMC.CredentialsName != credential {
			continue
		}
		if !accountErrors[s.Status.ErrorType] {
			return "", nil
		}
		message = fmt.Sprintf("BareMetalHostInventory %q: %s", s.Name, s.Status.ErrorMessage)
	}
	return message, nil
}

// balance makes the load balancer of a Cluster that asks for one, and returns its address and
// condition. It creates none while the credential cannot be used; an existing one goes on. It
// returns an error when another program uses the address, so that the reconcile is repeated.
func (r *Reconciler) balance(ctx context.Context, c *clusterv1.Cluster, l *lcmv1.LCMCluster, credentials []baremetalv1.Condition, machines []clusterv1.Machine) (*lcmv1.Endpoint, []baremetalv1.Condition, error) {
	host, key := c.Spec.ProviderSpec.Value.LoadBalancerHost, client.ObjectKeyFromObject(c).String()
	if host == "" {
		if r.Balancer != nil {
			r.Balancer.Remove(key)
		}
		return nil, nil, nil
	}
	wait := func(format string, args ...any) []baremetalv1.Condition {
		return []baremetalv1.Condition{{Type: ConditionLoadBalancer, Message: fmt.Sprintf(format, args...)}}
	}
	created := l != nil && l.Spec.ExternalEndpoint != nil
	if len(credentials) > 0 && !credentials[0].Ready && !created {
		return nil, wait("it waits for the BareMetalHostCredential %q", c.Spec.ProviderSpec.Value.Credentials), nil
	}
	holder, err := r.holder(ctx, c, host)
	if err != nil {
		return nil, wait("%v", err), err
	}
	if holder != key {
		if r.Balancer != nil {
			r.Balancer.Remove(key) // from the address that it had before
		}
		err := fmt.Errorf("spec.providerSpec.value.loadBalancerHost %q: the Cluster %s has the address: give another one", host, holder)
		return nil, wait("%v", err), fmt.Errorf("clusters: load balancer: %w", err)
	}
	backends := backendsOf(machines)
	if r.Balancer != nil {
		err := r.Balancer.Apply(ctx, key, host, backends)
		var mistake *loadbalancer.AddressError
		if errors.As(err, &mistake) {
			return nil, wait("spec.providerSpec.value.loadBalancerHost %v", mistake), nil
		}
		if err != nil {
			return nil, wait("spec.providerSpec.value.loadBalancerHost: %v", err), fmt.Errorf("clusters: load balancer: %w", err)
		}
	}
	out := &lcmv1.Endpoint{Host: host, Port: loadbalancer.APIPort}
	if len(backends) == 0 {
		return out, wait("no Machine with the label %s is Ready", clusterv1.ControlPlaneLabel), nil
	}
	return out, []baremetalv1.Condition{{Type: ConditionLoadBalancer, Ready: true}}, nil
}

// holder returns which Cluster, as NAMESPACE/NAME, has an address that a Cluster asks for: one of
// those of all namespaces that ask for it. It is the one whose connections are forwarded already, so
// that an older Cluster takes no address that it asks for later; else, after a start of the
// controllers, the oldest. Nothing that a user can write decides.
func (r *Reconciler) holder(ctx context.Context, c *clusterv1.Cluster, host string) (string, error) {
	var all clusterv1.ClusterList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("clusters: Clusters: %w", err)
	}
	asking := slices.DeleteFunc(slices.Clone(all.Items), func(o clusterv1.Cluster) bool {
		return o.UID != c.UID && (!o.DeletionTimestamp.IsZero() || unmanaged.Message(&o, Finalizer) != "" || !sameAddress(o.Spec.ProviderSpec.Value.LoadBalancerHost, host))
	})
	names := map[string]bool{}
	oldest := c
	for i := range asking {
		o := &asking[i]
		names[client.ObjectKeyFromObject(o).String()] = true
		if cmp.Or(o.CreationTimestamp.Compare(oldest.CreationTimestamp.Time), cmp.Compare(o.UID, oldest.UID)) < 0 {
			oldest = o
		}
	}
	if r.Balancer != nil {
		if holder := r.Balancer.Holder(host); names[holder] {
			return holder, nil
		}
	}
	return client.ObjectKeyFromObject(oldest).String(), nil
}

// sameAddress compares addresses, which have several spellings.
func sameAddress(a, b string) bool {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX != nil || errY != nil {
		return a == b
	}
	return x.Unmap() == y.Unmap()
}

// backendsOf returns the control machines that are Ready, by name.
func backendsOf(machines []clusterv1.Machine) (out []loadbalancer.Backend) {
	for i := range machines {
		m, p := &machines[i], machines[i].Status.ProviderStatus
		_, control := m.Labels[clusterv1.ControlPlaneLabel]
		if !control || !m.DeletionTimestamp.IsZero() || p == nil || !p.Ready || p.PrivateIP == "" || p.Maintenance {
			continue
		}
		host := strings.TrimPrefix(m.Annotations[clusterv1.BareMetalHostAnnotation], m.Namespace+"/")
		out = append(out, loadbalancer.Backend{Namespace: m.Namespace, Machine: m.Name, Host: host, Address: p.PrivateIP})
	}
	slices.SortFunc(out, func(a, b loadbalancer.Backend) int { return cmp.Compare(a.Machine, b.Machine) })
	return out
}

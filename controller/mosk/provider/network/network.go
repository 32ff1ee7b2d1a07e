package network

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/network/layout"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// Config configures the reconcilers.
type Config struct {
	queue.Work
	Client client.Client
	// Reader reads Secrets past the cache, and addresses that the cache may not have yet.
	Reader client.Reader
}

// Reconciler reconciles the networks of Machines, and Subnets.
type Reconciler struct {
	machines *machines
	subnets  *subnets
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Reader == nil || c.Clock == nil {
		return nil, errors.New("network: Config.Client, Config.Reader or Config.Clock is nil")
	}
	return &Reconciler{&machines{Config: c}, &subnets{c}}, nil
}

// Setup adds the controllers to a manager. They do not poll.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	c := r.machines.Config
	all := handler.EnqueueRequestsFromMapFunc(c.machinesOf)
	err := ctrl.NewControllerManagedBy(mgr).
		Named("provider-network").
		For(&clusterv1.Machine{}).
		Watches(&ipamv1.IpamHost{}, &handler.EnqueueRequestForObject{}).
		Watches(&metal3.BareMetalHost{}, handler.EnqueueRequestsFromMapFunc(machineOfHost)).
		Watches(&ipamv1.L2Template{}, all, builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}))).
		Watches(&ipamv1.Subnet{}, all).
		Watches(&ipamv1.IPaddr{}, all, builder.WithPredicates(freed)).
		Watches(&clusterv1.Cluster{}, all, builder.WithPredicates(credentialsChanged)).
		WithOptions(c.RetryOptions(&r.machines.retries)).
		Complete(r.machines)
	if err != nil {
		return err
	}
	if err := setupStatuses(mgr, c); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("provider-subnets").
		For(&ipamv1.Subnet{}).
		Watches(&ipamv1.IPaddr{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: o.(*ipamv1.IPaddr).Spec.SubnetRef}}}
		})).
		WithOptions(c.Options()).
		Complete(r.subnets)
}

// freed passes the deletions of addresses, for which Machines may wait.
var freed = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
}

// credentialsChanged passes Clusters whose credential can be used, or no more.
var credentialsChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, after := release.Credentials(e.ObjectOld.(*clusterv1.Cluster)), release.Credentials(e.ObjectNew.(*clusterv1.Cluster))
	return (before == nil) != (after == nil)
}}

// machineOfHost enqueues the Machine that has claimed a host.
func machineOfHost(_ context.Context, o client.Object) []reconcile.Request {
	c := o.(*metal3.BareMetalHost).Spec.ConsumerRef
	if c == nil || c.Kind != "Machine" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: c.Name}}}
}

// machinesOf enqueues the Machines of an object's namespace that wait for their network.
func (c *Config) machinesOf(ctx context.Context, o client.Object) []reconcile.Request {
	var list ipamv1.IpamHostList
	if err := c.Client.List(ctx, &list, client.InNamespace(o.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "IpamHosts are not listed")
	}
	ready := map[string]bool{}
	for i := range list.Items {
		ready[list.Items[i].Name] = list.Items[i].Status.NetconfigV2State == ipamv1.ResultOK
	}
	if _, address := o.(*ipamv1.IPaddr); !address {
		clear(ready) // a template or Subnet that has changed concerns hosts without an image, too
	}
	return watch.Requests(ctx, c.Client, &clusterv1.MachineList{}, func(m *clusterv1.Machine) bool {
		return m.Spec.ProviderID != nil && !ready[m.Name]
	}, client.InNamespace(o.GetNamespace()))
}

// machines reconciles the networks of Machines.
type machines struct {
	Config
	retries queue.Retries // retries of reads of Secrets
}

// Reconcile implements reconcile.Reconciler for a Machine.
func (r *machines) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.retries.ReconcileAfter(req, r.Enter, func() (time.Duration, error) {
		var m clusterv1.Machine
		if err := r.Client.Get(ctx, req.NamespacedName, &m); err != nil {
			return 0, queue.Deleted(err)
		}
		switch err, blocked := r.reconcile(ctx, &m), new(blockedError); {
		case errors.As(err, &blocked): // the status has it
			return queue.SecretWait, nil
		case err != nil:
			return 0, fmt.Errorf("network: %w", err)
		}
		return 0, nil
	})
}

func (r *machines) reconcile(ctx context.Context, m *clusterv1.Machine) error {
	name, named := strings.CutPrefix(m.Annotations[clusterv1.BareMetalHostAnnotation], m.Namespace+"/")
	if m.Labels[clusterv1.ProviderLabel] != clusterv1.ProviderBareMetal || !m.DeletionTimestamp.IsZero() || m.Spec.ProviderID == nil || !named {
		return nil
	}
	var server metal3.BareMetalHost
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: name}, &server); err != nil {
		return err
	}
	var templates ipamv1.L2TemplateList
	var subnets ipamv1.SubnetList
	in := client.InNamespace(m.Namespace)
	if err := errors.Join(r.Client.List(ctx, &templates, in), r.Client.List(ctx, &subnets, in)); err != nil {
		return err
	}
	t, err := layout.Choose(templates.Items, m.Labels[clusterv1.ClusterNameLabel], m.Spec.ProviderSpec.Value.L2TemplateSelector)
	if t == nil || err != nil {
		return nil // controller/mosk/provider/machines reports it
	}
	if server.Spec.Image == nil {
		var c clusterv1.Cluster
		if err := r.Client.Get(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Labels[clusterv1.ClusterNameLabel]}, &c); err != nil {
			return err
		}
		if release.Credentials(&c) != nil {
			return nil // controller/mosk/provider/machines reports it
		}
	}
	h, err := r.host(ctx, m, &server)
	if err != nil || server.Spec.Image != nil && h.Status.NetconfigV2State == ipamv1.ResultOK {
		return err
	}
	before := h.DeepCopy()
	status, err := r.configure(ctx, m, t, h, subnets.Items)
	blocked := new(blockedError)
	if err != nil && !errors.As(err, &blocked) {
		return err
	}
	h.Status = status
	p := client.MergeFrom(before)
	if b, failure := p.Data(h); failure != nil || string(b) == "{}" {
		return errors.Join(err, failure)
	}
	return errors.Join(err, r.Client.Status().Patch(ctx, h, p))
}

// blockedError is the error for a Secret of a user that has the name of a Machine's.
type blockedError struct{ secret string }

func (e *blockedError) Error() string {
	return fmt.Sprintf("Secret %q exists, and is not the Machine's: remove it", e.secret)
}

// host returns the IpamHost of a Machine, which it creates.
func (r *machines) host(ctx context.Context, m *clusterv1.Machine, server *metal3.BareMetalHost) (*ipamv1.IpamHost, error) {
	h := new(ipamv1.IpamHost)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(m), h)
	if !apierrors.IsNotFound(err) {
		return h, err
	}
	h = &ipamv1.IpamHost{ObjectMeta: owned(m, m.Name)}
	h.Spec.IfMappingOverride = m.Spec.ProviderSpec.Value.L2TemplateIfMappingOverride
	if d := server.Status.HardwareDetails; d != nil {
		for _, n := range d.NIC { // one with two addresses is there twice
			known := slices.ContainsFunc(h.Spec.NICMACMap, func(k ipamv1.NIC) bool { return k.Name == n.Name })
			if !known && n.MAC != "" {
				h.Spec.NICMACMap = append(h.Spec.NICMACMap, ipamv1.NIC{Name: n.Name, MAC: n.MAC, Primary: strings.EqualFold(n.MAC, server.Spec.BootMACAddress)})
			}
		}
	}
	return h, r.Client.Create(ctx, h)
}

// owned returns the metadata of an object of a Machine.
func owned(m *clusterv1.Machine, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: m.Namespace, Name: name,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(m, clusterv1.GroupVersion.WithKind("Machine"))},
	}
}

// failed is the result of a step that the user has to correct.
func failed(err error) string { return "ERR: " + err.Error() }

// configure allocates the addresses of a server and renders its network. The Secret is
// there before the status says so. With a blockedError it returns a status, too.
func (r *machines) configure(ctx context.Context, m *clusterv1.Machine, t *ipamv1.L2Template, h *ipamv1.IpamHost, subnets []ipamv1.Subnet) (ipamv1.IpamHostStatus, error) {
	out := ipamv1.IpamHostStatus{L2TemplateRef: t.Namespace + "/" + t.Name}
	reject := func(result *string, err error) (ipamv1.IpamHostStatus, error) {
		*result = failed(err)
		out.NetconfigV2State, out.Messages = *result, []string{err.Error()}
		return out, nil
	}
	render, err := layout.NewTemplate(t, h, subnets)
	if err != nil {
		return reject(&out.L2RenderResult, err)
	}
	needs, err := render.Needs()
	if err != nil {
		return reject(&out.L2RenderResult, err)
	}
	addresses, problem, err := r.allocate(ctx, m, needs, subnets)
	if err != nil {
		return out, err
	}
	if problem != nil {
		return reject(&out.IPAllocationResult, problem)
	}
	out.IPAllocationResult = ipamv1.ResultOK
	config, err := render.Render(addresses)
	if err != nil {
		return reject(&out.L2RenderResult, err)
	}
	data, err := layout.NetworkData(config)
	if err != nil {
		return reject(&out.L2RenderResult, err)
	}
	err = r.putSecret(ctx, m, data)
	if blocked := new(blockedError); errors.As(err, &blocked) {
		out, _ = reject(&out.L2RenderResult, err)
	}
	if err != nil {
		return out, err
	}
	out.L2RenderResult, out.NetconfigV2State, out.NetconfigV2 = ipamv1.ResultOK, ipamv1.ResultOK, &runtime.RawExtension{Raw: config}
	out.NetconfigFiles, err = netplan(config)
	out.NetconfigFilesState = ipamv1.ResultOK
	out.ServiceMap = services(render, needs, addresses, subnets)
	if err != nil {
		return out, err
	}
	return out, nil
}

// putSecret writes the Secret with the network data, if it differs.
func (r *machines) putSecret(ctx context.Context, m *clusterv1.Machine, data []byte) error {
	want := &corev1.Secret{ObjectMeta: owned(m, layout.SecretName(m.Name)), Data: map[string][]byte{"networkData": data}}
	current := new(corev1.Secret)
	switch err := r.Reader.Get(ctx, client.ObjectKeyFromObject(want), current); {
	case apierrors.IsNotFound(err):
		return r.Client.Create(ctx, want)
	case err != nil:
		return err
	case !metav1.IsControlledBy(current, m):
		return &blockedError{current.Name}
	case equality.Semantic.DeepEqual(current.Data, want.Data):
		return nil
	}
	before := current.DeepCopy()
	current.Data = want.Data
	return r.Client.Patch(ctx, current, patch.IfUnchanged(before))
}

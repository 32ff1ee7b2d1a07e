package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	iamv1 "github.com/metalab-dev/metalab/controller/api/iam/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/provider/iam"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
	"github.com/metalab-dev/metalab/controller/mosk/provider/unmanaged"
	"github.com/metalab-dev/metalab/controller/mosk/unapplied"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// Finalizer suspends the deletion of a Cluster until its Machines are gone. Its name is in
// no public text.
const Finalizer = "cluster.kaas.mirantis.com/provider"

// The conditions of a Cluster.
const (
	ConditionRelease  = "Release"
	ConditionMachines = "Machines"
	ConditionHelm     = "Helm"
	ConditionIAM      = "IAM"

	// A Cluster has these conditions when it asks for a Kubernetes API of its own, and when it
	// names a credential, a loadBalancerHost and a Proxy.
	ConditionKubernetes   = baremetalv1.ConditionKubernetes
	ConditionCredentials  = baremetalv1.ConditionCredentials
	ConditionLoadBalancer = "LoadBalancer"
	ConditionProxy        = "Proxy"
)

// Config configures a reconciler.
type Config struct {
	queue.Work
	Client client.Client
	// Reader reads Secrets past the cache, which must not hold those of all namespaces.
	Reader client.Reader
	Server string // https URL of the API, as servers reach it
	CA     []byte // certificates, in PEM, that sign the API's
	// Wall is the time by which tokens expire; nil means the real clock.
	Wall clock.PassiveClock
	// Workload returns the API in which a cluster's nodes are; nil means that no Helm controller gets
	// its account.
	Workload func(ctx context.Context, namespace, cluster string) (workload.API, error)
	// HelmChart is the URL of the chart of the Helm controller of Clusters whose ClusterRelease names
	// none, where whoever makes the Clusters' APIs runs its pods; "" means that those have no
	// controller of their own.
	HelmChart string
	// Balancer makes load balancers. Nil means that others make them: loadBalancerHost is
	// their address.
	Balancer Balancer
}

// Reconciler reconciles Clusters.
type Reconciler struct {
	Config
	events   *events.Recorder
	endpoint lcmv1.Endpoint
	retries  queue.Retries // retries of reads of Secrets
}

// New returns a reconciler, or an error when a field of c is missing or wrong.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Reader == nil || c.Clock == nil {
		return nil, errors.New("clusters: Config.Client, Config.Reader or Config.Clock is nil")
	}
	u, err := url.Parse(c.Server)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("clusters: Config.Server %q: give the https URL of the API", c.Server)
	}
	port, err := strconv.ParseUint(cmp.Or(u.Port(), "443"), 10, 16)
	if err != nil {
		return nil, fmt.Errorf("clusters: Config.Server %q: %w", c.Server, err)
	}
	if c.Wall == nil {
		c.Wall = clock.RealClock{}
	}
	return &Reconciler{Config: c, events: events.New(c.Client, c.Clock), endpoint: lcmv1.Endpoint{Host: u.Hostname(), Port: int32(port)}}, nil
}

// Setup adds the reconciler to a manager. It does not poll.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(r.allClusters)
	return ctrl.NewControllerManagedBy(mgr).
		Named("provider-clusters").
		For(&clusterv1.Cluster{}).
		Watches(&lcmv1.LCMCluster{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1.ClusterNameLabel]}}}
		})).
		Watches(&lcmv1.HelmBundle{}, &handler.EnqueueRequestForObject{}).
		Watches(&kaasv1.Proxy{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfProxy)).
		Watches(&kaasv1.ClusterUpdatePlan{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: o.(*kaasv1.ClusterUpdatePlan).Spec.Cluster}}}
		})).
		Watches(&kaasv1.BareMetalHostCredential{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfCredential)).
		Watches(&kaasv1.BareMetalHostInventory{}, handler.EnqueueRequestsFromMapFunc(r.clustersOfCredential), builder.WithPredicates(accountChanged)).
		Watches(&ipamv1.IpamHost{}, handler.EnqueueRequestsFromMapFunc(r.clusterOfMachine), builder.WithPredicates(networkChanged)).
		Watches(&iamv1.Scope{}, handler.EnqueueRequestsFromMapFunc(r.clustersOf)).
		Watches(&kaasv1.ClusterRelease{}, all).
		Watches(&kaasv1.KaaSRelease{}, all).
		WithOptions(r.RetryOptions(&r.retries)).
		Complete(r)
}

// clustersOf enqueues the Clusters of a Scope.
func (r *Reconciler) clustersOf(ctx context.Context, o client.Object) (out []reconcile.Request) {
	scope := o.(*iamv1.Scope).Spec
	for _, c := range r.allClusters(ctx, nil) {
		if (scope.Namespace == "" || scope.Namespace == c.Namespace) && (scope.Cluster == "" || scope.Cluster == c.Name) {
			out = append(out, c)
		}
	}
	return out
}

func (r *Reconciler) allClusters(ctx context.Context, _ client.Object) []reconcile.Request {
	return watch.Requests[*clusterv1.Cluster](ctx, r.Client, &clusterv1.ClusterList{}, nil)
}

// Reconcile implements reconcile.Reconciler for a Cluster.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.retries.ReconcileAfter(req, r.Enter, func() (time.Duration, error) { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *Reconciler) reconcile(ctx context.Context, key client.ObjectKey) (after time.Duration, err error) {
	c := new(clusterv1.Cluster)
	if err := r.Client.Get(ctx, key, c); err != nil {
		if apierrors.IsNotFound(err) && r.Balancer != nil {
			r.Balancer.Remove(key.String())
		}
		return 0, queue.Deleted(err)
	}
	if message := unmanaged.Message(c, Finalizer); message != "" {
		return 0, r.recordUnmanaged(ctx, c, message)
	}
	var machines clusterv1.MachineList
	if err := r.Client.List(ctx, &machines, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("clusters: Machines: %w", err)
	}
	l := new(lcmv1.LCMCluster)
	if err := r.Client.Get(ctx, key, l); apierrors.IsNotFound(err) {
		l = nil
	} else if err != nil {
		return 0, fmt.Errorf("clusters: LCMCluster: %w", err)
	}
	if !c.DeletionTimestamp.IsZero() {
		return 0, r.remove(ctx, c, l, machines.Items)
	}
	if before := c.DeepCopy(); controllerutil.AddFinalizer(c, Finalizer) {
		if err := r.patch(ctx, before, c); err != nil {
			return 0, fmt.Errorf("clusters: finalizer: %w", err)
		}
	}
	status := baremetalv1.ClusterProviderStatus{}
	if c.Status.ProviderStatus != nil {
		status = *c.Status.ProviderStatus.DeepCopy()
	}
	credentials, err := r.credentials(ctx, c)
	if err != nil {
		return 0, fmt.Errorf("clusters: %w", err)
	}
	endpoint, balancer, taken := r.balance(ctx, c, l, credentials, machines.Items)
	secret, proxies, err := r.proxy(ctx, c)
	if err != nil {
		return 0, fmt.Errorf("clusters: %w", err)
	}
	kubeconfig, api, err := r.kubernetes(ctx, c, l)
	if err != nil {
		return 0, fmt.Errorf("clusters: %w", err)
	}
	chart, err := r.controllerChart(ctx, c, l, kubeconfig)
	if err != nil {
		return 0, fmt.Errorf("clusters: %w", err)
	}
	b, err := r.deploy(ctx, c, l, parts{endpoint: endpoint, proxy: secret, kubeconfig: kubeconfig, controller: chart}, &status)
	var mistake *release.Error
	if err != nil && !errors.As(err, &mistake) {
		return 0, fmt.Errorf("clusters: %w", err)
	}
	condition := baremetalv1.Condition{Type: ConditionRelease, Ready: err == nil}
	if err != nil {
		condition.Message = err.Error()
	}
	if err := r.account(ctx, c, b); err != nil {
		return 0, fmt.Errorf("clusters: account of the Helm controller: %w", err)
	}
	if err := iam.Ensure(ctx, r.Client, key); err != nil {
		return 0, fmt.Errorf("clusters: %w", err)
	}
	conditions := []baremetalv1.Condition{condition, {Type: ConditionIAM, Ready: true}}
	if b != nil {
		conditions = append(conditions, helmCondition(b))
	}
	conditions = slices.Concat(conditions, credentials, balancer, proxies, api)
	if c := unapplied.Condition("Cluster", c); c != nil {
		conditions = append(conditions, *c)
	}
	if err := r.record(ctx, c, status, machines.Items, conditions...); err != nil {
		return 0, err
	}
	if err := r.recordController(ctx, l, b); err != nil {
		return 0, fmt.Errorf("clusters: status of the LCMCluster: %w", err)
	}
	if err := r.recordStages(ctx, c, machines.Items, b); err != nil {
		return 0, fmt.Errorf("clusters: ClusterDeploymentStatus: %w", err)
	}
	if after, err = r.credential(ctx, c, b); err != nil {
		return 0, fmt.Errorf("clusters: account of the Helm controller: %w", err)
	}
	if blocked(proxies) || blocked(api) { // they may wait for a Secret, which no watch reports
		after = queue.SecretWait
	}
	return after, taken
}

// parts are the references of an LCMCluster beside its release.
type parts struct {
	endpoint   *lcmv1.Endpoint // endpoint of the load balancer
	proxy      proxySecret
	kubeconfig string // Secret of the Cluster's own API; "" means that it shares one
	controller controllerChart
	reboot     bool // the machines that get the release are rebooted
}

// deploy writes the release's content to the LCMCluster and the HelmBundle, and notes the
// release in the status. It returns the HelmBundle.
func (r *Reconciler) deploy(ctx context.Context, c *clusterv1.Cluster, l *lcmv1.LCMCluster, p parts, status *baremetalv1.ClusterProviderStatus) (*lcmv1.HelmBundle, error) {
	w, err := release.Of(ctx, r.Client, c)
	if err != nil {
		return nil, err
	}
	to, err := release.Get(ctx, r.Client, w.Name)
	if err != nil {
		return nil, err
	}
	refs := &status.ReleaseRefs
	was := refs.Current
	// The LCMCluster's release counts, since the status may be lost.
	var from *kaasv1.ClusterRelease
	if l != nil && l.Spec.Release != "" {
		if from, err = release.Get(ctx, r.Client, l.Spec.Release); err != nil {
			return nil, err
		}
		refs.Current = refOf(from)
		refs.Available = release.Upgrades(w, from.Name)
	}
	if l != nil && !metav1.IsControlledBy(l, c) {
		return nil, release.Mistake("LCMCluster %q exists, and is not the Cluster's: remove it", l.Name)
	}
	if err := release.Check(ctx, r.Client, c, w, from, to); err != nil {
		return nil, err
	}
	if p.reboot, err = r.reboot(ctx, c, l, w); err != nil {
		return nil, err
	}
	if err := r.write(ctx, c, l, p, to); err != nil {
		return nil, err
	}
	if was != nil && was.Name != to.Name { // also when the LCMCluster was written, but not the status
		refs.Previous = was
	}
	refs.Current, refs.Available = refOf(to), release.Upgrades(w, to.Name)
	return r.bundle(ctx, c, w, to, p.controller)
}

func refOf(r *kaasv1.ClusterRelease) *baremetalv1.ReleaseRef {
	return &baremetalv1.ReleaseRef{Name: r.Name, Version: r.Spec.Version}
}

// write creates or changes the LCMCluster. Host OS items stay after those of the release.
func (r *Reconciler) write(ctx context.Context, c *clusterv1.Cluster, l *lcmv1.LCMCluster, p parts, to *kaasv1.ClusterRelease) error {
	want := &lcmv1.LCMCluster{}
	want.Namespace, want.Name = c.Namespace, c.Name
	if l != nil {
		want = l.DeepCopy()
	}
	spec := &want.Spec
	current := spec.MachinesTypes
	spec.MachinesTypes = map[lcmv1.MachineType][]lcmv1.LCMStateItem{lcmv1.MachineControl: {}, lcmv1.MachineWorker: {}}
	for machineType, items := range to.Spec.MachineTypes {
		spec.MachinesTypes[machineType] = slices.Clone(items)
	}
	for machineType, items := range current {
		for _, it := range items {
			if item.IsHostOS(it) {
				spec.MachinesTypes[machineType] = append(spec.MachinesTypes[machineType], it)
			}
		}
	}
	value := c.Spec.ProviderSpec.Value
	spec.Release, spec.LCMType, spec.Images = to.Name, to.Spec.LCMType, to.Spec.Images
	if to.Spec.Agent != nil {
		spec.AgentVersion = to.Spec.Agent.Version
	}
	spec.ManagementClusterEndpoint = r.endpoint
	spec.ExternalEndpoint, spec.KubeconfigSecretName = p.endpoint, p.kubeconfig
	spec.ProxySecretName, spec.ProxyHash = p.proxy.name, p.proxy.hash
	spec.HelmControllerServiceAccountName = helmcontroller.Name(c.Name)
	spec.MaxWorkerPrepareCount, spec.MaxWorkerUpgradeCount = value.MaxWorkerPrepareCount, max(value.MaxWorkerUpgradeCount, 1)
	spec.Maintenance, spec.DedicatedControlPlane = value.Maintenance, value.DedicatedControlPlane
	spec.NodesRebootRequired = p.reboot
	if l == nil {
		want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, clusterv1.GroupVersion.WithKind("Cluster"))}
		return r.Client.Create(ctx, want)
	}
	if equality.Semantic.DeepEqual(l.Spec, want.Spec) {
		return nil
	}
	return r.patch(ctx, l, want) // lists are replaced as one: controller/mosk/provider/hoc writes them, too
}

// record writes the status, if it has changed.
func (r *Reconciler) record(ctx context.Context, c *clusterv1.Cluster, status baremetalv1.ClusterProviderStatus, machines []clusterv1.Machine, found ...baremetalv1.Condition) error {
	before := c.DeepCopy()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "baremetal.k8s.io/v1alpha1", Kind: "BaremetalClusterProviderStatus"}
	status.Maintenance = c.Spec.ProviderSpec.Value.Maintenance
	status.Nodes = baremetalv1.Nodes{Requested: len(machines)}
	var unready []baremetalv1.ObjectReference
	for i := range machines {
		if p := machines[i].Status.ProviderStatus; p != nil && p.Ready {
			status.Nodes.Ready++
			continue
		}
		unready = append(unready, baremetalv1.ObjectReference{Namespace: machines[i].Namespace, Name: machines[i].Name})
	}
	slices.SortFunc(unready, func(a, b baremetalv1.ObjectReference) int { return cmp.Compare(a.Name, b.Name) })
	status.NotReadyObjects = baremetalv1.NotReadyObjects{Machines: unready}
	conditions := append(found, machinesCondition(machines, status.Nodes.Ready))
	for _, other := range status.Conditions {
		if !optional[other.Type] && !slices.ContainsFunc(conditions, func(c baremetalv1.Condition) bool { return c.Type == other.Type }) {
			conditions = append(conditions, other)
		}
	}
	status.Conditions = conditions
	status.Ready = c.DeletionTimestamp.IsZero() && !slices.ContainsFunc(conditions, func(c baremetalv1.Condition) bool { return !c.Ready })
	c.Status.ProviderStatus = &status
	if equality.Semantic.DeepEqual(before.Status, c.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, c, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("clusters: status: %w", err)
	}
	r.publish(ctx, c, before.Status.ProviderStatus)
	return nil
}

// recordUnmanaged writes why nothing acts on a Cluster into its status.
func (r *Reconciler) recordUnmanaged(ctx context.Context, c *clusterv1.Cluster, message string) error {
	before := c.DeepCopy()
	if c.Status.ProviderStatus == nil {
		c.Status.ProviderStatus = &baremetalv1.ClusterProviderStatus{}
	}
	c.Status.ProviderStatus.Conditions = unmanaged.With(c.Status.ProviderStatus.Conditions, message)
	if equality.Semantic.DeepEqual(before.Status, c.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, c, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("clusters: status: %w", err)
	}
	return nil
}

// remove ends the load balancer, deletes the Machines, then, when they are gone, the HelmBundle, the account of the
// Helm controller, the LCMCluster, the scopes and the Cluster.
func (r *Reconciler) remove(ctx context.Context, c *clusterv1.Cluster, l *lcmv1.LCMCluster, machines []clusterv1.Machine) error {
	if r.Balancer != nil {
		r.Balancer.Remove(client.ObjectKeyFromObject(c).String())
	}
	for i := range machines {
		if machines[i].DeletionTimestamp.IsZero() {
			if err := client.IgnoreNotFound(r.Client.Delete(ctx, machines[i].DeepCopy())); err != nil {
				return fmt.Errorf("clusters: Machine %s: %w", machines[i].Name, err)
			}
		}
	}
	if len(machines) > 0 {
		status := baremetalv1.ClusterProviderStatus{}
		if c.Status.ProviderStatus != nil {
			status = *c.Status.ProviderStatus.DeepCopy()
		}
		return r.record(ctx, c, status, machines, baremetalv1.Condition{Type: ConditionRelease, Message: "the Cluster is being deleted"})
	}
	b, err := r.readBundle(ctx, c)
	if err != nil {
		return fmt.Errorf("clusters: %w", err)
	}
	if b != nil && metav1.IsControlledBy(b, c) {
		if b.DeletionTimestamp.IsZero() {
			if err := client.IgnoreNotFound(r.Client.Delete(ctx, b)); err != nil {
				return fmt.Errorf("clusters: HelmBundle: %w", err)
			}
		}
		return nil // until its releases are uninstalled: the watch reports that
	}
	if err := errors.Join(r.removeStages(ctx, c), r.removeProxy(ctx, c), r.removeAccount(ctx, c)); err != nil {
		return fmt.Errorf("clusters: %w", err)
	}
	if l != nil && metav1.IsControlledBy(l, c) && l.DeletionTimestamp.IsZero() {
		if err := client.IgnoreNotFound(r.Client.Delete(ctx, l)); err != nil {
			return fmt.Errorf("clusters: LCMCluster: %w", err)
		}
	}
	var others clusterv1.ClusterList
	if err := r.Client.List(ctx, &others, client.InNamespace(c.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("clusters: %w", err)
	}
	last := !slices.ContainsFunc(others.Items, func(o clusterv1.Cluster) bool { return o.Name != c.Name })
	if err := iam.Remove(ctx, r.Client, client.ObjectKeyFromObject(c), last); err != nil {
		return fmt.Errorf("clusters: %w", err)
	}
	before := c.DeepCopy()
	if !controllerutil.RemoveFinalizer(c, Finalizer) {
		return nil
	}
	return r.patch(ctx, before, c)
}

func (r *Reconciler) patch(ctx context.Context, before, after client.Object) error {
	return r.Client.Patch(ctx, after, patch.IfUnchanged(before))
}

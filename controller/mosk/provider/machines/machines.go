package machines

import (
	"context"
	"errors"
	"fmt"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	hostprofilev1 "github.com/metalab-dev/metalab/controller/api/hostprofile/v1alpha1"
	ipamv1 "github.com/metalab-dev/metalab/controller/api/ipam/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/unmanaged"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// Finalizer suspends the deletion of a Machine until its host is free. Its name is in no
// public text.
const Finalizer = "machine.kaas.mirantis.com/provider"

// Config configures a reconciler.
type Config struct {
	queue.Work
	Client client.Client
	// Reader reads Secrets and Roles past the cache, which must not hold those of all
	// namespaces.
	Reader client.Reader
	// Wall is the time by which tokens expire; nil means the real clock.
	Wall   clock.PassiveClock
	Server string // https URL of the API, as servers reach it
	CA     []byte // certificates, in PEM, that sign the API's
	// Workload returns the API in which a cluster's nodes are; nil means that all share one.
	Workload func(ctx context.Context, namespace, cluster string) (workload.API, error)
}

// Reconciler reconciles Machines.
type Reconciler struct {
	Config
	events  *events.Recorder
	retries queue.Retries // retries of reads of Secrets
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Reader == nil || c.Clock == nil {
		return nil, errors.New("machines: Config.Client, Config.Reader or Config.Clock is nil")
	}
	if c.Wall == nil {
		c.Wall = clock.RealClock{}
	}
	return &Reconciler{Config: c, events: events.New(c.Client, c.Clock)}, nil
}

// Setup adds the reconciler to a manager.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	sameName := &handler.EnqueueRequestForObject{}
	return ctrl.NewControllerManagedBy(mgr).
		Named("provider-machines").
		For(&clusterv1.Machine{}).
		Watches(&lcmv1.LCMMachine{}, sameName).
		Watches(&ipamv1.IpamHost{}, sameName).
		Watches(&ipamv1.L2Template{}, handler.EnqueueRequestsFromMapFunc(r.waitingMachines)).
		Watches(&hostprofilev1.BareMetalHostProfile{}, handler.EnqueueRequestsFromMapFunc(r.machinesOfProfile)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.machinesOfNode), builder.WithPredicates(nodeChanged)).
		Watches(&metal3.BareMetalHost{}, handler.EnqueueRequestsFromMapFunc(r.machinesOfHost)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.machinesOf(func(m *clusterv1.Machine, o client.Object) bool {
			return m.Labels[clusterv1.ClusterNameLabel] == o.GetName()
		}))).
		Watches(&kaasv1.ClusterUpdatePlan{}, handler.EnqueueRequestsFromMapFunc(r.machinesOf(func(m *clusterv1.Machine, o client.Object) bool {
			return m.Labels[clusterv1.ClusterNameLabel] == o.(*kaasv1.ClusterUpdatePlan).Spec.Cluster
		}))).
		Watches(&kaasv1.PublicKey{}, handler.EnqueueRequestsFromMapFunc(r.machinesOf(func(*clusterv1.Machine, client.Object) bool { return true }))).
		Watches(&kaasv1.Proxy{}, handler.EnqueueRequestsFromMapFunc(r.waitingMachines)).
		Watches(&kaasv1.ClusterRelease{}, handler.EnqueueRequestsFromMapFunc(r.waitingMachines)).
		Watches(&kaasv1.KaaSRelease{}, handler.EnqueueRequestsFromMapFunc(r.waitingMachines)).
		WithOptions(r.RetryOptions(&r.retries)).
		Complete(r)
}

// machinesOf enqueues the Machines of an object's namespace that it concerns.
func (r *Reconciler) machinesOf(concerned func(*clusterv1.Machine, client.Object) bool) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		return watch.Requests(ctx, r.Client, &clusterv1.MachineList{}, func(m *clusterv1.Machine) bool { return concerned(m, object) }, client.InNamespace(object.GetNamespace()))
	}
}

// machinesOfHost enqueues the Machine that has claimed a host or names it, and, when the
// host is free, those that wait for one.
func (r *Reconciler) machinesOfHost(ctx context.Context, object client.Object) []reconcile.Request {
	h, key := object.(*metal3.BareMetalHost), object.GetNamespace()+"/"+object.GetName()
	free := unclaimable(h) == ""
	return watch.Requests(ctx, r.Client, &clusterv1.MachineList{}, func(m *clusterv1.Machine) bool {
		name := m.Annotations[clusterv1.BareMetalHostAnnotation]
		return name == key || claimedBy(h, m) || free && name == "" && m.DeletionTimestamp.IsZero()
	}, client.InNamespace(h.Namespace))
}

// waitingMachines enqueues the Machines of all namespaces whose host has no image yet, and those
// whose agent has not reported.
func (r *Reconciler) waitingMachines(ctx context.Context, _ client.Object) []reconcile.Request {
	return watch.Requests(ctx, r.Client, &clusterv1.MachineList{}, func(m *clusterv1.Machine) bool {
		s := m.Status.ProviderStatus
		return s == nil || s.Status == StatusProvision || s.Status == StatusAwaitsProvisioning || s.Status == string(lcmv1.StateUninitialized)
	})
}

// Reconcile implements reconcile.Reconciler for a Machine.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return r.retries.ReconcileAfter(req, r.Enter, func() (time.Duration, error) { return r.reconcile(ctx, req.NamespacedName) })
}

func (r *Reconciler) reconcile(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	f, err := r.observe(ctx, key)
	if err != nil {
		return 0, err
	}
	if message := unmanaged.Message(f.machine, Finalizer); message != "" {
		return 0, r.recordUnmanaged(ctx, f.machine, message)
	}
	d := decide(f)
	if err := r.record(ctx, f, d); err != nil {
		return 0, err
	}
	after, err := performers[d.do](ctx, r, f)
	// A conflict is no failure: somebody was faster, and the watch reports it.
	if err != nil && !apierrors.IsConflict(err) {
		err = fmt.Errorf("machines: %s: %w", d.do, err)
	}
	if f.userDataProblem != "" && after == 0 {
		after = queue.SecretWait
	}
	if (f.ownAPI || f.nodeProblem != "") && (after == 0 || after > nodePeriod) {
		after = nodePeriod
	}
	return after, err
}

// recordUnmanaged writes why nothing acts on a Machine into its status.
func (r *Reconciler) recordUnmanaged(ctx context.Context, m *clusterv1.Machine, message string) error {
	before := m.DeepCopy()
	if m.Status.ProviderStatus == nil {
		m.Status.ProviderStatus = &baremetalv1.MachineProviderStatus{}
	}
	m.Status.ProviderStatus.Conditions = unmanaged.With(m.Status.ProviderStatus.Conditions, message)
	return r.writeStatus(ctx, before, m)
}

// record writes the status, if it has changed.
func (r *Reconciler) record(ctx context.Context, f *facts, d decision) error {
	before := f.machine.DeepCopy()
	f.machine.Status = statusOf(f, d)
	if err := r.writeStatus(ctx, before, f.machine); err != nil {
		return err
	}
	r.publish(ctx, f, before.Status.ProviderStatus)
	return nil
}

func (r *Reconciler) writeStatus(ctx context.Context, before, after *clusterv1.Machine) error {
	patch := client.MergeFrom(before)
	if b, err := patch.Data(after); err != nil || string(b) == "{}" {
		return err
	}
	if err := r.Client.Status().Patch(ctx, after, patch); err != nil {
		return fmt.Errorf("machines: status: %w", err)
	}
	return nil
}

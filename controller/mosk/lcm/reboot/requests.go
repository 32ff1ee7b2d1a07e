package reboot

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Requests reconciles GracefulRebootRequests.
type Requests struct {
	Config
	events *events.Recorder
}

// NewRequests returns a reconciler, or an error when a required field of c is nil.
func NewRequests(c Config) (*Requests, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	return &Requests{c, events.New(c.Client, c.Clock)}, nil
}

// Setup adds the reconciler to a manager. It does not poll.
func (r *Requests) Setup(mgr manager.Manager) error {
	ofCluster := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: o.GetNamespace(), Name: o.GetLabels()[clusterv1.ClusterNameLabel]}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		Named("lcm-rebootrequests").
		For(&kaasv1.GracefulRebootRequest{}).
		Watches(&clusterv1.Cluster{}, &handler.EnqueueRequestForObject{}).
		Watches(&clusterv1.Machine{}, ofCluster).
		Watches(&lcmv1.LCMMachine{}, ofCluster).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for a GracefulRebootRequest.
func (r *Requests) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req.NamespacedName) })
}

// target is a machine of the cluster.
type target struct {
	machine *clusterv1.Machine
	lcm     *lcmv1.LCMMachine // nil: it does not exist
}

// ready reports whether the provider has found the machine Ready.
func (t target) ready() bool {
	p := t.machine.Status.ProviderStatus
	return t.lcm != nil && p != nil && p.Ready && t.machine.DeletionTimestamp.IsZero()
}

// asked reports whether the machine has the annotation, or is not done with an earlier one.
func (t target) asked() bool {
	return t.lcm != nil && (item.GracefulRebootBegun(t.lcm) || t.lcm.Spec.RebootRequired || t.lcm.Status.Reboot != nil)
}

// booted returns when the server has booted, nil when that is not known.
func (t target) booted() *metav1.Time {
	if t.lcm == nil || t.lcm.Status.HostInfo == nil {
		return nil
	}
	return t.lcm.Status.HostInfo.BootTime
}

// facts hold the objects that a reconcile has read.
type facts struct {
	request *kaasv1.GracefulRebootRequest
	exists  bool     // the cluster does
	unready string   // why the cluster is not Ready; "": it is
	all     []target // machines of the cluster, in the order of updates
}

// decide returns the status of a request, and the name of the machine that gets the annotation
// once the status is written; "" for none.
func decide(f facts) (status kaasv1.GracefulRebootRequestStatus, annotate string) {
	status = *f.request.Status.DeepCopy()
	status.Message = ""
	if status.State == "" {
		status.State = kaasv1.RebootNotStarted
	}
	if status.State == kaasv1.RebootCompleted {
		return status, ""
	}
	wait := func(format string, args ...any) (kaasv1.GracefulRebootRequestStatus, string) {
		status.Message = fmt.Sprintf(format, args...)
		return status, ""
	}
	if !f.exists {
		return wait("metadata.name: there is no Cluster %q in the namespace: name the request like its cluster", f.request.Name)
	}
	targets, missing := chosen(f)
	if len(missing) > 0 {
		return wait("spec.machines: the cluster has no Machine %s", strings.Join(missing, ", "))
	}
	for i := range status.Machines {
		m := &status.Machines[i]
		if m.State != kaasv1.RebootInProgress {
			continue
		}
		index := slices.IndexFunc(f.all, func(t target) bool { return t.machine.Name == m.Name })
		switch {
		case index < 0: // it has left the cluster
			m.State = kaasv1.RebootCompleted
		case f.all[index].lcm == nil:
			return wait("Machine %s has no LCMMachine", m.Name)
		case f.all[index].asked():
			return wait("Machine %s is being rebooted%s", m.Name, blocked(f.all[index].lcm))
		case f.all[index].booted().Equal(m.BootTime): // the annotation was not written, or removed by somebody
			return status, m.Name
		default:
			m.State = kaasv1.RebootCompleted
		}
	}
	for _, t := range targets {
		if slices.ContainsFunc(status.Machines, func(m kaasv1.MachineReboot) bool { return m.Name == t.machine.Name }) {
			continue
		}
		for _, other := range f.all {
			if other.asked() {
				return wait("Machine %s is being rebooted", other.machine.Name)
			}
		}
		for _, other := range targets {
			if !other.ready() {
				return wait("Machine %s is not Ready", other.machine.Name)
			}
		}
		if f.unready != "" {
			return wait("Cluster %s is not Ready: %s", f.request.Name, f.unready)
		}
		status.State = kaasv1.RebootInProgress
		status.Machines = append(status.Machines, kaasv1.MachineReboot{Name: t.machine.Name, State: kaasv1.RebootInProgress, BootTime: t.booted()})
		return status, t.machine.Name
	}
	status.State = kaasv1.RebootCompleted
	return status, ""
}

// chosen returns the machines that a request names, in the order of updates, and the names
// that no machine has.
func chosen(f facts) (targets []target, missing []string) {
	names := f.request.Spec.Machines
	if len(names) == 0 {
		return f.all, nil
	}
	for _, t := range f.all {
		if slices.Contains(names, t.machine.Name) {
			targets = append(targets, t)
		}
	}
	for _, name := range names {
		if !slices.ContainsFunc(targets, func(t target) bool { return t.machine.Name == name }) {
			missing = append(missing, name)
		}
	}
	return targets, missing
}

// inOrder sorts machines in the order of updates: by upgradeIndex, those without one last,
// then by name.
func inOrder(a, b target) int {
	return cmp.Or(cmp.Compare(item.UpgradeIndex(a.machine), item.UpgradeIndex(b.machine)), strings.Compare(a.machine.Name, b.machine.Name))
}

// blocked says why the maintenance or the reboot of a machine waits, where there is a reason.
func blocked(m *lcmv1.LCMMachine) string {
	switch s := m.Status; {
	case s.KubernetesCordonDrainError != "":
		return ": " + s.KubernetesCordonDrainError
	case s.Reboot != nil && s.Reboot.ErrorMessage != "":
		return ": " + s.Reboot.ErrorMessage
	}
	return ""
}

// unready returns why a cluster is not Ready, "" when it is.
func unready(c *clusterv1.Cluster) string {
	p := c.Status.ProviderStatus
	switch {
	case p == nil:
		return "the provider has not written its status"
	case p.Ready:
		return ""
	}
	for _, condition := range p.Conditions {
		if !condition.Ready {
			return fmt.Sprintf("%s: %s", condition.Type, cmp.Or(condition.Message, "not ready"))
		}
	}
	return "it is being deleted"
}

func (r *Requests) observe(ctx context.Context, key client.ObjectKey) (facts, error) {
	f := facts{request: new(kaasv1.GracefulRebootRequest)}
	if err := r.Client.Get(ctx, key, f.request); err != nil {
		return f, err
	}
	c := new(clusterv1.Cluster)
	switch err := r.Client.Get(ctx, key, c); {
	case err == nil:
		f.exists, f.unready = true, unready(c)
	case !apierrors.IsNotFound(err):
		return f, fmt.Errorf("reboot: Cluster %s: %w", key, err)
	}
	var machines clusterv1.MachineList
	if err := r.Client.List(ctx, &machines, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return f, fmt.Errorf("reboot: Machines: %w", err)
	}
	for i := range machines.Items {
		t := target{machine: &machines.Items[i], lcm: new(lcmv1.LCMMachine)}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(t.machine), t.lcm); apierrors.IsNotFound(err) {
			t.lcm = nil
		} else if err != nil {
			return f, fmt.Errorf("reboot: LCMMachine %s: %w", t.machine.Name, err)
		}
		f.all = append(f.all, t)
	}
	slices.SortFunc(f.all, inOrder)
	return f, nil
}

// withdraw removes the annotation of a request that was deleted, where its reboot is not
// demanded yet.
func (r *Requests) withdraw(ctx context.Context, key client.ObjectKey) error {
	var list lcmv1.LCMMachineList
	if err := r.Client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reboot: LCMMachines: %w", err)
	}
	for i := range list.Items {
		before := &list.Items[i]
		if before.Annotations[item.RebootRequestAnnotation] != key.Name || before.Spec.RebootRequired {
			continue
		}
		m := before.DeepCopy()
		delete(m.Annotations, item.GracefulRebootAnnotation)
		delete(m.Annotations, item.RebootRequestAnnotation)
		err := r.Client.Patch(ctx, m, patch.IfUnchanged(before))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reboot: LCMMachine %s: %w", m.Name, err)
		}
	}
	return nil
}

func (r *Requests) reconcile(ctx context.Context, key client.ObjectKey) error {
	f, err := r.observe(ctx, key)
	if apierrors.IsNotFound(err) && f.request.Name == "" {
		return r.withdraw(ctx, key)
	}
	if err != nil || !f.request.DeletionTimestamp.IsZero() {
		return err
	}
	status, annotate := decide(f)
	if !equality.Semantic.DeepEqual(status, f.request.Status) {
		before := f.request.DeepCopy()
		f.request.Status = status
		// When two requests begin a reboot at once, one gets a conflict and observes again.
		err := r.Client.Status().Patch(ctx, f.request, patch.IfUnchanged(before))
		if err != nil {
			return fmt.Errorf("reboot: GracefulRebootRequest %s: %w", key, err)
		}
		r.publish(ctx, f, before.Status)
	}
	for _, t := range f.all {
		if t.machine.Name != annotate {
			continue
		}
		before := t.lcm.DeepCopy()
		metav1.SetMetaDataAnnotation(&t.lcm.ObjectMeta, item.GracefulRebootAnnotation, "true")
		metav1.SetMetaDataAnnotation(&t.lcm.ObjectMeta, item.RebootRequestAnnotation, key.Name)
		if err := r.Client.Patch(ctx, t.lcm, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("reboot: LCMMachine %s: %w", annotate, err)
		}
	}
	return nil
}

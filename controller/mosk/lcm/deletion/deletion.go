package deletion

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/maintenance"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Finalizer suspends the deletion of an LCMMachine until its node has left the cluster. Every
// machine of a cluster has it: its Node goes with it, however the Machine is deleted. No public
// text names the product's finalizer.
const Finalizer = "lcm.mirantis.com/prepare-deletion"

// Config configures a reconciler.
type Config struct {
	queue.Work
	Client   client.Client // client of the management cluster
	Workload maintenance.Workload
}

// Reconciler prepares the deletion of LCMMachines.
type Reconciler struct {
	Config
	service maintenance.Service
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Workload == nil || c.Clock == nil {
		return nil, errors.New("deletion: Config.Client, Config.Workload or Config.Clock is nil")
	}
	return &Reconciler{c, maintenance.Service{Client: c.Client, Workload: c.Workload}}, nil
}

// Setup adds the reconciler to a manager. It polls machines whose deletion is prepared.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("lcm-deletions").
		For(&lcmv1.LCMMachine{}).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for an LCMMachine.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.ReconcileAfter(r.Enter, func() (time.Duration, error) { return r.reconcile(ctx, req.NamespacedName) })
}

// step is the next action for a machine.
type step string

// The steps, in their order.
const (
	stepNone  step = ""
	stepHold  step = "add the finalizer"
	stepTake  step = "take the node out of service"
	stepGive  step = "give the node back"
	stepLeave step = "remove the node from the cluster"
)

// next returns the next step of a machine. A machine without a cluster has no node.
func next(m *lcmv1.LCMMachine) step {
	held := controllerutil.ContainsFinalizer(m, Finalizer)
	switch {
	case !m.DeletionTimestamp.IsZero() && held:
		return stepLeave
	case !m.DeletionTimestamp.IsZero() || m.Spec.ClusterName == "":
		return stepNone
	case !held:
		return stepHold
	case m.Spec.PrepareDeletion:
		return stepTake
	case m.Status.PrepareDeletionPhase != "":
		return stepGive
	}
	return stepNone
}

// steps perform the steps. Each returns when to look at the machine again, 0 when only its
// change matters.
var steps = map[step]func(*Reconciler, context.Context, *lcmv1.LCMMachine) (time.Duration, error){
	stepNone:  func(*Reconciler, context.Context, *lcmv1.LCMMachine) (time.Duration, error) { return 0, nil },
	stepHold:  (*Reconciler).hold,
	stepTake:  (*Reconciler).take,
	stepGive:  (*Reconciler).give,
	stepLeave: (*Reconciler).leave,
}

func (r *Reconciler) reconcile(ctx context.Context, key client.ObjectKey) (time.Duration, error) {
	var m lcmv1.LCMMachine
	if err := r.Client.Get(ctx, key, &m); err != nil {
		return 0, queue.Deleted(err)
	}
	do := next(&m)
	after, err := steps[do](r, ctx, &m)
	if err != nil {
		return 0, fmt.Errorf("deletion: %s of LCMMachine %s: %w", do, key, err)
	}
	return after, nil
}

// hold adds the finalizer before any request exists, so that the requests of a machine that is
// deleted meanwhile are removed.
func (r *Reconciler) hold(ctx context.Context, m *lcmv1.LCMMachine) (time.Duration, error) {
	return 0, r.patch(ctx, m, func() { controllerutil.AddFinalizer(m, Finalizer) })
}

// take takes the node out of service.
func (r *Reconciler) take(ctx context.Context, m *lcmv1.LCMMachine) (time.Duration, error) {
	if m.Status.PrepareDeletionPhase == lcmv1.DeletionCompleted { // what comes later does not undo it
		return 0, nil
	}
	if m.Status.PrepareDeletionPhase == "" { // before there is a request, so that an end of the demand removes it
		if err := r.phase(ctx, m, lcmv1.DeletionStarted); err != nil {
			return 0, err
		}
	}
	p, err := r.service.Enter(ctx, request(m))
	if err != nil {
		return 0, err
	}
	phase := lcmv1.DeletionStarted
	switch {
	case p.Done:
		phase = lcmv1.DeletionCompleted
	case p.Message != "" && locks[p.Stage]: // an application refuses; it is asked again
		phase = lcmv1.DeletionFailed
	}
	return p.After, r.phase(ctx, m, phase)
}

// locks are the stages at which a message is that of a workload lock that has failed.
var locks = map[string]bool{maintenance.StageClusterLocks: true, maintenance.StageNodeLocks: true}

// give gives the node back to its cluster.
func (r *Reconciler) give(ctx context.Context, m *lcmv1.LCMMachine) (time.Duration, error) {
	if err := r.phase(ctx, m, lcmv1.DeletionAborting); err != nil {
		return 0, err
	}
	done, after, err := r.release(ctx, m)
	if !done || err != nil {
		return after, err
	}
	return 0, r.phase(ctx, m, "")
}

// leave removes the node of a machine that is deleted.
func (r *Reconciler) leave(ctx context.Context, m *lcmv1.LCMMachine) (time.Duration, error) {
	api, err := r.Workload(ctx, m.Namespace, m.Spec.ClusterName)
	if errors.As(err, new(*workload.SecretError)) { // the API is gone, and the node with it
		return 0, r.patch(ctx, m, func() { controllerutil.RemoveFinalizer(m, Finalizer) })
	}
	if err != nil {
		return 0, err
	}
	gone, err := r.nodeGone(ctx, m)
	if err != nil {
		return 0, err
	}
	if gone {
		if err := r.removeNode(ctx, api, m); err != nil {
			return 0, err
		}
	}
	done, after, err := r.release(ctx, m)
	if !done || err != nil {
		return after, err
	}
	return 0, r.patch(ctx, m, func() { controllerutil.RemoveFinalizer(m, Finalizer) })
}

// nodeGone reports whether the Node of a machine that is deleted leaves the cluster: its node is
// drained, or its Machine is being deleted, after whose server is deprovisioned or given up
// the provider deletes the LCMMachine. The Node of an LCMMachine that somebody deletes alone stays,
// for its server still runs.
func (r *Reconciler) nodeGone(ctx context.Context, m *lcmv1.LCMMachine) (bool, error) {
	if m.Status.PrepareDeletionPhase == lcmv1.DeletionCompleted {
		return true, nil
	}
	var machine clusterv1.Machine
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(m), &machine)
	return err == nil && !machine.DeletionTimestamp.IsZero(), client.IgnoreNotFound(err)
}

// removeNode deletes the Node of a machine, unless it is not known to be this machine's. In an API of
// the cluster's own, where a Node need not tell, it is not while another LCMMachine reports the same host
// name.
func (r *Reconciler) removeNode(ctx context.Context, api workload.API, m *lcmv1.LCMMachine) error {
	var n corev1.Node
	if err := api.Client.Get(ctx, client.ObjectKey{Name: item.Node(m)}, &n); err != nil {
		return client.IgnoreNotFound(err)
	}
	tie, err := workload.TieOf(ctx, r.Client, &n, client.ObjectKeyFromObject(m), api.Own)
	if tie.Why != "" || err != nil {
		return err
	}
	if api.Own {
		var all lcmv1.LCMMachineList
		if err := r.Client.List(ctx, &all, client.InNamespace(m.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range all.Items {
			o := &all.Items[i]
			if o.Name == m.Name || !o.DeletionTimestamp.IsZero() || o.Spec.ClusterName != m.Spec.ClusterName || item.Node(o) != item.Node(m) {
				continue
			}
			if tie, err := workload.TieOf(ctx, r.Client, &n, client.ObjectKeyFromObject(o), api.Own); tie.Why == "" || err != nil {
				return err
			}
		}
	}
	return client.IgnoreNotFound(api.Client.Delete(ctx, &n, client.Preconditions{UID: &n.UID}))
}

// release removes the requests for a machine, and that for its cluster after its last one.
func (r *Reconciler) release(ctx context.Context, m *lcmv1.LCMMachine) (done bool, after time.Duration, err error) {
	p, err := r.service.Leave(ctx, request(m))
	if !p.Done || err != nil {
		return false, p.After, err
	}
	// Another machine in maintenance needs the request for the cluster, and removes it.
	if _, err := r.service.LeaveCluster(ctx, client.ObjectKey{Namespace: m.Namespace, Name: m.Spec.ClusterName}, m.Name); err != nil {
		return false, 0, err
	}
	return true, 0, r.Client.Get(ctx, client.ObjectKeyFromObject(m), m) // Leave has written its status
}

func request(m *lcmv1.LCMMachine) maintenance.Request {
	return maintenance.Request{Machine: client.ObjectKeyFromObject(m), Reason: lcmv1.ReasonDelete}
}

// phase writes status.prepareDeletionPhase.
func (r *Reconciler) phase(ctx context.Context, m *lcmv1.LCMMachine, phase string) error {
	if m.Status.PrepareDeletionPhase == phase {
		return nil
	}
	before := m.DeepCopy()
	m.Status.PrepareDeletionPhase = phase
	return r.Client.Status().Patch(ctx, m, client.MergeFrom(before))
}

// patch writes a change of the finalizers. The list has finalizers of other controllers, too:
// the patch carries the resourceVersion that was read, so that it removes none of them.
func (r *Reconciler) patch(ctx context.Context, m *lcmv1.LCMMachine, change func()) error {
	before := m.DeepCopy()
	change()
	return r.Client.Patch(ctx, m, patch.IfUnchanged(before))
}

package maintenance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/drain"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// Config configures the reconciler of LCMClusterStates.
type Config struct {
	queue.Work
	Client   client.Client // client of the management cluster
	Workload Workload
}

// States drains and uncordons nodes as LCMClusterStates of the type cordon-drain demand.
// It leaves the other types alone.
type States struct {
	Config
	retries queue.Retries // retries of states that are not reached yet; Slow where only the lease is renewed
}

// NewStates returns a reconciler, or an error when a required field of c is nil.
func NewStates(c Config) (*States, error) {
	if c.Client == nil || c.Workload == nil || c.Clock == nil {
		return nil, errors.New("maintenance: Config.Client, Config.Workload or Config.Clock is nil")
	}
	return &States{Config: c}, nil
}

// Setup adds the reconciler to a manager. It polls nodes that it drains or has drained.
func (r *States) Setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("lcm-cluster-states").
		For(&lcmv1.LCMClusterState{}).
		WithOptions(r.RetryOptions(&r.retries)).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for an LCMClusterState.
func (r *States) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if r.Enter != nil {
		defer r.Enter()()
	}
	after, err := r.reconcile(ctx, req.NamespacedName)
	if apierrors.IsConflict(err) { // the conflict is over a node or a lease, which no watch reports
		after, err = drain.Interval, nil
	}
	switch after {
	case 0:
		r.retries.Succeeded(req)
	case drain.Interval:
		r.retries.Failed(req, 1)
	default:
		r.retries.Failed(req, queue.Slow)
	}
	return ctrl.Result{RequeueAfter: after}, err
}

func (r *States) reconcile(ctx context.Context, key types.NamespacedName) (after time.Duration, err error) {
	var s lcmv1.LCMClusterState
	if err := r.Client.Get(ctx, key, &s); err != nil {
		return 0, client.IgnoreNotFound(err)
	}
	if s.Spec.Type != lcmv1.StateCordonDrain || !s.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	api, err := r.Workload(ctx, key.Namespace, s.Spec.ClusterName)
	if err != nil {
		return 0, fmt.Errorf("maintenance: API of cluster %s: %w", s.Spec.ClusterName, err)
	}
	n, err := r.nodeOf(ctx, api, &s)
	if err != nil {
		return 0, fmt.Errorf("maintenance: LCMClusterState %s: %w", key, err)
	}
	next, after, err := decide(ctx, drain.New(api.Client, r.Clock, r.ClientClock), &s, n, "lcm/"+key.String())
	if err != nil {
		return 0, fmt.Errorf("maintenance: LCMClusterState %s: %w", key, err)
	}
	if next.Message != "" && next.Message != s.Status.Message {
		next.Attempt++
	}
	if next == s.Status {
		return after, nil
	}
	before := s.DeepCopy()
	s.Status = next
	if err := r.Client.Status().Patch(ctx, &s, client.MergeFrom(before)); err != nil {
		return 0, fmt.Errorf("maintenance: status of LCMClusterState %s: %w", key, err)
	}
	return after, nil
}

// node is the node of an LCMClusterState.
type node struct {
	tie       workload.Tie // to a machine of the cluster
	unmissed  bool         // a drain is done when the Node does not exist
	untouched bool         // the Node does not exist, and would be anybody's
	isRemoved bool         // the machine is deleted
}

// nodeOf returns the node of a state. Whoever may write LCMClusterStates may name any node in one: the
// node must be that of an LCMMachine of the cluster, in the namespace of the state. A Node that does not
// exist is missed when the cluster has an API of its own, whose nodes register there, or when the
// Machine has had one; the release of a cluster that shares an API may install none.
func (r *States) nodeOf(ctx context.Context, api workload.API, s *lcmv1.LCMClusterState) (node, error) {
	out := node{isRemoved: s.Annotations[lcmv1.ClusterStateReasonAnnotation] == string(lcmv1.ReasonDelete)}
	if wrong := validation.IsDNS1123Subdomain(s.Spec.Arg); len(wrong) > 0 {
		out.tie.Why = fmt.Sprintf("spec.arg: %.64q is no name of a Node: %s", s.Spec.Arg, wrong[0])
		return out, nil
	}
	var all lcmv1.LCMMachineList
	if err := r.Client.List(ctx, &all, client.InNamespace(s.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return out, fmt.Errorf("LCMMachines: %w", err)
	}
	machines := slices.DeleteFunc(all.Items, func(m lcmv1.LCMMachine) bool {
		return m.Spec.ClusterName != s.Spec.ClusterName || item.Node(&m) != s.Spec.Arg
	})
	n, err := nodeNamed(ctx, api.Client, s.Spec.Arg)
	if err != nil {
		return out, err
	}
	if n == nil {
		out.untouched = !api.Own
		out.unmissed, err = r.unmissed(ctx, api, out, machines)
		return out, err
	}
	for i := range machines {
		if out.tie, err = workload.TieOf(ctx, r.Client, n, client.ObjectKeyFromObject(&machines[i]), api.Own); out.tie.Why == "" || err != nil {
			return out, err
		}
	}
	if len(machines) == 0 && !api.Own {
		out.tie.Why = fmt.Sprintf("spec.arg: Node %s is that of no LCMMachine of the cluster %q in the namespace", s.Spec.Arg, s.Spec.ClusterName)
	}
	return out, nil
}

// unmissed reports whether nobody misses a Node that does not exist.
func (r *States) unmissed(ctx context.Context, api workload.API, n node, machines []lcmv1.LCMMachine) (bool, error) {
	if n.isRemoved || api.Own {
		return n.isRemoved, nil
	}
	for i := range machines {
		var m clusterv1.Machine
		key := client.ObjectKeyFromObject(&machines[i])
		if err := r.Client.Get(ctx, key, &m); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("Machine %s: %w", key, err)
		}
		if m.Status.NodeRef != nil {
			return false, nil
		}
	}
	return true, nil
}

// decide brings the node as far towards the demanded state as it can now. It returns the
// status and the time until the next attempt.
func decide(ctx context.Context, d *drain.Service, s *lcmv1.LCMClusterState, n node, owner string) (lcmv1.LCMClusterStateStatus, time.Duration, error) {
	next, held := s.Status, new(drain.HeldError)
	if s.Spec.Value != "true" {
		next.Value, next.Message = "false", ""
		return next, 0, d.Uncordon(ctx, s.Spec.Arg, owner)
	}
	switch {
	case n.tie.Why != "":
		next.Value, next.Message = strconv.FormatBool(n.isRemoved && n.tie.Others), n.tie.Why
		return next, drain.Lease / 3, nil
	case n.untouched && n.unmissed:
		next.Value, next.Message = "true", ""
		return next, drain.Lease / 3, nil
	case n.untouched:
		next.Value, next.Message = "false", drain.Progress{Missing: s.Spec.Arg}.String()
		return next, drain.Interval, nil
	}
	if s.Status.Value == "true" { // a pod that gets there later does not undo the drain
		err := d.Cordon(ctx, s.Spec.Arg, owner)
		if !errors.As(err, &held) {
			return next, drain.Lease / 3, err
		}
	}
	p, err := d.Drain(ctx, s.Spec.Arg, owner)
	switch {
	case errors.As(err, &held):
		next.Value, next.Message = "false", held.Error()
		return next, drain.Interval, nil
	case err != nil:
		return next, 0, err
	case !p.Done && !(p.Missing != "" && n.unmissed):
		next.Value, next.Message = "false", p.String()
		return next, drain.Interval, nil
	}
	next.Value, next.Message = "true", ""
	return next, drain.Lease / 3, nil
}

// Package node hands the nodes of MachineConfigPools their configuration and, in a layered pool,
// the image that was built of exactly that configuration: both in one patch, to as many nodes at
// a time as the pool allows. It counts how far the nodes are, in the pool's status.
//
// It decides by the Nodes' annotations alone. The daemon on each node does the update, and
// writes them; see controller/machineconfig for their names.
package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/metalab-dev/metalab/controller/machineconfig"
	"github.com/metalab-dev/metalab/controller/reconcile/events"
	"github.com/metalab-dev/metalab/controller/reconcile/patch"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
	"github.com/metalab-dev/metalab/controller/reconcile/readafterwrite"
)

// Config configures a Reconciler.
type Config struct {
	Client client.Client
	Reader client.Reader // reads the API without a cache
	queue.Work
}

// Reconciler rolls out the configurations of pools.
type Reconciler struct {
	Config
	events  *events.Recorder
	read    readafterwrite.Reader // reads Nodes
	mirrors readafterwrite.Reader // reads MachineConfigNodes
	// noImages is whether the API has dropped spec.configImage of a MachineConfigNode: upstream's
	// definition has the field behind the feature gate ImageModeStatusReporting alone. It would be
	// written again at each look.
	noImages atomic.Bool
}

// New returns a reconciler, or an error when a required field of c is nil.
func New(c Config) (*Reconciler, error) {
	if c.Client == nil || c.Reader == nil || c.Clock == nil {
		return nil, errors.New("node: Config.Client, Config.Reader and Config.Clock are required")
	}
	return &Reconciler{
		Config: c, events: events.New(c.Client, c.Clock), read: readafterwrite.Reader{Cached: c.Client, Live: c.Reader},
		mirrors: readafterwrite.Reader{Cached: c.Client, Live: c.Reader},
	}, nil
}

// settle is the time from the change of a node to the look at its pool. One look covers all
// changes in that time.
const settle = time.Second

// Setup adds the reconciler to a manager. It does not poll.
func (r *Reconciler) Setup(mgr manager.Manager) error {
	type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(ctx context.Context, q requests) {
		var pools mcv1.MachineConfigPoolList
		if err := r.Client.List(ctx, &pools, client.UnsafeDisableDeepCopy); err != nil {
			return // the cache has no errors but that it has ended
		}
		for i := range pools.Items {
			q.AddAfter(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])}, settle)
		}
	}
	nodes := handler.Funcs{
		CreateFunc: func(ctx context.Context, _ event.CreateEvent, q requests) { enqueue(ctx, q) },
		UpdateFunc: func(ctx context.Context, _ event.UpdateEvent, q requests) { enqueue(ctx, q) },
		DeleteFunc: func(ctx context.Context, _ event.DeleteEvent, q requests) { enqueue(ctx, q) },
	}
	ofPool := func(f func(client.Object) string) handler.EventHandler {
		return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
			return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: f(o)}}}
		})
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named("machineconfig-node").
		For(&mcv1.MachineConfigPool{}).
		Watches(&corev1.Node{}, nodes, builder.WithPredicates(predicate.Funcs{UpdateFunc: nodeChanged})).
		Watches(&mcv1.MachineOSConfig{}, ofPool(func(o client.Object) string {
			m, ok := o.(*mcv1.MachineOSConfig)
			if !ok {
				return ""
			}
			return m.Spec.MachineConfigPool.Name
		})).
		Watches(&mcv1.MachineOSBuild{}, ofPool(func(o client.Object) string { return o.GetLabels()[machineconfig.TargetPoolLabel] })).
		Owns(&mcv1.MachineConfigNode{}, builder.WithPredicates(predicate.Funcs{ // its own writes change nothing here
			CreateFunc: func(event.CreateEvent) bool { return false }, UpdateFunc: func(event.UpdateEvent) bool { return false },
		})).
		WithOptions(r.Options()).
		Complete(r)
}

// nodeChanged reports whether a change of a Node matters: its heartbeats do not.
func nodeChanged(e event.UpdateEvent) bool {
	before, oldOK := e.ObjectOld.(*corev1.Node)
	after, newOK := e.ObjectNew.(*corev1.Node)
	return oldOK && newOK && (before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		state{before}.unready() != state{after}.unready())
}

// Reconcile implements reconcile.Reconciler for a MachineConfigPool.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error { return r.reconcile(ctx, req.Name) })
}

func (r *Reconciler) reconcile(ctx context.Context, name string) error {
	var pool mcv1.MachineConfigPool
	if err := r.Client.Get(ctx, client.ObjectKey{Name: name}, &pool); err != nil {
		return queue.Deleted(err)
	}
	if pool.DeletionTimestamp != nil {
		return nil
	}
	if selectsAll(&pool) {
		r.publish(ctx, &pool, corev1.EventTypeWarning, "SelectingAll", "This pool selects every node with an empty spec.nodeSelector: it gets none. Set a label of its nodes")
		return nil
	}
	nodes, err := r.nodesOf(ctx, &pool)
	if err != nil {
		return err
	}
	out, err := rolloutOf(ctx, r.Client, &pool)
	if err != nil {
		return err
	}
	var errs []error
	// The event of a write that the cache lacks reconciles the pool again. Until then it is
	// unknown how many nodes are available.
	stale := slices.ContainsFunc(nodes, func(n *corev1.Node) bool { return r.read.Stale(n) })
	if out.ready && !pool.Spec.Paused && !stale {
		errs = append(errs, r.rollOut(ctx, &pool, nodes, out.target))
	}
	errs = append(errs, r.report(ctx, &pool, nodes, out), r.mirror(ctx, &pool, nodes))
	return errors.Join(errs...)
}

// nodesOf returns the nodes of a pool, by name. The Nodes are the cache's: they must not be
// changed.
func (r *Reconciler) nodesOf(ctx context.Context, pool *mcv1.MachineConfigPool) ([]*corev1.Node, error) {
	var pools mcv1.MachineConfigPoolList
	var list corev1.NodeList
	if err := errors.Join(r.Client.List(ctx, &pools, client.UnsafeDisableDeepCopy), r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy)); err != nil {
		return nil, fmt.Errorf("node: nodes of MachineConfigPool %s: %w", pool.Name, err)
	}
	m := newMembership(pools.Items)
	var out []*corev1.Node
	for i := range list.Items {
		n := &list.Items[i]
		p, err := m.of(n)
		if err != nil {
			r.publish(ctx, n, corev1.EventTypeWarning, "SeveralPools", err.Error())
			continue
		}
		if p != nil && p.Name == pool.Name {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// rollOut marks the nodes that lack the target, and hands it to those that are next.
func (r *Reconciler) rollOut(ctx context.Context, pool *mcv1.MachineConfigPool, nodes []*corev1.Node, t target) error {
	operator := ""
	if pool.Name == machineconfig.ControlPlanePool {
		var err error
		if operator, err = r.operatorNode(ctx); err != nil {
			return err
		}
	}
	chosen := choose(nodes, t, MaxUnavailable(pool.Spec.MaxUnavailable, len(nodes)), operator)
	if chosen.deferred != "" {
		r.publish(ctx, pool, corev1.EventTypeNormal, "DeferringOperatorNodeUpdate", fmt.Sprintf("Node %s is updated last: the operator runs on it", chosen.deferred))
	}
	var errs []error
	for _, n := range nodes {
		errs = append(errs, r.write(ctx, n, t, slices.Contains(chosen.nodes, n)))
	}
	return errors.Join(errs...)
}

// write makes a node outdated or updated in its taints and, when it is chosen, hands it the
// target. The configuration and the image are in one patch: no node sees one without the other.
func (r *Reconciler) write(ctx context.Context, n *corev1.Node, t target, chosen bool) error {
	updated := state{n}.updated(t)
	tainted := slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.MatchTaint(&machineconfig.UpdateTaint) })
	if !chosen && tainted == !updated {
		return nil
	}
	after := n.DeepCopy()
	switch {
	case updated && tainted:
		after.Spec.Taints = slices.DeleteFunc(after.Spec.Taints, func(x corev1.Taint) bool { return x.MatchTaint(&machineconfig.UpdateTaint) })
	case !updated && !tainted && (state{n}).managed():
		after.Spec.Taints = append(after.Spec.Taints, machineconfig.UpdateTaint)
	}
	if chosen {
		a := after.Annotations
		if a == nil {
			a = map[string]string{}
		}
		a[machineconfig.DesiredConfig] = t.config
		for _, name := range []string{machineconfig.DesiredOSImage, machineconfig.DesiredImage} {
			if a[name] = t.image; t.image == "" {
				delete(a, name)
			}
		}
		after.Annotations = a
	}
	if equality.Semantic.DeepEqual(n, after) {
		return nil
	}
	// The choice is of this version of the node: a change of it may use up the capacity. And
	// the removal of the last taint, as a patch, removes those that others have added.
	patch := client.StrategicMergeFrom(n, client.MergeFromWithOptimisticLock{})
	err := r.Client.Patch(ctx, after, patch)
	if err == nil {
		r.read.Wrote(after)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("node: %s: %w", n.Name, err)
	}
	return nil
}

// operatorNode returns the node that the operator runs on; "" when it runs on none.
func (r *Reconciler) operatorNode(ctx context.Context) (string, error) {
	var pods corev1.PodList
	if err := r.Reader.List(ctx, &pods, client.InNamespace(machineconfig.Namespace), client.MatchingLabels{"k8s-app": "machine-config-operator"}); err != nil {
		return "", fmt.Errorf("node: pods of the operator: %w", err)
	}
	for _, p := range pods.Items {
		if p.Spec.NodeName != "" {
			return p.Spec.NodeName, nil
		}
	}
	return "", nil
}

// report writes the status of a pool.
func (r *Reconciler) report(ctx context.Context, pool *mcv1.MachineConfigPool, nodes []*corev1.Node, out rollout) error {
	before := pool.DeepCopy()
	count(pool, nodes, out, metav1.NewTime(r.Clock.Now()))
	if equality.Semantic.DeepEqual(before.Status, pool.Status) {
		return nil
	}
	// The conditions are one list, which other controllers write, too.
	if err := r.Client.Status().Patch(ctx, pool, patch.IfUnchanged(before)); err != nil {
		return fmt.Errorf("node: status of MachineConfigPool %s: %w", pool.Name, err)
	}
	return nil
}

// mirror gives each node of a pool its MachineConfigNode, whose spec is the node's target.
func (r *Reconciler) mirror(ctx context.Context, pool *mcv1.MachineConfigPool, nodes []*corev1.Node) error {
	var errs []error
	for _, n := range nodes {
		errs = append(errs, r.mirrorOne(ctx, pool, n))
	}
	return errors.Join(errs...)
}

// notSet is the desired configuration of a node that has none yet.
const notSet = "not-yet-set"

func (r *Reconciler) mirrorOne(ctx context.Context, pool *mcv1.MachineConfigPool, n *corev1.Node) error {
	var m mcv1.MachineConfigNode
	err := r.mirrors.Get(ctx, client.ObjectKey{Name: n.Name}, &m)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("node: MachineConfigNode %s: %w", n.Name, err)
	}
	before := m.DeepCopy()
	desired := n.Annotations[machineconfig.DesiredConfig]
	if desired == "" {
		desired = notSet
	}
	m.Spec.Node.Name, m.Spec.Pool.Name, m.Spec.ConfigVersion.Desired = n.Name, pool.Name, desired
	if !r.noImages.Load() {
		m.Spec.ConfigImage.DesiredImage = mcv1.ImageDigestFormat(n.Annotations[machineconfig.DesiredOSImage])
	}
	wanted := m.Spec.ConfigImage
	switch {
	case apierrors.IsNotFound(err):
		m.ObjectMeta = metav1.ObjectMeta{Name: n.Name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(n, corev1.SchemeGroupVersion.WithKind("Node"))}}
		if err := r.Client.Create(ctx, &m); err != nil {
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return fmt.Errorf("node: MachineConfigNode %s: %w", n.Name, err)
		}
	case before.Spec != m.Spec:
		if err := r.Client.Patch(ctx, &m, client.MergeFrom(before)); err != nil {
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("node: MachineConfigNode %s: %w", n.Name, err)
		}
	default:
		return nil
	}
	r.mirrors.Wrote(&m)
	if m.Spec.ConfigImage != wanted {
		r.noImages.Store(true)
	}
	return nil
}

// publish publishes an event about an object of the cluster.
func (r *Reconciler) publish(ctx context.Context, object client.Object, kind, reason, message string) {
	r.events.About(ctx, "machineconfig-node", object, kind, reason, message)
}

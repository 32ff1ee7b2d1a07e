package machines

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
	"github.com/metalab-dev/metalab/controller/reconcile/watch"
)

// nodePeriod is the time between two looks at a Node in the Cluster's own API, where nothing is
// watched.
const nodePeriod = time.Minute

// observeNode reads the Node of the server, once its agent has reported a host name. A Node of that name
// which is not known to be the machine's is none.
func (r *Reconciler) observeNode(ctx context.Context, f *facts) error {
	if f.lcm == nil || f.lcm.Spec.ClusterName == "" || len(f.lcm.Status.Addresses) == 0 {
		return nil
	}
	api, err := r.workload(ctx, f)
	if errors.As(err, new(*workload.SecretError)) {
		f.nodeProblem = err.Error()
		return nil
	}
	if err != nil {
		return fmt.Errorf("machines: %w", err)
	}
	var from client.Reader = r.Client
	if f.ownAPI = api.Own; f.ownAPI {
		from = api.Client
	}
	n := new(corev1.Node)
	switch err := from.Get(ctx, client.ObjectKey{Name: item.Node(f.lcm)}, n); {
	case apierrors.IsNotFound(err):
	case err != nil && api.Own: // a cluster that is down must not stop the rest
		f.nodeProblem = fmt.Sprintf("Kubernetes API of the Cluster: %v", err)
	case err != nil:
		return fmt.Errorf("machines: Node %s: %w", item.Node(f.lcm), err)
	default:
		tie, err := workload.TieOf(ctx, r.Client, n, client.ObjectKeyFromObject(f.machine), api.Own)
		if err != nil {
			return fmt.Errorf("machines: Node %s: %w", n.Name, err)
		}
		if tie.Why == "" {
			f.node = n
		}
	}
	return nil
}

// ready returns the condition Ready of a Node, nil when nothing has reported one.
func ready(n *corev1.Node) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == corev1.NodeReady {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// kubeletCondition is there once the Node of the server reports whether it is Ready, and stays when
// the Node is gone.
func kubeletCondition(f *facts, _ decision, _ []baremetalv1.Condition) *baremetalv1.Condition {
	if f.nodeProblem != "" && deploying(f) {
		return &baremetalv1.Condition{Message: item.Line(f.nodeProblem)}
	}
	if ref := f.machine.Status.NodeRef; f.node == nil && ref != nil && deploying(f) {
		return &baremetalv1.Condition{Message: fmt.Sprintf("Node %s does not exist any more: its node agent has to register it", ref.Name)}
	}
	if f.node == nil || !deploying(f) {
		return nil
	}
	n := ready(f.node)
	if n == nil {
		return nil
	}
	c := &baremetalv1.Condition{Ready: n.Status == corev1.ConditionTrue}
	if !c.Ready {
		c.Message = fmt.Sprintf("Node %s is not Ready (%s): %s", f.node.Name, n.Reason, item.Line(n.Message))
	}
	return c
}

// machinesOfNode enqueues the Machines whose server has a Node's name.
func (r *Reconciler) machinesOfNode(ctx context.Context, object client.Object) []reconcile.Request {
	return watch.Requests(ctx, r.Client, &lcmv1.LCMMachineList{}, func(l *lcmv1.LCMMachine) bool { return item.Node(l) == object.GetName() })
}

// nodeChanged passes Nodes that come and go, and updates of their condition Ready, labels and
// taints: other updates are frequent.
var nodeChanged = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	was, is := e.ObjectOld.(*corev1.Node), e.ObjectNew.(*corev1.Node)
	if !sameMarks(was, is) {
		return true
	}
	before, after := ready(was), ready(is)
	if before == nil || after == nil {
		return before != after
	}
	return before.Status != after.Status || before.Reason != after.Reason || before.Message != after.Message
}}

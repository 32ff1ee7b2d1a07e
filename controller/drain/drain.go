// Package drain cordons and drains nodes of a cluster for controllers that need a node without
// workloads, such as LCM before an upgrade, a reboot or maintenance. A Lease in the node's
// cluster gives each node one owner at a time; other owners wait.
//
// The service is stepped. Each call of Drain evicts the pods that can be evicted now, stores
// its state in the cluster, and returns the progress; the caller calls again later. A
// restarted controller therefore continues where its predecessor stopped.
//
// The package knows nodes, pods and leases, and no family of kinds. The owner knows why it
// drains a node.
package drain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Interval is the time between two attempts of a drain that is not done, as in kubectl drain.
const Interval = 5 * time.Second

// Service drains the nodes of one cluster.
type Service struct {
	// Client reads and writes the cluster's API. It must not read from a cache: the pods of
	// a node are selected by spec.nodeName, and a drain is done only if they are gone now.
	Client client.Client
	Clock  clock.PassiveClock // clock of Leases: the same for all owners
}

// New returns a service for a cluster. Its leases run by the clock of clients, unless that is
// nil, and not by a lab's: lab time jumps, so that a lease would expire before its owner
// renews it.
func New(c client.Client, lab, clients clock.PassiveClock) *Service {
	if clients == nil {
		clients = lab
	}
	return &Service{Client: c, Clock: clients}
}

// Progress is how far the drain of a node is.
type Progress struct {
	// Done is true when the Node exists, and only pods that a drain leaves (see stays) are on it.
	Done bool
	// Missing is the name of the Node when it does not exist and no pod is left there. Who removes
	// the node takes that as done; nobody else does, since the Node may register yet.
	Missing string
	// Waiting are the pods, as NAMESPACE/NAME, that are deleted but still on the node, because
	// its agent has not ended them yet.
	Waiting []string
	// Blocked are the pods whose eviction the API refuses, with its reasons.
	Blocked []Blocked
}

// Blocked is a pod whose eviction the API refuses.
type Blocked struct {
	Pod    string // NAMESPACE/NAME
	Reason string // reason that the API gives, such as the disruption budget
}

// String describes the progress for people.
func (p Progress) String() string {
	switch {
	case p.Done:
		return "drained"
	case len(p.Blocked) > 0:
		return fmt.Sprintf("pod %s cannot be evicted: %s", p.Blocked[0].Pod, p.Blocked[0].Reason)
	case p.Missing != "":
		return fmt.Sprintf("Node %s does not exist: its node agent has to register it", p.Missing)
	}
	return "waiting for the end of " + strings.Join(p.Waiting, ", ")
}

// Drain acquires the node for the owner, cordons it, and evicts its pods. When another owner
// has the node, Drain changes nothing and returns a HeldError. Pods that are bound to a Node that
// does not exist are evicted, too.
func (s *Service) Drain(ctx context.Context, node, owner string) (Progress, error) {
	exists, err := s.cordon(ctx, node, owner)
	if err != nil {
		return Progress{}, err
	}
	var pods corev1.PodList
	if err := s.Client.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return Progress{}, fmt.Errorf("drain: pods of node %s: %w", node, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return strings.Compare(name(&a), name(&b)) })
	var out Progress
	for i := range pods.Items {
		p := &pods.Items[i]
		if stays(p) {
			continue
		}
		switch reason, err := s.evict(ctx, p); {
		case err != nil:
			return Progress{}, fmt.Errorf("drain: evict pod %s: %w", name(p), err)
		case reason != "":
			out.Blocked = append(out.Blocked, Blocked{name(p), reason})
		default:
			out.Waiting = append(out.Waiting, name(p))
		}
	}
	switch {
	case len(out.Waiting)+len(out.Blocked) > 0:
	case exists:
		out.Done = true
	default:
		out.Missing = node
	}
	return out, nil
}

// Cordon acquires the node for the owner and makes it unschedulable. An owner calls Cordon or
// Drain at least once per Lease for as long as it needs the node: each call renews the lease.
// A Node that does not exist is acquired all the same.
func (s *Service) Cordon(ctx context.Context, node, owner string) error {
	_, err := s.cordon(ctx, node, owner)
	return err
}

func (s *Service) cordon(ctx context.Context, node, owner string) (exists bool, err error) {
	var n corev1.Node
	if err := s.Client.Get(ctx, client.ObjectKey{Name: node}, &n); client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("drain: node %s: %w", node, err)
	} else if err != nil { // there is nothing to cordon
		_, err := s.acquire(ctx, node, owner, false)
		return false, err
	}
	// Uncordon leaves a node cordoned that was cordoned before the owner came. The lease
	// records that before the node changes, so that a restart between the two writes does not
	// lose it.
	if _, err := s.acquire(ctx, node, owner, !n.Spec.Unschedulable); err != nil {
		return true, err
	}
	if n.Spec.Unschedulable {
		return true, nil
	}
	before := n.DeepCopy()
	n.Spec.Unschedulable = true
	if err := s.Client.Patch(ctx, &n, client.MergeFrom(before)); err != nil {
		return true, fmt.Errorf("drain: node %s: %w", n.Name, err)
	}
	return true, nil
}

// Uncordon makes the node schedulable, unless the node was cordoned before the owner acquired
// it, and releases the lease. It does nothing for a node that the owner does not have.
func (s *Service) Uncordon(ctx context.Context, node, owner string) error {
	l, err := s.held(ctx, node, owner)
	if err != nil || l == nil {
		return err
	}
	if _, err := s.annotateSchedulable(ctx, node, marked(l), nil); client.IgnoreNotFound(err) != nil {
		return err
	}
	return s.release(ctx, l)
}

// UncordonAnnotated does the same, and sets annotations of the Node in the patch that makes it
// schedulable, also when the owner does not have the node. It returns the Node, or an error when
// there is none. A caller that is killed before the lease is released calls Release later.
func (s *Service) UncordonAnnotated(ctx context.Context, node, owner string, annotations map[string]string) (*corev1.Node, error) {
	l, err := s.held(ctx, node, owner)
	if err != nil {
		return nil, err
	}
	n, err := s.annotateSchedulable(ctx, node, l != nil && marked(l), annotations)
	if err != nil || l == nil {
		return n, err
	}
	return n, s.release(ctx, l)
}

// Release releases the lease of a node that the owner has uncordoned. It does nothing for a node
// that the owner does not have.
func (s *Service) Release(ctx context.Context, node, owner string) error {
	l, err := s.held(ctx, node, owner)
	if err != nil || l == nil {
		return err
	}
	return s.release(ctx, l)
}

// annotateSchedulable sets annotations of a Node and, if wanted, makes it schedulable, in one patch.
func (s *Service) annotateSchedulable(ctx context.Context, node string, schedulable bool, annotations map[string]string) (*corev1.Node, error) {
	if !schedulable && len(annotations) == 0 {
		return nil, nil
	}
	n := new(corev1.Node)
	if err := s.Client.Get(ctx, client.ObjectKey{Name: node}, n); err != nil {
		return nil, fmt.Errorf("drain: node %s: %w", node, err)
	}
	before := n.DeepCopy()
	if schedulable {
		n.Spec.Unschedulable = false
	}
	for name, value := range annotations {
		metav1.SetMetaDataAnnotation(&n.ObjectMeta, name, value)
	}
	if equality.Semantic.DeepEqual(before, n) {
		return n, nil
	}
	if err := s.Client.Patch(ctx, n, client.MergeFrom(before)); err != nil {
		return nil, fmt.Errorf("drain: node %s: %w", node, err)
	}
	return n, nil
}

// stays reports whether a drain leaves a pod on its node: one of a DaemonSet, whose
// controller would put it back at once, and a static pod, whose object is a mirror that
// the node writes again.
func stays(p *corev1.Pod) bool {
	if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOf(p)
	return owner != nil && owner.Kind == "DaemonSet" && strings.HasPrefix(owner.APIVersion, "apps/")
}

// evict evicts a pod through the API, which checks the disruption budgets. reason is the API's
// refusal; "" when the pod is evicted, being deleted or gone.
func (s *Service) evict(ctx context.Context, p *corev1.Pod) (reason string, err error) {
	if p.DeletionTimestamp != nil {
		return "", nil
	}
	err = s.Client.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{
		ObjectMeta:    metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name},
		DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(p.UID))},
	})
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // gone, or another pod of this name
		return "", nil
	case apierrors.IsTooManyRequests(err), severalBudgets(err):
		return refusal(err), nil
	}
	return "", err
}

// severalBudgets reports whether the API refused an eviction because several budgets select
// the pod. The API answers that with an internal error, not with 429.
func severalBudgets(err error) bool {
	return apierrors.IsInternalError(err) && strings.Contains(err.Error(), "more than one PodDisruptionBudget")
}

// refusal returns the message of an API that refuses an eviction, with the causes that name
// the budget.
func refusal(err error) string {
	text := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) && status.Status().Details != nil {
		for _, c := range status.Status().Details.Causes {
			text += " " + c.Message
		}
	}
	return text
}

func name(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

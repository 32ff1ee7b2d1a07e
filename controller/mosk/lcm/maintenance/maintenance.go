package maintenance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/drain"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/workload"
)

// ofAnnotation of a maintenance request or a ClusterWorkloadLock is the NAMESPACE/NAME of the
// Cluster or Machine that it is for: several clusters may share one API.
const ofAnnotation = "metalab.dev/of"

// The stages of a node's maintenance, in their order, as the history of an update names
// them.
const (
	StageClusterRequested   = "Requested cluster maintenance"
	StageClusterLocks       = "Cluster workload locks are inactive"
	StageNodeRequested      = "Node maintenance requested"
	StageNodeLocks          = "Node workload locks inactive"
	StageDrained            = "Kubernetes drained"
	StageUncordoned         = "Kubernetes uncordoned"
	StageNodeRequestGone    = "Node maintenance request removed"
	StageClusterRequestGone = "Cluster maintenance request removed"
)

// Workload returns the API in which a cluster's nodes are: see workload.APIs.
type Workload func(ctx context.Context, namespace, cluster string) (workload.API, error)

// Service takes nodes out of service and gives them back.
type Service struct {
	Client   client.Client // client of the management cluster
	Workload Workload
}

// Maintainer takes nodes out of service and gives them back: a Service.
type Maintainer interface {
	Enter(context.Context, Request) (Progress, error)
	Leave(context.Context, Request) (Progress, error)
	LeaveCluster(ctx context.Context, cluster client.ObjectKey, last string) (Progress, error)
}

// Request asks for the node of a machine.
type Request struct {
	Machine client.ObjectKey // key of the LCMMachine
	Reason  lcmv1.ClusterStateReason
	Scope   lcmv1.MaintenanceScope // "" is os
}

// Progress is how far a machine is.
type Progress struct {
	Done    bool
	Stage   string        // that is not reached yet; "" when Done
	Message string        // why not; "" while an application gets ready
	After   time.Duration // when to call again
}

// operation is one call for one machine.
type operation struct {
	Service
	Request
	machine  lcmv1.LCMMachine
	node     string
	workload client.Client
	own      bool // whether the API is the cluster's own
	exists   bool // whether the Node does; it is the machine's
}

// stage is a step of the protocol. reach does what it can now. It returns true when the stage
// is reached, else the reason, "" when there is none to report.
type stage struct {
	name  string
	reach func(*operation, context.Context) (reached bool, message string, err error)
}

var (
	entering = []stage{
		{StageClusterRequested, (*operation).requestCluster},
		{StageClusterLocks, (*operation).clusterLocks},
		{StageNodeRequested, (*operation).requestNode},
		{StageNodeLocks, (*operation).nodeLocks},
		{StageDrained, (*operation).drained},
	}
	leaving = []stage{
		{StageUncordoned, (*operation).uncordoned},
		{StageNodeRequestGone, (*operation).removeNodeRequest},
	}
)

// Enter takes the node of a machine out of service as far as it can now, and returns the stage
// that it waits for.
func (s Service) Enter(ctx context.Context, r Request) (Progress, error) {
	return s.walk(ctx, r, entering, lcmv1.CordonDraining, lcmv1.CordonDrained)
}

// Leave gives the node of a machine back. The request for the cluster stays: see
// LeaveCluster.
func (s Service) Leave(ctx context.Context, r Request) (Progress, error) {
	return s.walk(ctx, r, leaving, lcmv1.Uncordoning, "")
}

func (s Service) walk(ctx context.Context, r Request, stages []stage, during, after lcmv1.DrainState) (Progress, error) {
	r.Scope = cmp.Or(r.Scope, lcmv1.ScopeOS)
	v := &operation{Service: s, Request: r}
	if err := s.Client.Get(ctx, r.Machine, &v.machine); err != nil {
		return Progress{}, fmt.Errorf("maintenance: LCMMachine %s: %w", r.Machine, err)
	}
	if v.machine.Spec.ClusterName == "" {
		return Progress{}, fmt.Errorf("maintenance: LCMMachine %s has no spec.clusterName: it is in no cluster", r.Machine)
	}
	api, err := s.Workload(ctx, r.Machine.Namespace, v.machine.Spec.ClusterName)
	if err != nil {
		return Progress{}, fmt.Errorf("maintenance: API of cluster %s: %w", v.machine.Spec.ClusterName, err)
	}
	v.workload, v.own, v.node = api.Client, api.Own, item.Node(&v.machine)
	n, err := nodeNamed(ctx, api.Client, v.node)
	if err != nil {
		return Progress{}, fmt.Errorf("maintenance: %w", err)
	}
	var tie workload.Tie
	if v.exists = n != nil; v.exists {
		if tie, err = workload.TieOf(ctx, s.Client, n, r.Machine, api.Own); err != nil {
			return Progress{}, fmt.Errorf("maintenance: LCMMachine %s: %w", r.Machine, err)
		}
	}
	switch {
	case tie.Why == "" || after == "": // what was demanded before is given back
	case r.Reason == lcmv1.ReasonDelete && tie.Others: // this machine has none
		return Progress{Done: true}, v.report(ctx, after, "")
	default:
		return Progress{Stage: StageNodeRequested, Message: tie.Why, After: drain.Interval}, v.report(ctx, during, tie.Why)
	}
	for _, st := range stages {
		reached, message, err := st.reach(v, ctx)
		if err != nil {
			return Progress{}, fmt.Errorf("maintenance: %s of LCMMachine %s: %w", st.name, r.Machine, err)
		}
		if !reached {
			return Progress{Stage: st.name, Message: message, After: drain.Interval}, v.report(ctx, during, message)
		}
	}
	return Progress{Done: true}, v.report(ctx, after, "")
}

// nodeNamed returns a Node, nil when it does not exist.
func nodeNamed(ctx context.Context, c client.Client, name string) (*corev1.Node, error) {
	n := new(corev1.Node)
	if err := c.Get(ctx, client.ObjectKey{Name: name}, n); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return n, nil
}

// report writes how far the machine is to its status.
func (v *operation) report(ctx context.Context, state lcmv1.DrainState, message string) error {
	before := v.machine.DeepCopy()
	st := &v.machine.Status
	if st.KubernetesCordonDrain == state && st.KubernetesCordonDrainError == message {
		return nil
	}
	st.KubernetesCordonDrain, st.KubernetesCordonDrainError = state, message
	if err := v.Client.Status().Patch(ctx, &v.machine, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("maintenance: status of LCMMachine %s: %w", v.Machine, err)
	}
	return nil
}

// cluster is the namespace and name of the machine's cluster.
func (v *operation) cluster() client.ObjectKey {
	return client.ObjectKey{Namespace: v.Machine.Namespace, Name: v.machine.Spec.ClusterName}
}

// requestCluster creates the request for the cluster. It has the cluster's name, unless a request for
// another cluster of this name, in another namespace, has it: that must not hold this one.
func (v *operation) requestCluster(ctx context.Context) (bool, string, error) {
	all, err := clusterRequests(ctx, v.workload, v.cluster())
	if len(all) > 0 || err != nil {
		return err == nil, "", err
	}
	o := &lcmv1.ClusterMaintenanceRequest{ObjectMeta: of(v.cluster(), v.machine.Spec.ClusterName), Spec: lcmv1.ClusterMaintenanceRequestSpec{Scope: v.Scope}}
	err = v.workload.Create(ctx, o)
	if !apierrors.IsAlreadyExists(err) {
		return err == nil, "", err
	}
	if err := v.workload.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return false, "", client.IgnoreNotFound(err)
	}
	if o.Annotations[ofAnnotation] == "" {
		return false, waitsFor(o), nil
	}
	o = &lcmv1.ClusterMaintenanceRequest{ObjectMeta: of(v.cluster(), ""), Spec: lcmv1.ClusterMaintenanceRequestSpec{Scope: v.Scope}}
	o.GenerateName = v.machine.Spec.ClusterName + "-"
	err = v.workload.Create(ctx, o)
	return err == nil, "", err
}

// clusterRequests returns the requests for a cluster.
func clusterRequests(ctx context.Context, c client.Client, cluster client.ObjectKey) (out []lcmv1.ClusterMaintenanceRequest, err error) {
	var all lcmv1.ClusterMaintenanceRequestList
	if err := c.List(ctx, &all); err != nil {
		return nil, err
	}
	for _, o := range all.Items {
		if o.Annotations[ofAnnotation] == cluster.String() {
			out = append(out, o)
		}
	}
	return out, nil
}

// requestNode creates the requests for the node. In an API that clusters share, a Node that does not
// exist is nobody's: applications would act on a request for the Node that another machine registers.
func (v *operation) requestNode(ctx context.Context) (bool, string, error) {
	if !v.exists && !v.own {
		return true, "", nil
	}
	if v.Reason == lcmv1.ReasonDelete {
		reached, message, err := v.request(ctx, &lcmv1.NodeDeletionRequest{
			ObjectMeta: of(v.Machine, v.node), Spec: lcmv1.NodeDeletionRequestSpec{NodeName: v.node},
		})
		if !reached || err != nil {
			return false, message, err
		}
	}
	return v.request(ctx, &lcmv1.NodeMaintenanceRequest{
		ObjectMeta: of(v.Machine, v.node),
		Spec:       lcmv1.NodeMaintenanceRequestSpec{NodeName: v.node, Scope: v.Scope},
	})
}

// of returns the metadata of a request for a cluster or machine.
func of(owner client.ObjectKey, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Annotations: map[string]string{ofAnnotation: owner.String()}}
}

// request creates a request for the node, unless it exists. A request of somebody else blocks until it
// is removed. One for another machine is removed: that has lost the Node, which is this machine's.
func (v *operation) request(ctx context.Context, o client.Object) (bool, string, error) {
	err := v.workload.Get(ctx, client.ObjectKeyFromObject(o), o)
	if apierrors.IsNotFound(err) {
		err = v.workload.Create(ctx, o)
	}
	if err != nil {
		return false, "", err
	}
	switch other := o.GetAnnotations()[ofAnnotation]; {
	case other == v.Machine.String():
		return true, "", nil
	case other != "" && v.exists:
		uid := o.GetUID()
		return false, "", client.IgnoreNotFound(v.workload.Delete(ctx, o, client.Preconditions{UID: &uid}))
	}
	return false, waitsFor(o), nil
}

// waitsFor says that a request of somebody else blocks.
func waitsFor(o client.Object) string {
	return fmt.Sprintf("the request %s is of %s: it waits until that is removed", o.GetName(), cmp.Or(o.GetAnnotations()[ofAnnotation], "somebody else"))
}

// remove deletes a request, unless it is for another cluster or machine.
func remove(ctx context.Context, c client.Client, owner client.ObjectKey, o client.Object) error {
	err := c.Get(ctx, client.ObjectKeyFromObject(o), o)
	if err == nil && o.GetAnnotations()[ofAnnotation] == owner.String() {
		err = c.Delete(ctx, o)
	}
	return client.IgnoreNotFound(err)
}

// clusterLocks counts the locks of the machine's cluster: those of other clusters in the same API
// say so by ofAnnotation, and a lock without it is one of every cluster there.
func (v *operation) clusterLocks(ctx context.Context) (bool, string, error) {
	var list lcmv1.ClusterWorkloadLockList
	if err := v.workload.List(ctx, &list); err != nil {
		return false, "", err
	}
	var l locks
	for _, x := range list.Items {
		if of := x.Annotations[ofAnnotation]; of == "" || of == v.cluster().String() {
			l.add("ClusterWorkloadLock "+x.Name, x.Status)
		}
	}
	return !l.blocked, strings.Join(l.failed, "; "), nil
}

func (v *operation) nodeLocks(ctx context.Context) (bool, string, error) {
	var list lcmv1.NodeWorkloadLockList
	if err := v.workload.List(ctx, &list); err != nil {
		return false, "", err
	}
	var l locks
	for _, x := range list.Items {
		if x.Spec.NodeName == v.node {
			l.add("NodeWorkloadLock "+x.Name, x.Status)
		}
	}
	return !l.blocked, strings.Join(l.failed, "; "), nil
}

// locks summarizes the workload locks of a cluster or a node.
type locks struct {
	blocked bool
	failed  []string // the messages of those that have failed
}

// add adds a lock. One without a state is active: its application has not answered yet.
func (l *locks) add(name string, s lcmv1.WorkloadLockStatus) {
	l.blocked = l.blocked || s.State != lcmv1.LockInactive
	if s.State == lcmv1.LockFailed {
		l.failed = append(l.failed, name+" failed: "+cmp.Or(s.ErrorMessage, "it has no errorMessage"))
	}
}

// drained demands that the node is drained, and looks whether it is.
func (v *operation) drained(ctx context.Context) (bool, string, error) {
	return v.demand(ctx, "true")
}

// uncordoned demands that the node is schedulable again. The LCMClusterState is removed
// once it is.
func (v *operation) uncordoned(ctx context.Context) (bool, string, error) {
	state := &lcmv1.LCMClusterState{ObjectMeta: metav1.ObjectMeta{Namespace: v.Machine.Namespace, Name: StateName(v.Machine.Name)}}
	err := v.Client.Get(ctx, client.ObjectKeyFromObject(state), state)
	if apierrors.IsNotFound(err) && v.machine.Status.KubernetesCordonDrain == "" { // nothing was demanded
		return true, "", nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, "", err
	}
	reached, message, err := v.demand(ctx, "false")
	if !reached || err != nil {
		return false, message, err
	}
	return true, "", client.IgnoreNotFound(v.Client.Delete(ctx, state))
}

// demand sets the value of the machine's LCMClusterState, and looks whether the cluster has
// it.
func (v *operation) demand(ctx context.Context, value string) (bool, string, error) {
	var s lcmv1.LCMClusterState
	key := client.ObjectKey{Namespace: v.Machine.Namespace, Name: StateName(v.Machine.Name)}
	err := v.Client.Get(ctx, key, &s)
	if apierrors.IsNotFound(err) {
		s = lcmv1.LCMClusterState{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: key.Namespace, Name: key.Name,
				Annotations:     map[string]string{lcmv1.ClusterStateReasonAnnotation: string(v.Reason)},
				OwnerReferences: []metav1.OwnerReference{{APIVersion: lcmv1.GroupVersion.String(), Kind: "LCMMachine", Name: v.machine.Name, UID: v.machine.UID}},
			},
			Spec: lcmv1.LCMClusterStateSpec{ClusterName: v.machine.Spec.ClusterName, Type: lcmv1.StateCordonDrain, Arg: v.node, Value: value},
		}
		// The object exists already when the cache is late: the next call sees it.
		return false, "", ignoreExists(v.Client.Create(ctx, &s))
	}
	if err != nil {
		return false, "", err
	}
	if s.Spec.Type != lcmv1.StateCordonDrain || s.Spec.Arg != v.node || s.Spec.ClusterName != v.machine.Spec.ClusterName {
		return false, "", fmt.Errorf("LCMClusterState %s is of %s %s of cluster %s: delete it", key, s.Spec.Type, s.Spec.Arg, s.Spec.ClusterName)
	}
	if s.Spec.Value != value {
		before := s.DeepCopy()
		s.Spec.Value = value
		// The object may be gone already when the cache is late: the next call sees that.
		return false, "", client.IgnoreNotFound(v.Client.Patch(ctx, &s, client.MergeFrom(before)))
	}
	return s.Status.Value == value, s.Status.Message, nil
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (v *operation) removeNodeRequest(ctx context.Context) (bool, string, error) {
	return true, "", errors.Join(
		remove(ctx, v.workload, v.Machine, &lcmv1.NodeMaintenanceRequest{ObjectMeta: metav1.ObjectMeta{Name: v.node}}),
		remove(ctx, v.workload, v.Machine, &lcmv1.NodeDeletionRequest{ObjectMeta: metav1.ObjectMeta{Name: v.node}}),
	)
}

// LeaveCluster removes the ClusterMaintenanceRequest of a cluster after Leave is done for the
// machine last. It does nothing while another machine of the cluster is in maintenance. It
// ignores the status of last: the cache may still show the status from before Leave.
func (s Service) LeaveCluster(ctx context.Context, cluster client.ObjectKey, last string) (Progress, error) {
	api, err := s.Workload(ctx, cluster.Namespace, cluster.Name)
	if err != nil {
		return Progress{}, fmt.Errorf("maintenance: API of cluster %s: %w", cluster, err)
	}
	var machines lcmv1.LCMMachineList
	if err := s.Client.List(ctx, &machines, client.InNamespace(cluster.Namespace)); err != nil {
		return Progress{}, fmt.Errorf("maintenance: LCMMachines: %w", err)
	}
	for _, m := range machines.Items {
		if m.Name != last && m.Spec.ClusterName == cluster.Name && m.Status.KubernetesCordonDrain != "" {
			message := fmt.Sprintf("LCMMachine %s is %s", m.Name, m.Status.KubernetesCordonDrain)
			return Progress{Stage: StageClusterRequestGone, Message: message, After: drain.Interval}, nil
		}
	}
	all, err := clusterRequests(ctx, api.Client, cluster)
	for i := range all {
		err = errors.Join(err, client.IgnoreNotFound(api.Client.Delete(ctx, &all[i])))
	}
	if err != nil {
		return Progress{}, fmt.Errorf("maintenance: request of cluster %s: %w", cluster, err)
	}
	return Progress{Done: true}, nil
}

// prefix of the name of an LCMClusterState of the type cordon-drain.
const prefix = "cd-"

// StateName returns the name of the LCMClusterState that drains a machine's node: the
// machine's, in lower case, without its first characters where it is too long for a label.
func StateName(machine string) string {
	const most = 63
	name := strings.ToLower(machine)
	if over := len(prefix) + len(name) - most; over > 0 {
		name = strings.TrimLeft(name[over:], "-.")
	}
	return prefix + name
}

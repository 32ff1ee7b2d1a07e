package elemental

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/object"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// hosts reconciles ElementalHosts.
type hosts struct{ Config }

func (r *hosts) setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("elemental-host").
		For(&elementalv1.ElementalHost{}).
		Watches(&elementalv1.ElementalMachine{}, enqueue(func(_ context.Context, m *elementalv1.ElementalMachine) []client.ObjectKey {
			if m.Spec.HostRef == nil {
				return nil
			}
			return []client.ObjectKey{{Namespace: m.Namespace, Name: m.Spec.HostRef.Name}}
		})).
		WithOptions(r.Options()).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler for an ElementalHost.
func (r *hosts) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return queue.Reconcile(r.Enter, func() error {
		var h elementalv1.ElementalHost
		if err := r.Client.Get(ctx, req.NamespacedName, &h); err != nil {
			return wrap("host", queue.Deleted(err))
		}
		return wrap("host", r.reconcile(ctx, &h))
	})
}

func (r *hosts) reconcile(ctx context.Context, h *elementalv1.ElementalHost) error {
	before := h.DeepCopy()
	if !h.DeletionTimestamp.IsZero() {
		r.release(h)
		return object.Patch(ctx, r.Client, before, h)
	}
	controllerutil.AddFinalizer(h, elementalv1.Finalizer)
	if h.Spec.MachineRef != nil {
		var m elementalv1.ElementalMachine
		err := r.Client.Get(ctx, client.ObjectKey{Namespace: h.Namespace, Name: h.Spec.MachineRef.Name}, &m)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		if !apierrors.IsNotFound(err) {
			if err := r.checkLink(ctx, h, &m); err != nil {
				return err
			}
			r.followMachine(h, &m)
		}
	}
	for _, row := range labelled {
		// The agent's own report may have a severity: that is no reason to write.
		if h.Labels[row.label] == elementalv1.True && !condition.IsTrue(h, row.condition) {
			condition.Set(h, condition.True(row.condition), r.Wall.Now())
		}
	}
	return object.Patch(ctx, r.Client, before, h)
}

// labelled are the conditions that hold for a host with a label. A host that is installed has
// registered.
var labelled = []struct {
	label     string
	condition capi.ConditionType
}{
	{elementalv1.InstalledLabel, elementalv1.RegistrationReady},
	{elementalv1.InstalledLabel, elementalv1.InstallationReady},
	{elementalv1.BootstrappedLabel, elementalv1.BootstrapReady},
}

// release lets a deleted host go once its server has reset itself. Until then it waits, without
// end: a user who knows that there is no server any more sets the label reset.
func (r *hosts) release(h *elementalv1.ElementalHost) {
	if h.Labels[elementalv1.ResetLabel] == elementalv1.True {
		controllerutil.RemoveFinalizer(h, elementalv1.Finalizer)
		return
	}
	if h.Labels[elementalv1.NeedsResetLabel] == elementalv1.True && condition.Get(h, elementalv1.ResetReady) != nil {
		return // the condition is the agent's from here on
	}
	metav1.SetMetaDataLabel(&h.ObjectMeta, elementalv1.NeedsResetLabel, elementalv1.True)
	condition.Set(h, condition.False(elementalv1.ResetReady, elementalv1.WaitingForResetReason, capi.ConditionSeverityInfo, "Waiting for remote host to reset"), r.Wall.Now())
}

// checkLink marks a host for the reset whose machine has another host: a controller that lost its
// lease linked it too late. The server may have bootstrapped as that machine already.
func (r *hosts) checkLink(ctx context.Context, h *elementalv1.ElementalHost, m *elementalv1.ElementalMachine) error {
	other := func() bool { return m.Spec.HostRef != nil && m.Spec.HostRef.Name != h.Name }
	if !other() {
		return nil
	}
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(m), m) // the cache may be late
	if err == nil && other() {
		metav1.SetMetaDataLabel(&h.ObjectMeta, elementalv1.NeedsResetLabel, elementalv1.True)
	}
	return client.IgnoreNotFound(err)
}

// followMachine copies the version of the operating system from the machine that has the host.
// The agent of a host that is part of a cluster acts on it only when the label in-place-update
// is pending: whoever sets it has drained the node.
func (r *hosts) followMachine(h *elementalv1.ElementalHost, m *elementalv1.ElementalMachine) {
	bootstrapped := h.Labels[elementalv1.BootstrappedLabel] == elementalv1.True
	pending := h.Labels[elementalv1.InPlaceUpdateLabel] == elementalv1.InPlaceUpdatePending
	ignored := condition.Get(h, elementalv1.OSVersionReady)
	changed := !equality.Semantic.DeepEqual(h.Spec.OSVersionManagement, m.Spec.OSVersionManagement)
	switch {
	case changed && bootstrapped && !pending:
		condition.Set(h, condition.False(elementalv1.OSVersionReady, elementalv1.InPlaceUpdateNotPendingReason, capi.ConditionSeverityWarning,
			fmt.Sprintf("ElementalMachine %s OSVersionManagement mutated, but no in-place-upgrade is pending. Mutation will be ignored.", m.Name)), r.Wall.Now())
	case changed, pending && ignored != nil && ignored.Reason == elementalv1.InPlaceUpdateNotPendingReason:
		condition.Set(h, condition.False(elementalv1.OSVersionReady, elementalv1.WaitingForOSReconcileReason, capi.ConditionSeverityInfo,
			fmt.Sprintf("ElementalMachine %s OSVersionManagement mutated", m.Name)), r.Wall.Now())
	}
	h.Spec.OSVersionManagement = m.Spec.OSVersionManagement
}

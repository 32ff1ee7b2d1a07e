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

	elemental "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/elemental/object"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// hosts reconciles ElementalHosts.
type hosts struct{ Config }

func (r *hosts) setup(mgr manager.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).
		Named("elemental-host").
		For(&elemental.ElementalHost{}).
		Watches(&elemental.ElementalMachine{}, enqueue(func(_ context.Context, m *elemental.ElementalMachine) []client.ObjectKey {
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
		var h elemental.ElementalHost
		if err := r.Client.Get(ctx, req.NamespacedName, &h); err != nil {
			return wrap("host", queue.Deleted(err))
		}
		return wrap("host", r.reconcile(ctx, &h))
	})
}

func (r *hosts) reconcile(ctx context.Context, h *elemental.ElementalHost) error {
	before := h.DeepCopy()
	if !h.DeletionTimestamp.IsZero() {
		r.release(h)
		return object.Patch(ctx, r.Client, before, h)
	}
	controllerutil.AddFinalizer(h, elemental.Finalizer)
	if h.Spec.MachineRef != nil {
		var m elemental.ElementalMachine
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
	for _, of := range labelled {
		// The agent's own report may have a severity: that is no reason to write.
		if h.Labels[of.label] == elemental.True && !condition.IsTrue(h, of.condition) {
			condition.Set(h, condition.True(of.condition), r.Wall.Now())
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
	{elemental.InstalledLabel, elemental.RegistrationReady},
	{elemental.InstalledLabel, elemental.InstallationReady},
	{elemental.BootstrappedLabel, elemental.BootstrapReady},
}

// release lets a deleted host go once its server has reset itself. Until then it waits, without
// end: a user who knows that there is no server any more sets the label reset.
func (r *hosts) release(h *elemental.ElementalHost) {
	if h.Labels[elemental.ResetLabel] == elemental.True {
		controllerutil.RemoveFinalizer(h, elemental.Finalizer)
		return
	}
	if h.Labels[elemental.NeedsResetLabel] == elemental.True && condition.Get(h, elemental.ResetReady) != nil {
		return // the condition is the agent's from here on
	}
	metav1.SetMetaDataLabel(&h.ObjectMeta, elemental.NeedsResetLabel, elemental.True)
	condition.Set(h, condition.False(elemental.ResetReady, elemental.WaitingForResetReason, capi.ConditionSeverityInfo, "Waiting for remote host to reset"), r.Wall.Now())
}

// checkLink marks a host for the reset whose machine has another host: a controller that lost its
// lease linked it too late. The server may have bootstrapped as that machine already.
func (r *hosts) checkLink(ctx context.Context, h *elemental.ElementalHost, m *elemental.ElementalMachine) error {
	other := func() bool { return m.Spec.HostRef != nil && m.Spec.HostRef.Name != h.Name }
	if !other() {
		return nil
	}
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(m), m) // the cache may be late
	if err == nil && other() {
		metav1.SetMetaDataLabel(&h.ObjectMeta, elemental.NeedsResetLabel, elemental.True)
	}
	return client.IgnoreNotFound(err)
}

// followMachine copies the version of the operating system from the machine that has the host.
// The agent of a host that is part of a cluster acts on it only when the label in-place-update
// is pending: whoever sets it has drained the node.
func (r *hosts) followMachine(h *elemental.ElementalHost, m *elemental.ElementalMachine) {
	bootstrapped := h.Labels[elemental.BootstrappedLabel] == elemental.True
	pending := h.Labels[elemental.InPlaceUpdateLabel] == elemental.InPlaceUpdatePending
	ignored := condition.Get(h, elemental.OSVersionReady)
	changed := !equality.Semantic.DeepEqual(h.Spec.OSVersionManagement, m.Spec.OSVersionManagement)
	switch {
	case changed && bootstrapped && !pending:
		condition.Set(h, condition.False(elemental.OSVersionReady, elemental.InPlaceUpdateNotPendingReason, capi.ConditionSeverityWarning,
			fmt.Sprintf("ElementalMachine %s OSVersionManagement mutated, but no in-place-upgrade is pending. Mutation will be ignored.", m.Name)), r.Wall.Now())
	case changed, pending && ignored != nil && ignored.Reason == elemental.InPlaceUpdateNotPendingReason:
		condition.Set(h, condition.False(elemental.OSVersionReady, elemental.WaitingForOSReconcileReason, capi.ConditionSeverityInfo,
			fmt.Sprintf("ElementalMachine %s OSVersionManagement mutated", m.Name)), r.Wall.Now())
	}
	h.Spec.OSVersionManagement = m.Spec.OSVersionManagement
}

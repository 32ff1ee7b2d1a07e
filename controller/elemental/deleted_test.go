package elemental

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// An error would be retried without end.
func TestDeletedObjectsNeedNoReconcile(t *testing.T) {
	c := start(t).controllers()
	for name, by := range map[string]reconcile.Reconciler{"registration": c.registrations, "cluster": c.clusters, "machine": c.machines, "host": c.hosts} {
		req := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "lab", Name: "deleted"}}
		if got, err := by.Reconcile(t.Context(), req); err != nil || got != (ctrl.Result{}) {
			t.Errorf("Reconcile() of a deleted %s = %+v, %v, want nothing", name, got, err)
		}
	}
}

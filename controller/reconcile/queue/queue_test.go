package queue

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestReconcileAfter(t *testing.T) {
	resource := schema.GroupResource{Resource: "lcmclusters"}
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		after time.Duration
		err   error
		want  reconcile.Result
		fails bool
	}{
		"done":         {},
		"after a time": {after: time.Minute, want: reconcile.Result{RequeueAfter: time.Minute}},
		"failed":       {after: time.Minute, err: broken, fails: true},
		"deleted":      {after: time.Minute, err: fmt.Errorf("cluster: %w", Deleted(apierrors.NewNotFound(resource, "c")))},
		// No watch reports the end of this, such as that of a namespace that does not exist yet.
		"another object is not found": {after: time.Minute, err: fmt.Errorf("secret: %w", apierrors.NewNotFound(resource, "c")), fails: true},
		"not read":                    {err: Deleted(broken), fails: true},
		// The event of the other change may be dropped by a predicate, as one of the status is.
		"conflict":                {err: fmt.Errorf("items: %w", apierrors.NewConflict(resource, "c", broken)), want: reconcile.Result{RequeueAfter: ConflictWait}},
		"conflict of one of many": {err: errors.Join(apierrors.NewConflict(resource, "c", broken), broken), want: reconcile.Result{RequeueAfter: ConflictWait}},
	} {
		t.Run(name, func(t *testing.T) {
			inside := 0
			got, err := ReconcileAfter(func() func() { inside++; return func() { inside-- } }, func() (time.Duration, error) {
				if inside != 1 {
					t.Error("the reconcile runs outside of enter and leave")
				}
				return tt.after, tt.err
			})
			if got != tt.want || (err != nil) != tt.fails || inside != 0 {
				t.Errorf("ReconcileAfter() = %+v, %v with %d inside; want %+v, error: %t", got, err, inside, tt.want, tt.fails)
			}
		})
	}
}

func TestReconcileOfAConflictIsRepeated(t *testing.T) {
	got, err := Reconcile(nil, func() error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "lcmclusters"}, "c", errors.New("changed"))
	})
	if err != nil || got.RequeueAfter != ConflictWait {
		t.Errorf("Reconcile() = %+v, %v; want it again after %s", got, err, ConflictWait)
	}
}

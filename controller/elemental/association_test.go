package elemental

import (
	"context"
	"strings"
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
)

// A host that is linked is not written again while the cache has it as it was before.
func TestLinkedHostIsLeftAloneWhileTheCacheIsLate(t *testing.T) {
	l := start(t, append(ownedMachine("m"), readyCluster(), installed("h"))...)
	old := l.host("h")
	cached := interceptor.NewClient(l.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if h, ok := o.(*elementalv1.ElementalHost); ok {
				old.DeepCopyInto(h)
				return nil
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if hosts, ok := list.(*elementalv1.ElementalHostList); ok {
				hosts.Items = []elementalv1.ElementalHost{*old.DeepCopy()}
				return nil
			}
			return c.List(ctx, list, opts...)
		},
	})
	c := l.controllersOf(cached)
	reconcile := func() {
		_, err := c.machines.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: ns, Name: "m"}})
		l.must(err)
	}
	reconcile()
	if got := l.links(); got != "h->m m->h" {
		t.Fatalf("links %q, want both ways", got)
	}
	before := len(l.writes)
	reconcile()
	for _, w := range l.writes[before:] {
		if strings.Contains(w, "ElementalHost") {
			t.Errorf("%s, though it is linked", w)
		}
	}
}

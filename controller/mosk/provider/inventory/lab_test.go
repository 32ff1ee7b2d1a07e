package inventory

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

const ns = "lab"

// lab is an API with objects and the provider's controllers, whose writes it counts.
type lab struct {
	t testing.TB
	client.Client
	writes []string
}

func start(t testing.TB, objects ...client.Object) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{kaasv1.AddToScheme, clusterv1.AddToScheme, metal3.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range objects {
		o.SetNamespace(ns)
		o.SetUID(types.UID("uid-of-" + o.GetName()))
		o.SetGeneration(1)
	}
	l := &lab{t: t}
	l.Client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&kaasv1.BareMetalHostInventory{}, &kaasv1.BareMetalHostCredential{}, &metal3.BareMetalHost{}).Build()
	return l
}

// settle runs the controllers, as after a restart, until they write nothing.
func (l *lab) settle() {
	l.t.Helper()
	count := func(verb string, o client.Object) {
		l.writes = append(l.writes, fmt.Sprintf("%s %T %s", verb, o, o.GetName()))
	}
	c := interceptor.NewClient(l.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			count("create", o)
			o.SetUID(types.UID("uid-of-" + o.GetName()))
			return c.Create(ctx, o, opts...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			count("delete", o)
			return c.Delete(ctx, o) // the fake client knows no preconditions
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			count("patch", o)
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			count("patch status of", o)
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	for range 20 {
		r, err := New(Config{Client: c, Reader: l, Work: queue.Work{Clock: clock.RealClock{}}})
		l.must(err)
		before := len(l.writes)
		var inventories kaasv1.BareMetalHostInventoryList
		var accounts kaasv1.BareMetalHostCredentialList
		l.must(l.List(l.t.Context(), &accounts))
		for i := range accounts.Items {
			_, err := r.credentials.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&accounts.Items[i])})
			l.must(err)
		}
		l.must(l.List(l.t.Context(), &inventories))
		for i := range inventories.Items {
			_, err := r.servers.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&inventories.Items[i])})
			l.must(err)
		}
		if len(l.writes) == before {
			return
		}
	}
	l.t.Fatalf("the provider writes without end: %q", l.writes)
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// get reads an object of the namespace.
func get[T client.Object](l *lab, name string, o T) T {
	l.t.Helper()
	l.must(l.Get(l.t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o))
	return o
}

func (l *lab) host(name string) *metal3.BareMetalHost { return get(l, name, new(metal3.BareMetalHost)) }

func (l *lab) inventory(name string) *kaasv1.BareMetalHostInventory {
	return get(l, name, new(kaasv1.BareMetalHostInventory))
}

func (l *lab) credential(name string) *kaasv1.BareMetalHostCredential {
	return get(l, name, new(kaasv1.BareMetalHostCredential))
}

// gone asserts that an object does not exist.
func (l *lab) gone(name string, o client.Object) {
	l.t.Helper()
	if err := l.Get(l.t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o); !apierrors.IsNotFound(err) {
		l.t.Errorf("Get(%T %s) = %v, want not found", o, name, err)
	}
}

// edit changes an object as a user does.
func edit[T client.Object](l *lab, o T, change func(T)) {
	l.t.Helper()
	change(o)
	l.must(l.Update(l.t.Context(), o))
}

// remove deletes an object as a user does.
func (l *lab) remove(o client.Object) {
	l.t.Helper()
	l.must(l.Delete(l.t.Context(), o))
}

func credential(name string) *kaasv1.BareMetalHostCredential {
	c := &kaasv1.BareMetalHostCredential{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ProviderLabel: "baremetal"}}}
	c.Spec = kaasv1.BareMetalHostCredentialSpec{Username: "admin", Password: kaasv1.CredentialPassword{Value: "the-password"}}
	return c
}

func server(name string) *kaasv1.BareMetalHostInventory {
	i := &kaasv1.BareMetalHostInventory{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{clusterv1.ProviderLabel: "baremetal", "rack": "a"}}}
	i.Spec = kaasv1.BareMetalHostInventorySpec{
		BootMACAddress: "52:54:00:00:00:01", BootMode: kaasv1.InventoryLegacy,
		BMC: kaasv1.InventoryBMC{Address: "redfish://192.0.2.1/redfish/v1/Systems/1", CredentialsName: "account"},
	}
	return i
}

// contains asserts that a text has all of parts.
func contains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not contain %q", text, part)
		}
	}
}

func equal(a, b any) bool { return equality.Semantic.DeepEqual(a, b) }

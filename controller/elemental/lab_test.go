package elemental

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	elementalv1 "github.com/metalab-dev/metalab/controller/api/elemental/v1beta1"
	"github.com/metalab-dev/metalab/controller/elemental/condition"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

const ns = "vms"

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// lab is an API with objects, and the controllers over it, which start anew for each settling.
type lab struct {
	t testing.TB
	client.WithWatch
	writes []string
	// refuse, when set, returns the error of a write.
	refuse func(verb string, o client.Object) error
	seeds  Seeds
}

var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	if err := errors.Join(elementalv1.AddToScheme(s), capi.AddToScheme(s), corev1.AddToScheme(s), metal3.AddToScheme(s)); err != nil {
		panic(err)
	}
	return s
}()

func start(t testing.TB, objects ...client.Object) *lab {
	t.Helper()
	for _, o := range objects {
		if _, isNode := o.(*corev1.Node); !isNode {
			o.SetNamespace(ns)
		}
		o.SetUID(types.UID(fmt.Sprintf("uid-of-%T-%s", o, o.GetName())))
	}
	l := &lab{t: t}
	inner := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(
		&elementalv1.ElementalRegistration{}, &elementalv1.ElementalHost{}, &elementalv1.ElementalMachine{}, &elementalv1.ElementalCluster{}, &capi.Cluster{}, &capi.Machine{},
	).Build()
	write := func(verb string, o client.Object) error {
		if l.refuse != nil {
			if err := l.refuse(verb, o); err != nil {
				return err
			}
		}
		l.writes = append(l.writes, fmt.Sprintf("%s %T %s", verb, o, o.GetName()))
		return nil
	}
	l.WithWatch = interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return errors.Join(write("create", o), c.Create(ctx, o, opts...))
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if err := write("patch", o); err != nil {
				return err
			}
			return c.Patch(ctx, o, p, opts...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := write("patch status of", o); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		},
	})
	return l
}

// controllers returns controllers as a process that starts has them.
func (l *lab) controllers() *Controllers {
	l.t.Helper()
	return l.controllersOf(l)
}

// controllersOf returns controllers that read a cache.
func (l *lab) controllersOf(cached client.Client) *Controllers {
	l.t.Helper()
	c, err := New(Config{
		Client: cached, Reader: l, Local: l, Wall: clocktesting.NewFakePassiveClock(now), URL: "https://192.0.2.1", CA: "the CA", Seeds: l.seeds,
		Work: queue.Work{Clock: clock.RealClock{}},
	})
	l.must(err)
	c.machines.init()
	return c
}

// settle runs the controllers until they write nothing.
func (l *lab) settle() {
	l.t.Helper()
	for range 20 {
		before := len(l.writes)
		l.pass(l.controllers())
		if len(l.writes) == before {
			return
		}
	}
	l.t.Fatalf("the controllers write without end: %q", l.writes)
}

// pass reconciles each object once.
func (l *lab) pass(c *Controllers) {
	l.t.Helper()
	for _, kind := range []struct {
		list client.ObjectList
		by   reconcile.Reconciler
	}{
		{&elementalv1.ElementalRegistrationList{}, c.registrations}, {&elementalv1.ElementalClusterList{}, c.clusters},
		{&elementalv1.ElementalMachineList{}, c.machines}, {&elementalv1.ElementalHostList{}, c.hosts},
	} {
		l.must(l.List(l.t.Context(), kind.list))
		for _, o := range items(kind.list) {
			_, err := kind.by.Reconcile(l.t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o)})
			l.must(err)
		}
	}
}

func items(list client.ObjectList) (out []client.Object) {
	switch list := list.(type) {
	case *elementalv1.ElementalRegistrationList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *elementalv1.ElementalClusterList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *elementalv1.ElementalMachineList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	case *elementalv1.ElementalHostList:
		for i := range list.Items {
			out = append(out, &list.Items[i])
		}
	}
	return out
}

func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func get[T client.Object](l *lab, name string, o T) T {
	l.t.Helper()
	key := client.ObjectKey{Namespace: ns, Name: name}
	if _, isNode := client.Object(o).(*corev1.Node); isNode {
		key.Namespace = ""
	}
	l.must(l.Get(l.t.Context(), key, o))
	return o
}

func (l *lab) host(name string) *elementalv1.ElementalHost {
	l.t.Helper()
	return get(l, name, new(elementalv1.ElementalHost))
}

func (l *lab) machine(name string) *elementalv1.ElementalMachine {
	l.t.Helper()
	return get(l, name, new(elementalv1.ElementalMachine))
}

// edit changes an object as a user does.
func edit[T client.Object](l *lab, o T, change func(T)) {
	l.t.Helper()
	change(o)
	l.must(l.Update(l.t.Context(), o))
}

// gone asserts that an object does not exist.
func (l *lab) gone(name string, o client.Object) {
	l.t.Helper()
	if err := l.Get(l.t.Context(), client.ObjectKey{Namespace: ns, Name: name}, o); !apierrors.IsNotFound(err) {
		l.t.Errorf("Get(%T %s) = %v, want not found", o, name, err)
	}
}

// is asserts a condition: "False Reason Severity", or "True", or "" for none.
func is(t testing.TB, o condition.Object, conditionType capi.ConditionType, want string) {
	t.Helper()
	got := ""
	if c := condition.Get(o, conditionType); c != nil {
		got = string(c.Status)
		if c.Status == corev1.ConditionFalse {
			got += " " + c.Reason + " " + string(c.Severity)
		}
	}
	if got != want {
		t.Errorf("condition %s of %s is %q, want %q", conditionType, o.(client.Object).GetName(), got, want)
	}
}

// installed is a host that is installed.
func installed(name string) *elementalv1.ElementalHost {
	return &elementalv1.ElementalHost{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{elementalv1.InstalledLabel: elementalv1.True, "rack": "a"}, Finalizers: []string{elementalv1.Finalizer}}}
}

// ownedMachine is an ElementalMachine of the cluster c, with its Machine, which has bootstrap
// data.
func ownedMachine(name string) []client.Object {
	m := &elementalv1.ElementalMachine{ObjectMeta: metav1.ObjectMeta{
		Name: name, Labels: map[string]string{capi.ClusterNameLabel: "c"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: capi.GroupVersion.String(), Kind: "Machine", Name: "of-" + name, UID: "u"}},
	}}
	owner := &capi.Machine{ObjectMeta: metav1.ObjectMeta{Name: "of-" + name}}
	owner.Spec.Bootstrap.DataSecretName = ptr.To("data-of-" + name)
	return []client.Object{m, owner}
}

// readyCluster is a Cluster with infrastructure.
func readyCluster() *capi.Cluster {
	c := &capi.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}
	c.Status.InfrastructureReady = true
	return c
}

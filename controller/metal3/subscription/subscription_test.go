package subscription

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// bench is a host with a fake BMC, and the reconciler of its subscriptions.
type bench struct {
	t    *testing.T
	kube client.Client
	bmc  *bmctest.Fake
	r    *Reconciler
	lost int   // how many of the next status updates fail
	with error // nil means one that is no conflict
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), metal3.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, bmc: &bmctest.Fake{}}
	b.kube = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithStatusSubresource(&metal3.BMCEventSubscription{}).Build(), interceptor.Funcs{
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if b.lost > 0 {
				b.lost--
				if b.with != nil {
					return b.with
				}
				return errors.New("the connection is cut")
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	})
	connect := func(context.Context, *metal3.BareMetalHost) (bmc.Client, error) { return b.bmc, nil }
	var err error
	if b.r, err = New(Config{Client: b.kube, Reader: b.kube, Connect: connect, Clock: clock.RealClock{}}); err != nil {
		t.Fatal(err)
	}
	return b
}

func host() *metal3.BareMetalHost {
	h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Name: "node-0", Namespace: "lab"}}
	h.Status.GoodCredentials.Reference = &corev1.SecretReference{Name: "bmc"}
	return h
}

func wanted(name string, change ...func(*metal3.BMCEventSubscription)) *metal3.BMCEventSubscription {
	s := &metal3.BMCEventSubscription{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "lab", UID: types.UID(name)},
		Spec:       metal3.BMCEventSubscriptionSpec{HostName: "node-0", Destination: "https://events.example/", Context: "rack 1"},
	}
	for _, c := range change {
		c(s)
	}
	return s
}

func withHeaders(s *metal3.BMCEventSubscription) {
	s.Spec.HTTPHeadersRef = &corev1.SecretReference{Name: "headers", Namespace: "lab"}
}

// reconcile runs one reconcile and returns the object, nil when it no longer exists.
func (b *bench) reconcile(name string) (*metal3.BMCEventSubscription, error) {
	b.t.Helper()
	key := client.ObjectKey{Namespace: "lab", Name: name}
	_, err := b.r.Reconcile(b.t.Context(), ctrl.Request{NamespacedName: key})
	var s metal3.BMCEventSubscription
	if e := b.kube.Get(b.t.Context(), key, &s); apierrors.IsNotFound(e) {
		return nil, err
	} else if e != nil {
		b.t.Fatal(e)
	}
	return &s, err
}

// mustReconcile is reconcile, and fails the test when it returns an error.
func (b *bench) mustReconcile(name string) *metal3.BMCEventSubscription {
	b.t.Helper()
	s, err := b.reconcile(name)
	if err != nil {
		b.t.Errorf("Reconcile(%s) error = %v", name, err)
	}
	return s
}

func (b *bench) delete(name string) {
	b.t.Helper()
	if err := b.kube.Delete(b.t.Context(), wanted(name)); err != nil {
		b.t.Fatal(err)
	}
}

// The object refers to its host by spec.hostName and has a name of its own.
func TestSubscriptionIsCreatedOnceAndDeletedWithTheObject(t *testing.T) { // B-02, B-03, B-245
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "headers", Namespace: "lab"}, Data: map[string][]byte{"X-B": []byte("2"), "X-A": []byte("1")}}
	b := newBench(t, host(), wanted("a", withHeaders), secret)
	for range 3 {
		s := b.mustReconcile("a")
		if s.Status != (metal3.BMCEventSubscriptionStatus{SubscriptionID: "1"}) || len(s.Finalizers) != 1 || s.Finalizers[0] != metal3.BMCEventSubscriptionFinalizer {
			t.Errorf("status %+v, finalizers %v, want subscription 1 without an error", s.Status, s.Finalizers)
		}
	}
	want := []bmc.Subscription{{ID: "1", Destination: "https://events.example/", Context: "rack 1",
		Headers: []bmc.Header{{Name: "X-A", Value: "1"}, {Name: "X-B", Value: "2"}}}}
	if diff := cmp.Diff(want, b.bmc.Subscribed()); diff != "" {
		t.Errorf("the BMC's subscriptions (-want +got):\n%s", diff)
	}
	b.delete("a")
	if s := b.mustReconcile("a"); s != nil {
		t.Errorf("the object still exists: %+v", s)
	}
	if got := b.bmc.Subscribed(); len(got) > 0 {
		t.Errorf("the BMC still has %+v", got)
	}
}

// A controller that is killed before it has written the ID to the status finds its
// subscription again, and does not take an equal one of another object.
func TestUnrecordedSubscriptionIsAdopted(t *testing.T) {
	b := newBench(t, host(), wanted("a"), wanted("b"))
	b.mustReconcile("a")
	b.lost = 1
	if _, err := b.reconcile("b"); err == nil {
		t.Error("Reconcile(b) error = nil, want that of the lost write")
	}
	if s := b.mustReconcile("b"); s.Status.SubscriptionID != "2" {
		t.Errorf("status of b: %+v, want subscription 2", s.Status)
	}
	if got := b.bmc.Subscribed(); len(got) != 2 {
		t.Errorf("the BMC has %+v, want two", got)
	}
	b.lost = 1
	b.delete("b")
	b.mustReconcile("b")
	if got := b.bmc.Subscribed(); len(got) != 1 || got[0].ID != "1" {
		t.Errorf("the BMC has %+v, want only that of a", got)
	}
}

// The other change may be one that reconciles nothing, such as a label.
func TestConflictIsReconciledAgain(t *testing.T) {
	b := newBench(t, host(), wanted("a"))
	b.lost, b.with = 1, apierrors.NewConflict(schema.GroupResource{Resource: "bmceventsubscriptions"}, "a", errors.New("changed"))
	result, err := b.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "lab", Name: "a"}})
	for range 2 { // the first adds the finalizer, the second creates
		if err == nil && result.RequeueAfter == 0 {
			result, err = b.r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "lab", Name: "a"}})
		}
	}
	if err != nil || result.RequeueAfter != queue.ConflictWait {
		t.Errorf("Reconcile() = %+v, %v; want it again after %s", result, err, queue.ConflictWait)
	}
	if s := b.mustReconcile("a"); s.Status.SubscriptionID == "" {
		t.Errorf("status %+v after the next reconcile", s.Status)
	}
}

// A subscription whose ID never reached the status is deleted with its object.
func TestUnrecordedSubscriptionIsDeletedFromTheBMC(t *testing.T) {
	b := newBench(t, host(), wanted("a"))
	b.lost = 1
	if _, err := b.reconcile("a"); err == nil {
		t.Error("Reconcile() error = nil, want that of the lost write")
	}
	b.delete("a")
	if s := b.mustReconcile("a"); s != nil || len(b.bmc.Subscribed()) > 0 {
		t.Errorf("left: %+v, on the BMC %+v", s, b.bmc.Subscribed())
	}
}

func TestStatusShowsWhyTheSubscriptionCannotBeCreated(t *testing.T) { // B-245
	unregistered, detached := host(), host()
	unregistered.Status.GoodCredentials.Reference = nil
	detached.Annotations = map[string]string{metal3.DetachedAnnotation: ""}
	for _, tt := range []struct {
		name    string
		objects []client.Object
		broken  error
		want    string
		again   bool // Reconcile returns an error, so that it is retried
	}{
		{"no host", []client.Object{wanted("a")}, nil, `baremetal host "node-0" does not exist`, false},
		{"a host that is not registered", []client.Object{wanted("a"), unregistered}, nil, `failed to create a subscription: baremetal host "node-0" is not registered`, false},
		{"a host that is detached", []client.Object{wanted("a"), detached}, nil, `failed to create a subscription: baremetal host "node-0" is detached`, false},
		{"no secret", []client.Object{wanted("a", withHeaders), host()}, nil, "failed to retrieve HTTP headers secret", false},
		{"a BMC that does not answer", []client.Object{wanted("a"), host()}, bmc.ErrUnreachable, "failed to create a subscription: the BMC does not answer", true},
		{"a BMC without subscriptions", []client.Object{wanted("a"), host()}, bmc.ErrUnsupported, "failed to create a subscription: the BMC cannot do that", false},
	} {
		b := newBench(t, tt.objects...)
		b.bmc.Fail(bmctest.Subscribe, tt.broken)
		s, err := b.reconcile("a")
		if s.Status != (metal3.BMCEventSubscriptionStatus{Error: tt.want}) || (err != nil) != tt.again {
			t.Errorf("%s: status %+v, error %v; want %q, tried again: %v", tt.name, s.Status, err, tt.want, tt.again)
		}
		if got := b.bmc.Subscribed(); len(got) > 0 {
			t.Errorf("%s: the BMC has %+v", tt.name, got)
		}
		b.bmc.Plug()
	}
}

// No watch reports that a BMC accepts its credentials again.
func TestRefusedCredentialsAreTriedAgain(t *testing.T) {
	b := newBench(t, host(), wanted("a"))
	b.bmc.Fail(bmctest.Subscribe, bmc.ErrUnauthorized)
	req := ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "lab", Name: "a"}}
	for range 2 {
		res, err := b.r.Reconcile(t.Context(), req)
		if err != nil || res.RequeueAfter != refusedWait {
			t.Errorf("Reconcile() with refused credentials = %+v, %v, want it again after %s", res, err, refusedWait)
		}
	}
	b.bmc.Plug()
	if s := b.mustReconcile("a"); s.Status != (metal3.BMCEventSubscriptionStatus{SubscriptionID: "1"}) {
		t.Errorf("status %+v after the BMC accepts the credentials, want the subscription and no error", s.Status)
	}
}

func TestDeletionIsRetriedUntilTheBMCAnswers(t *testing.T) {
	b := newBench(t, host(), wanted("a"))
	b.mustReconcile("a")
	b.bmc.Fail(bmctest.Unsubscribe, bmc.ErrUnreachable)
	b.delete("a")
	s, err := b.reconcile("a")
	if err == nil || s == nil || s.Status.SubscriptionID != "1" || !strings.HasPrefix(s.Status.Error, "failed to delete a subscription: ") {
		t.Errorf("Reconcile() error = %v, object %+v, want it to exist with an error", err, s)
	}
	if err := b.kube.Delete(t.Context(), host()); err != nil {
		t.Fatal(err)
	}
	if s := b.mustReconcile("a"); s != nil {
		t.Errorf("the object still exists after its host was deleted: %+v", s)
	}
}

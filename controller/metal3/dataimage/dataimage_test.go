package dataimage

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

var (
	meta = metav1.ObjectMeta{Name: "node-0", Namespace: "lab"}
	key  = client.ObjectKey{Namespace: "lab", Name: "node-0"}
)

func image(change ...func(*metal3.DataImage)) *metal3.DataImage {
	d := &metal3.DataImage{ObjectMeta: meta, Spec: metal3.DataImageSpec{URL: "http://192.0.2.1/a.iso"}}
	for _, c := range change {
		c(d)
	}
	return d
}

func host(annotation string) *metal3.BareMetalHost {
	h := &metal3.BareMetalHost{ObjectMeta: meta}
	h.UID = "u-1"
	if annotation != "" {
		h.Annotations = map[string]string{annotation: ""}
	}
	return h
}

func held(d *metal3.DataImage)     { d.Finalizers = []string{metal3.DataImageFinalizer} }
func attached(d *metal3.DataImage) { d.Status.AttachedImage.URL = d.Spec.URL }

// run reconciles once, after deleting the DataImage when deleted is true. It returns
// the DataImage, nil when it no longer exists.
func run(t *testing.T, deleted bool, objects ...client.Object) *metal3.DataImage {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metal3.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&metal3.DataImage{}).Build()
	if deleted {
		if err := c.Delete(t.Context(), image()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(Config{Client: c, Work: queue.Work{Clock: clock.RealClock{}}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || res != (ctrl.Result{}) {
		t.Errorf("Reconcile() = %+v, %v, want no requeue", res, err)
	}
	var d metal3.DataImage
	if err := c.Get(t.Context(), key, &d); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		t.Fatal(err)
	}
	return &d
}

func TestDataImageIsOwnedByItsHost(t *testing.T) { // B-03, B-04
	d := run(t, false, image(), host(""))
	if diff := cmp.Diff([]string{metal3.DataImageFinalizer}, d.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	want := []metav1.OwnerReference{{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHost", Name: "node-0", UID: "u-1"}}
	if diff := cmp.Diff(want, d.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
}

func TestDeletionWaitsUntilTheImageIsDetached(t *testing.T) { // B-90, B-94, B-230
	for _, tt := range []struct {
		name    string
		objects []client.Object
		gone    bool
	}{
		{"attached", []client.Object{image(held, attached), host("")}, false},
		{"not attached", []client.Object{image(held), host("")}, true},
		{"attached to a host that is detached", []client.Object{image(held, attached), host(metal3.DetachedAnnotation)}, true},
		{"attached to a host that is paused", []client.Object{image(held, attached), host(metal3.PausedAnnotation)}, false},
		{"not attached, to a host that is paused", []client.Object{image(held), host(metal3.PausedAnnotation)}, false},
		{"attached to no host", []client.Object{image(held, attached)}, true},
	} {
		if d := run(t, true, tt.objects...); (d == nil) != tt.gone {
			t.Errorf("%s: gone = %v, want %v", tt.name, d == nil, tt.gone)
		}
	}
}

func TestDataImageOfAPausedHostIsNotChanged(t *testing.T) { // B-90
	if d := run(t, false, image(), host(metal3.PausedAnnotation)); len(d.Finalizers)+len(d.OwnerReferences) > 0 {
		t.Errorf("the image was changed: %+v", d.ObjectMeta)
	}
}

// B-02: a DataImage belongs to the host of its name and namespace, and to no other.
func TestDataImageOfAnotherNameBelongsToNoHost(t *testing.T) {
	for _, other := range []metav1.ObjectMeta{{Name: "node-1", Namespace: "lab"}, {Name: "node-0", Namespace: "other"}} {
		h := host("")
		h.Name, h.Namespace = other.Name, other.Namespace
		if d := run(t, false, image(), h); len(d.Finalizers)+len(d.OwnerReferences) > 0 {
			t.Errorf("the image of lab/node-0 belongs to %s/%s: %+v", other.Namespace, other.Name, d.ObjectMeta)
		}
	}
}

func TestDataImageOfALiveISOHostHasAnError(t *testing.T) {
	format, h := "live-iso", host("")
	h.Status.Provisioning.Image.DiskFormat = &format
	d := run(t, false, image(), h)
	if d.Status.Error.Message != errLive || d.Status.Error.Count != 1 {
		t.Errorf("status %+v, want %q", d.Status, errLive)
	}
	if d = run(t, false, d, host("")); d.Status.Error != (metal3.DataImageError{}) {
		t.Errorf("status %+v after the host has left its live ISO, want no error", d.Status)
	}
}

func TestNewWithoutClientReturnsError(t *testing.T) {
	if _, err := New(Config{Work: queue.Work{Clock: clock.RealClock{}}}); err == nil || errors.Unwrap(err) != nil {
		t.Errorf("New() error = %v, want one that names Client", err)
	}
}

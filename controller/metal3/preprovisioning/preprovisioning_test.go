package preprovisioning

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/metalab-dev/metalab/controller/reconcile/queue"
)

// builder builds ISOs for x86_64. It refuses network data other than "good".
type builder struct{ broken error }

func (builder) Builds(f metal3.ImageFormat) bool { return f == metal3.ImageFormatISO }
func (builder) BuildsFor(a string) bool          { return a == "x86_64" }
func (b builder) Build(_ context.Context, r Request) (Built, error) {
	if data, given := r.NetworkData["networkData"]; given && string(data) != "good" {
		return Built{}, &InvalidError{Why: "bad network data"}
	}
	return Built{URL: "http://192.0.2.1/" + r.Owner + ".iso"}, b.broken
}

func image(change ...func(*metal3.PreprovisioningImage)) *metal3.PreprovisioningImage {
	controller := true
	p := &metal3.PreprovisioningImage{
		ObjectMeta: metav1.ObjectMeta{Name: "node-0", Namespace: "lab", Generation: 3,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "metal3.io/v1alpha1", Kind: "BareMetalHost", Name: "node-0", UID: "u-1", Controller: &controller}}},
		Spec: metal3.PreprovisioningImageSpec{Architecture: "x86_64", AcceptFormats: []metal3.ImageFormat{metal3.ImageFormatISO, metal3.ImageFormatInitRD}},
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func withNetwork(p *metal3.PreprovisioningImage) { p.Spec.NetworkDataName = "net" }

func network(data string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "net", Namespace: "lab", ResourceVersion: "7"}, Data: map[string][]byte{"networkData": []byte(data)}}
}

// run reconciles twice and checks that the second reconcile writes nothing. It returns
// the object, nil when it no longer exists.
func run(t *testing.T, b Builder, deleted bool, objects ...client.Object) (*metal3.PreprovisioningImage, error) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), metal3.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&metal3.PreprovisioningImage{}).Build()
	if deleted {
		if err := c.Delete(t.Context(), image()); err != nil {
			t.Fatal(err)
		}
	}
	r, err := New(Config{Client: c, Builder: b, Work: queue.Work{Clock: clock.RealClock{}}})
	if err != nil {
		t.Fatal(err)
	}
	key := client.ObjectKey{Namespace: "lab", Name: "node-0"}
	var first, p metal3.PreprovisioningImage
	_, failed := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	for _, into := range []*metal3.PreprovisioningImage{&first, &p} {
		if err := c.Get(t.Context(), key, into); apierrors.IsNotFound(err) {
			return nil, failed
		} else if err != nil {
			t.Fatal(err)
		}
		_, failed = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	}
	if first.ResourceVersion != p.ResourceVersion {
		t.Errorf("the second reconcile changed the object: resource version %s, then %s", first.ResourceVersion, p.ResourceVersion)
	}
	return &p, failed
}

func TestStatusShowsTheImageOrWhyThereIsNone(t *testing.T) { // B-240
	initrd := func(p *metal3.PreprovisioningImage) {
		p.Spec.AcceptFormats = []metal3.ImageFormat{metal3.ImageFormatInitRD}
	}
	arm := func(p *metal3.PreprovisioningImage) { p.Spec.Architecture = "aarch64" }
	ready := func(network metal3.SecretStatus) metal3.PreprovisioningImageStatus {
		return metal3.PreprovisioningImageStatus{ImageUrl: "http://192.0.2.1/u-1.iso", Format: metal3.ImageFormatISO, Architecture: "x86_64", NetworkData: network}
	}
	for _, tt := range []struct {
		name    string
		objects []client.Object
		want    metal3.PreprovisioningImageStatus
		reason  string
		message string
	}{
		{"built", []client.Object{image()}, ready(metal3.SecretStatus{}), "ImageSuccess", "Generated image"},
		{"built with network data", []client.Object{image(withNetwork), network("good")}, ready(metal3.SecretStatus{Name: "net", Version: "7"}), "ImageSuccess", "Generated image"},
		{"another architecture", []client.Object{image(arm)}, metal3.PreprovisioningImageStatus{}, "ConfigurationError", "Architecture not supported"},
		{"another format", []client.Object{image(initrd)}, metal3.PreprovisioningImageStatus{}, "ConfigurationError", "No acceptable image format supported"},
		{"no network data", []client.Object{image(withNetwork)}, metal3.PreprovisioningImageStatus{}, "MissingNetworkData", "NetworkData secret not found"},
		{"bad network data", []client.Object{image(withNetwork), network("bad")}, metal3.PreprovisioningImageStatus{}, "ImageBuildInvalid", "Cannot generate image: bad network data"},
	} {
		p, err := run(t, builder{}, false, tt.objects...)
		if err != nil {
			t.Errorf("%s: Reconcile() error = %v", tt.name, err)
			continue
		}
		built := tt.want.ImageUrl != ""
		for kind, holds := range map[metal3.ImageStatusConditionType]bool{metal3.ConditionImageReady: built, metal3.ConditionImageError: !built} {
			c := meta.FindStatusCondition(p.Status.Conditions, string(kind))
			if c == nil || (c.Status == metav1.ConditionTrue) != holds || c.Reason != tt.reason || holds && c.Message != tt.message || c.ObservedGeneration != 3 {
				t.Errorf("%s: condition %s = %+v, want %v because of %s, %q", tt.name, kind, c, holds, tt.reason, tt.message)
			}
		}
		p.Status.Conditions = nil
		if diff := cmp.Diff(tt.want, p.Status); diff != "" {
			t.Errorf("%s: status (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff([]string{metal3.PreprovisioningImageFinalizer}, p.Finalizers); diff != "" { // B-03
			t.Errorf("%s: finalizers (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestBuildErrorIsRetriedAndLeavesTheStatus(t *testing.T) {
	p, err := run(t, builder{broken: errors.New("no room")}, false, image())
	if err == nil || len(p.Status.Conditions) > 0 {
		t.Errorf("Reconcile() error = %v, conditions %+v, want an error and no conditions", err, p.Status.Conditions)
	}
}

func TestDeletionWaitsForTheHostsFinalizer(t *testing.T) { // B-03
	held := func(more ...string) func(*metal3.PreprovisioningImage) {
		return func(p *metal3.PreprovisioningImage) {
			p.Finalizers = append(more, metal3.PreprovisioningImageFinalizer)
		}
	}
	if p, err := run(t, builder{}, true, image(held("baremetalhost.metal3.io/preprovisioningImage"))); p == nil || err != nil {
		t.Errorf("image with the host's finalizer: %v, %v, want it to exist", p, err)
	}
	if p, err := run(t, builder{}, true, image(held())); p != nil || err != nil {
		t.Errorf("image without the host's finalizer: %v, %v, want it deleted", p, err)
	}
}

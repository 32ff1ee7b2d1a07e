package host

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
)

func (b *bench) preprovisioned() *metal3.PreprovisioningImage {
	b.t.Helper()
	var p metal3.PreprovisioningImage
	if err := b.kube.Get(context.Background(), client.ObjectKey{Namespace: "lab", Name: hostName}, &p); err != nil {
		b.t.Fatal(err)
	}
	return &p
}

// say sets a condition of the image, as its builder does.
func (b *bench) say(edit func(*metal3.PreprovisioningImage)) {
	b.t.Helper()
	p := b.preprovisioned()
	edit(p)
	if err := b.kube.Status().Update(context.Background(), p); err != nil {
		b.t.Fatal(err)
	}
}

func condition(kind metal3.ImageStatusConditionType, message string) func(*metal3.PreprovisioningImage) {
	return func(p *metal3.PreprovisioningImage) {
		p.Status.Conditions = nil
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{
			Type: string(kind), Status: metav1.ConditionTrue, Reason: "Test", Message: message, ObservedGeneration: p.Generation,
		})
		p.Status.Format, p.Status.Architecture = metal3.ImageFormatISO, p.Spec.Architecture
	}
}

func imageBench(t *testing.T) *bench {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Labels = map[string]string{"rack": "r1"} })
	b.r.BuildPreprovisioningImage = true
	return b
}

// No agent is booted before its image is built (B-240).
func TestHostWaitsForItsImage(t *testing.T) {
	b := imageBench(t)
	b.until("inspecting", in(metal3.StateInspecting))
	for range 5 {
		if res, err := b.pass(); err != nil || res.RequeueAfter != 5*time.Minute {
			t.Errorf("Reconcile() = %+v, %v, want to look again in 5m", res, err)
		}
	}
	if b.power() != bmc.Off {
		t.Errorf("power %s before the image is there, want Off", b.power())
	}
	p := b.preprovisioned()
	want := metal3.PreprovisioningImageSpec{Architecture: controllerArchitecture, AcceptFormats: []metal3.ImageFormat{metal3.ImageFormatISO, metal3.ImageFormatInitRD}}
	if diff := cmp.Diff(want, p.Spec); diff != "" {
		t.Errorf("what is asked for (-want +got):\n%s", diff)
	}
	owner := metav1.GetControllerOf(p)
	if owner == nil || owner.UID != "u-1" || len(p.Finalizers) != 1 || p.Finalizers[0] != "baremetalhost.metal3.io/preprovisioningImage" || p.Labels["rack"] != "r1" {
		t.Errorf("the image is %+v, want the host's with its label (B-03, B-04, B-101)", p.ObjectMeta)
	}
	b.say(condition(metal3.ConditionImageReady, ""))
	b.until("available", in(metal3.StateAvailable))
}

func TestImageThatCannotBeBuilt(t *testing.T) { // B-47, B-240
	b := imageBench(t)
	b.until("inspecting", in(metal3.StateInspecting))
	if _, err := b.pass(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		say  func(*metal3.PreprovisioningImage)
		want string
	}{
		{condition(metal3.ConditionImageError, "no room"), "no room"},
		{func(p *metal3.PreprovisioningImage) {
			condition(metal3.ConditionImageReady, "")(p)
			p.Status.Format = "squashfs"
		}, "Preprovisioning Image is not acceptable to provisioner"},
	} {
		b.say(tt.say)
		b.until(tt.want, func(h *metal3.BareMetalHost) bool {
			return h.Status.ErrorType == metal3.RegistrationError && h.Status.ErrorMessage == tt.want && h.Status.Provisioning.State == metal3.StateInspecting
		})
	}
	b.say(condition(metal3.ConditionImageReady, ""))
	b.until("available", in(metal3.StateAvailable))
	if h := b.host(); h.Status.ErrorType != "" {
		t.Errorf("errorType %q, want none", h.Status.ErrorType)
	}
}

func TestImageIsReleasedWithItsHost(t *testing.T) { // B-71
	b := imageBench(t)
	b.until("inspecting", in(metal3.StateInspecting))
	if _, err := b.pass(); err != nil {
		t.Fatal(err)
	}
	if err := b.kube.Delete(t.Context(), b.host()); err != nil {
		t.Fatal(err)
	}
	b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
	if p := b.preprovisioned(); len(p.Finalizers) > 0 {
		t.Errorf("finalizers %v, want none", p.Finalizers)
	}
}

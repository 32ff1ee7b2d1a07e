package host

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

const (
	dataURL  = "http://192.0.2.1/data.iso"
	otherURL = "http://192.0.2.1/other.iso"
)

func (b *bench) dataImage() *metal3.DataImage {
	b.t.Helper()
	var d metal3.DataImage
	if err := b.kube.Get(context.Background(), client.ObjectKey{Namespace: "lab", Name: hostName}, &d); err != nil {
		b.t.Fatal(err)
	}
	return &d
}

func (b *bench) switchTo(want bmc.Power) {
	b.t.Helper()
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = want == bmc.On })
	b.until("power "+string(want), func(*metal3.BareMetalHost) bool { s, _ := b.bmc.Now(); return s.Power == want })
}

// drive checks the content of the virtual CD drive and the status.
func (b *bench) drive(when, want string) {
	b.t.Helper()
	if _, m := b.bmc.Now(); m.Image != want {
		b.t.Errorf("%s: the drive holds %q, want %q", when, m.Image, want)
	}
	if got := b.dataImage().Status; got.AttachedImage.URL != want || got.Error.Count != 0 || want != "" && got.LastReconciled.IsZero() {
		b.t.Errorf("%s: status %+v, want %q attached", when, got, want)
	}
}

func dataBench(t *testing.T) *bench {
	b := newBench(t, 1, withImage)
	b.until("provisioned", in(metal3.StateProvisioned))
	d := &metal3.DataImage{
		ObjectMeta: metav1.ObjectMeta{Name: hostName, Namespace: "lab", UID: "d-1", Finalizers: []string{metal3.DataImageFinalizer}},
		Spec:       metal3.DataImageSpec{URL: dataURL},
	}
	if err := b.kube.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return b
}

// A data image is attached and detached only when its server is powered on
// (B-230).
func TestDataImageIsAttachedAtTheNextStart(t *testing.T) {
	b := dataBench(t)
	for range 5 {
		if _, err := b.pass(); err != nil {
			t.Fatal(err)
		}
	}
	b.drive("while the server runs", "")
	b.switchTo(bmc.Off)
	b.drive("after it was switched off", "")
	b.switchTo(bmc.On)
	b.drive("after it was switched on", dataURL)

	d := b.dataImage()
	d.Spec.URL = otherURL
	if err := b.kube.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	b.change(func(h *metal3.BareMetalHost) { h.Annotations = map[string]string{metal3.RebootAnnotationPrefix: ""} })
	b.until("rebooted", func(h *metal3.BareMetalHost) bool {
		s, _ := b.bmc.Now()
		return len(h.Annotations) == 0 && s.Power == bmc.On
	})
	b.drive("after a reboot with another URL", otherURL)

	if err := b.kube.Delete(t.Context(), b.dataImage()); err != nil {
		t.Fatal(err)
	}
	b.switchTo(bmc.Off)
	b.switchTo(bmc.On)
	b.drive("after a reboot of a host whose data image is deleted", "")
}

// B-94: a DataImage of a detached host waits until the host is attached.
func TestDataImageOfADetachedHostWaits(t *testing.T) {
	b := dataBench(t)
	b.switchTo(bmc.Off)
	b.annotate(metal3.DetachedAnnotation, "")
	b.passes(5)
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = true })
	b.passes(20)
	b.drive("while the host is detached", "")
	b.change(func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.DetachedAnnotation) })
	b.until("on", func(*metal3.BareMetalHost) bool { return b.power() == bmc.On })
	b.drive("after the host was attached", dataURL)
}

// An image that the BMC refuses keeps the host off: the retries become less
// frequent, but a corrected URL is tried at once (B-230).
func TestDataImageThatCannotBeAttached(t *testing.T) {
	b := dataBench(t)
	b.switchTo(bmc.Off)
	b.bmc.Fail(bmctest.InsertMedia, errors.New("404 Not Found"))
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = true })
	began := b.clock.Now()
	b.until("three failures", func(*metal3.BareMetalHost) bool { return b.dataImage().Status.Error.Count == 3 })
	if took := b.clock.Since(began); took < 3*time.Minute { // one to two minutes, and two to four
		t.Errorf("three attempts within %s, want more than 3m", took)
	}
	d := b.dataImage()
	if want := "failed to attach dataImage, 404 Not Found"; d.Status.Error.Message != want || d.Status.AttachedImage.URL != "" {
		t.Errorf("status %+v, want %q and nothing attached", d.Status, want)
	}
	if s, _ := b.bmc.Now(); s.Power != bmc.Off {
		t.Errorf("power %s, want Off until its data image is there", s.Power)
	}
	if h := b.host(); h.Status.ErrorType != "" {
		t.Errorf("the host reports %s, want no error of its own", h.Status.ErrorType)
	}
	b.bmc.Fail(bmctest.InsertMedia, nil)
	d.Spec.URL = otherURL
	if err := b.kube.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	corrected := b.clock.Now()
	b.until("on", func(*metal3.BareMetalHost) bool { s, _ := b.bmc.Now(); return s.Power == bmc.On })
	if took := b.clock.Since(corrected); took > minDataRetry {
		t.Errorf("a corrected URL was tried after %s, want at once", took)
	}
	b.drive("after the correction", otherURL)
}

// A controller killed at any call of the API or the BMC neither forgets an
// attached image nor records one that is not attached (B-230).
func TestDataImageSurvivesControllers(t *testing.T) {
	for at := 1; ; at++ {
		b := dataBench(t)
		b.switchTo(bmc.Off)
		m := &mortality{die: func(n int) bool { return n == at }}
		m.take(b)
		b.switchTo(bmc.On)
		if b.drive(fmt.Sprintf("after a death at call %d", at), dataURL); m.dead == 0 {
			if at < 10 {
				t.Errorf("only %d calls were made", at-1)
			}
			return
		}
	}
}

// A host that runs from its virtual CD keeps it (B-153).
func TestLiveHostKeepsItsMedium(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		live := "live-iso"
		h.Spec.Image = &metal3.Image{URL: imageURL, DiskFormat: &live}
	})
	b.until("provisioned", in(metal3.StateProvisioned))
	if err := b.kube.Create(t.Context(), &metal3.DataImage{
		ObjectMeta: metav1.ObjectMeta{Name: hostName, Namespace: "lab", UID: "d-1"}, Spec: metal3.DataImageSpec{URL: dataURL},
	}); err != nil {
		t.Fatal(err)
	}
	b.switchTo(bmc.Off)
	b.switchTo(bmc.On)
	if _, m := b.bmc.Now(); m.Image != imageURL {
		t.Errorf("the drive holds %q, want the live ISO %q", m.Image, imageURL)
	}
}

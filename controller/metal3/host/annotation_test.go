package host

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// benchProvisioned returns a bench whose host is provisioned and on.
func benchProvisioned(t *testing.T, change func(*metal3.BareMetalHost)) *bench {
	t.Helper()
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		withImage(h)
		if change != nil {
			change(h)
		}
	})
	b.until("provisioned", in(metal3.StateProvisioned))
	return b
}

func (b *bench) annotate(key, value string) {
	b.t.Helper()
	b.change(func(h *metal3.BareMetalHost) { metav1.SetMetaDataAnnotation(&h.ObjectMeta, key, value) })
}

func (b *bench) power() bmc.Power { sys, _ := b.bmc.Now(); return sys.Power }

// passes makes passes and returns the power states after them.
func (b *bench) passes(n int) (seen []bmc.Power) {
	b.t.Helper()
	for range n {
		if _, err := b.pass(); err != nil {
			b.t.Fatal(err)
		}
		if p := b.power(); !slices.Contains(seen, p) {
			seen = append(seen, p)
		}
	}
	return seen
}

// reasons returns the reason of each event, as often as it counts.
func (b *bench) reasons() (out []string) {
	b.t.Helper()
	var all corev1.EventList
	if err := b.kube.List(b.t.Context(), &all); err != nil {
		b.t.Fatal(err)
	}
	for _, e := range all.Items {
		out = append(out, slices.Repeat([]string{e.Reason}, int(e.Count))...)
	}
	return out
}

func TestPlainRebootAnnotationIsRemovedAfterTheReboot(t *testing.T) { // B-95, B-96
	for _, value := range []string{"", `{"mode":"hard"}`, `{"mode":"soft"}`, "bogus"} {
		b := benchProvisioned(t, nil)
		ran := len(b.ran)
		b.annotate(metal3.RebootAnnotationPrefix, value)
		if seen := b.passes(20); !slices.Contains(seen, bmc.Off) || b.power() != bmc.On {
			t.Errorf("%q: power was %v and is %v, want off, then on", value, seen, b.power())
		}
		h := b.host()
		if _, still := h.Annotations[metal3.RebootAnnotationPrefix]; still || !in(metal3.StateProvisioned)(h) || len(b.ran) != ran {
			t.Errorf("%q: annotations %v, state %v, %d jobs more; want a reboot and nothing else", value, h.Annotations, h.Status.Provisioning.State, len(b.ran)-ran)
		}
		if got := slices.Contains(b.reasons(), "InvalidAnnotationValue"); got != (value == "bogus") {
			t.Errorf("%q: event of an invalid value: %v", value, got)
		}
	}
}

func TestKeyedRebootAnnotationsHoldTheServerOff(t *testing.T) { // B-96
	b := benchProvisioned(t, nil)
	b.annotate(metal3.RebootAnnotationPrefix+"/maintenance", "")
	b.annotate(metal3.RebootAnnotationPrefix+"/other", `{"mode":"hard"}`)
	b.passes(20)
	b.change(func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.RebootAnnotationPrefix+"/other") })
	if seen := b.passes(20); !slices.Equal(seen, []bmc.Power{bmc.Off}) {
		t.Errorf("power was %v, want off as long as one holds it", seen)
	}
	b.change(func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.RebootAnnotationPrefix+"/maintenance") })
	b.passes(20)
	if b.power() != bmc.On {
		t.Errorf("power is %v, want on again", b.power())
	}
}

func TestRebootOfAServerThatIsOff(t *testing.T) { // B-97
	b := benchProvisioned(t, nil)
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	b.passes(20)
	b.annotate(metal3.RebootAnnotationPrefix, "")
	if seen := b.passes(20); !slices.Equal(seen, []bmc.Power{bmc.Off}) {
		t.Errorf("power was %v, want off", seen)
	}
	if _, still := b.host().Annotations[metal3.RebootAnnotationPrefix]; still {
		t.Error("the annotation is still there")
	}
}

func TestDisablePowerOffRestartsTheServer(t *testing.T) { // B-125
	b := benchProvisioned(t, func(h *metal3.BareMetalHost) { h.Spec.DisablePowerOff = true })
	b.annotate(metal3.RebootAnnotationPrefix, `{"mode":"hard"}`)
	if seen := b.passes(20); slices.Contains(seen, bmc.Off) {
		t.Errorf("power was %v, want never off", seen)
	}
	if _, still := b.host().Annotations[metal3.RebootAnnotationPrefix]; still {
		t.Error("the annotation is still there")
	}
}

func TestDetachedHostIsLeftAlone(t *testing.T) { // B-91
	b := benchProvisioned(t, nil)
	b.annotate(metal3.DetachedAnnotation, "")
	b.passes(5)
	h := b.host()
	if h.Status.OperationalStatus != metal3.OperationalStatusDetached || !in(metal3.StateProvisioned)(h) {
		t.Fatalf("operationalStatus %q, state %q; want detached, provisioned", h.Status.OperationalStatus, h.Status.Provisioning.State)
	}
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	if seen := b.passes(20); !slices.Equal(seen, []bmc.Power{bmc.On}) {
		t.Errorf("power was %v, want on as it was", seen)
	}
	b.change(func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.DetachedAnnotation) })
	b.passes(20)
	if h := b.host(); b.power() != bmc.Off || h.Status.OperationalStatus != metal3.OperationalStatusOK || !in(metal3.StateProvisioned)(h) {
		t.Errorf("power %v, operationalStatus %q, state %q; want off, OK, provisioned", b.power(), h.Status.OperationalStatus, h.Status.Provisioning.State)
	}
}

func TestDeletionOfADetachedHostTouchesNothing(t *testing.T) { // B-93
	for value, stays := range map[string]bool{"": false, "anything": false, `{"deleteAction":"delete"}`: false, `{"deleteAction":"delay"}`: true} {
		b := benchProvisioned(t, nil)
		ran := len(b.ran)
		b.annotate(metal3.DetachedAnnotation, value)
		b.passes(5)
		if err := b.kube.Delete(t.Context(), b.host()); err != nil {
			t.Fatal(err)
		}
		b.passes(10)
		if there := b.host() != nil; there != stays || b.power() != bmc.On || len(b.ran) != ran {
			t.Errorf("%q: there %v, power %v, %d jobs more; want there %v, on, none", value, there, b.power(), len(b.ran)-ran, stays)
		}
		if !stays {
			continue
		}
		b.change(func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.DetachedAnnotation) })
		b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
		if b.power() != bmc.Off {
			t.Errorf("%q: power %v after an ordinary deletion, want off", value, b.power())
		}
	}
}

func TestStatusAnnotationIsRestored(t *testing.T) { // B-100
	moved := benchProvisioned(t, nil).host()
	status, err := json.Marshal(moved.Status)
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, 2, func(h *metal3.BareMetalHost) {
		withImage(h)
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, metal3.StatusAnnotation, string(status))
	})
	b.bmc.Press(bmc.On)
	b.passes(10)
	h := b.host()
	if !in(metal3.StateProvisioned)(h) || len(b.ran) != 0 || h.Status.Provisioning.ID != moved.Status.Provisioning.ID {
		t.Errorf("state %q, %v run, ID %q; want provisioned, nothing, %q", h.Status.Provisioning.State, b.ran, h.Status.Provisioning.ID, moved.Status.Provisioning.ID)
	}
	if _, still := h.Annotations[metal3.StatusAnnotation]; still {
		t.Error("the annotation is still there")
	}
}

func TestRebootsThatCountInAState(t *testing.T) { // B-50, B-95, B-96
	const force, hard, forceHard = `{"force":true}`, `{"mode":"hard"}`, `{"force":true,"mode":"hard"}`
	key := metal3.RebootAnnotationPrefix + "/fencing"
	for _, tt := range []struct {
		name  string
		state metal3.ProvisioningState
		plain *string
		keyed *string
		want  phase.Reboot
		hard  bool
	}{
		{"provisioned", metal3.StateProvisioned, new(""), nil, phase.RebootOnce, false},
		{"externally provisioned, held", metal3.StateExternallyProvisioned, nil, new(hard), phase.RebootHeld, true},
		{"available", metal3.StateAvailable, new(""), new(hard), phase.RebootNone, false},
		{"available, with force", metal3.StateAvailable, new(force), nil, phase.RebootOnce, false},
		{"available, held with force", metal3.StateAvailable, new(force), new(forceHard), phase.RebootHeld, true},
		{"available, held without force", metal3.StateAvailable, new(force), new(hard), phase.RebootOnce, false},
		{"inspecting", metal3.StateInspecting, new(hard), nil, phase.RebootNone, false},
		{"inspecting, with force", metal3.StateInspecting, new(forceHard), nil, phase.RebootOnce, true},
		{"provisioning", metal3.StateProvisioning, new(hard), nil, phase.RebootNone, false},
		{"provisioning, with force", metal3.StateProvisioning, new(force), nil, phase.RebootOnce, false},
	} {
		h := &metal3.BareMetalHost{}
		h.Status.Provisioning.State = tt.state
		for k, v := range map[string]*string{metal3.RebootAnnotationPrefix: tt.plain, key: tt.keyed} {
			if v != nil {
				metav1.SetMetaDataAnnotation(&h.ObjectMeta, k, *v)
			}
		}
		var o observation
		if observeReboot(h, &o); o.facts.Reboot != tt.want || o.facts.RebootHard != tt.hard {
			t.Errorf("%s: reboot %d, hard %v, want %d, %v", tt.name, o.facts.Reboot, o.facts.RebootHard, tt.want, tt.hard)
		}
	}
}

// TestStatusOfALaterReleaseIsRestored restores a status with fields, a kind of list
// and an operational status that this release does not know.
func TestStatusOfALaterReleaseIsRestored(t *testing.T) { // B-100
	later, err := os.ReadFile("testdata/status-of-a-later-release.json")
	if err != nil {
		t.Fatal(err)
	}
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		withImage(h)
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, metal3.StatusAnnotation, string(later))
	})
	b.bmc.Press(bmc.On)
	b.passes(10)
	h := b.host()
	if !in(metal3.StateProvisioned)(h) || len(b.ran) != 0 || h.Status.Provisioning.ID != "6f3d6f0e-8f4e-4f51-a5a6-0d9fb3a3c111" {
		t.Errorf("state %q, %v run, ID %q; want the state and the ID of the annotation", h.Status.Provisioning.State, b.ran, h.Status.Provisioning.ID)
	}
	b.warnsOf("UnknownStatusFields", `"healthReport"`, `"provisioning.attempts"`)
}

// warnsOf asserts that an event of the type Warning with this reason names the fields.
func (b *bench) warnsOf(reason string, fields ...string) {
	b.t.Helper()
	var events corev1.EventList
	if err := b.kube.List(b.t.Context(), &events); err != nil {
		b.t.Fatal(err)
	}
	for _, e := range events.Items {
		lacks := func(field string) bool { return !strings.Contains(e.Message, field) }
		if e.Reason == reason && e.Type == corev1.EventTypeWarning && !slices.ContainsFunc(fields, lacks) {
			return
		}
	}
	b.t.Errorf("no event %s of the type Warning names %v: %v", reason, fields, events.Items)
}

func TestHardwareDetailsAnnotation(t *testing.T) { // B-99
	given := `{"hostname":"given","ramMebibytes":7}`
	for _, tt := range []struct {
		name, value string
		disabled    bool
		want        string // event
	}{
		{"inspection disabled", given, true, "UpdateHardwareDetails"},
		{"after inspection", given, false, "RemoveAnnotation"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) {
				if tt.disabled {
					h.Spec.BootMACAddress = "02:00:00:00:00:01"
					metav1.SetMetaDataAnnotation(&h.ObjectMeta, metal3.InspectAnnotationPrefix, "disabled")
				}
			})
			b.until("available", in(metal3.StateAvailable))
			b.annotate(metal3.HardwareDetailsAnnotation, tt.value)
			b.passes(5)
			h := b.host()
			took := h.Status.HardwareDetails != nil && h.Status.HardwareDetails.Hostname == "given"
			if took != tt.disabled || !slices.Contains(b.reasons(), tt.want) {
				t.Errorf("details %+v, events %v; want them taken: %v, event %s", h.Status.HardwareDetails, b.reasons(), tt.disabled, tt.want)
			}
			if _, still := h.Annotations[metal3.HardwareDetailsAnnotation]; still {
				t.Error("the annotation is still there")
			}
		})
	}
}

// TestHardwareDetailsOfALaterReleaseAreAdopted adopts details with fields that this
// release does not know.
func TestHardwareDetailsOfALaterReleaseAreAdopted(t *testing.T) { // B-99
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		h.Spec.BootMACAddress = "02:00:00:00:00:01"
		h.Annotations = map[string]string{
			metal3.InspectAnnotationPrefix:   "disabled",
			metal3.HardwareDetailsAnnotation: `{"hostname":"given","accelerators":[{"model":"x"}],"cpu":{"arch":"x86_64","sockets":2}}`,
		}
	})
	b.until("available", in(metal3.StateAvailable))
	h := b.host()
	if d := h.Status.HardwareDetails; d == nil || d.Hostname != "given" || d.CPU.Arch != "x86_64" {
		t.Errorf("details %+v, want those of the annotation", d)
	}
	if _, still := h.Annotations[metal3.HardwareDetailsAnnotation]; still {
		t.Error("the annotation is still there")
	}
	b.warnsOf("UnknownHardwareFields", `"accelerators"`, `"cpu.sockets"`)
}

// A wrong type is an error that names the annotation: the controller adopts nothing
// and removes nothing.
func TestInvalidHardwareDetailsAnnotationIsRefused(t *testing.T) { // B-99
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, metal3.HardwareDetailsAnnotation, `{"hostname":["x"]}`)
	})
	var err error
	for range 5 {
		if _, err = b.pass(); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), metal3.HardwareDetailsAnnotation) || !strings.Contains(err.Error(), "hostname") {
		t.Errorf("Reconcile() = %v, want an error that names the annotation and the field", err)
	}
}

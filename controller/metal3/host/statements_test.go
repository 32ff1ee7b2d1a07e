package host

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// B-20, B-22, B-23, B-24, B-25, B-26, B-27, B-28, B-29, B-30, B-31 and B-32: the
// states that a host has between its creation and its deletion, by name.
func TestStatesOfAHost(t *testing.T) {
	b := newBench(t, 1, withImage)
	var seen []string
	follow := func(ok func(*metal3.BareMetalHost) bool) func(*metal3.BareMetalHost) bool {
		return func(h *metal3.BareMetalHost) bool {
			if h != nil {
				if s := string(h.Status.Provisioning.State); len(seen) == 0 || seen[len(seen)-1] != s {
					seen = append(seen, s)
				}
			}
			return ok(h)
		}
	}
	b.until("provisioned", follow(in(metal3.StateProvisioned)))
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
	b.until("available", follow(func(h *metal3.BareMetalHost) bool { return in(metal3.StateAvailable)(h) && h.Status.PoweredOn }))
	b.change(func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned = true })
	b.until("external", follow(in(metal3.StateExternallyProvisioned)))
	if err := b.kube.Delete(t.Context(), b.host()); err != nil {
		t.Fatal(err)
	}
	b.until("gone", follow(func(h *metal3.BareMetalHost) bool { return h == nil }))
	want := []string{"", "registering", "inspecting", "match profile", "preparing", "available", "provisioning", "provisioned",
		"deprovisioning", "available", "preparing", "available", "externally provisioned", "powering off before delete", "deleting"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	for _, s := range phase.States {
		if _, ok := conditionRows[s]; !ok {
			t.Errorf("state %q has no conditions", s)
		}
	}
}

// B-24 B-26: states of another controller continue.
func TestObsoleteStatesContinue(t *testing.T) {
	for from, want := range map[metal3.ProvisioningState]metal3.ProvisioningState{
		metal3.StateMatchProfile: metal3.StateAvailable, metal3.StateReady: metal3.StateProvisioned,
	} {
		b := newBench(t, 1, nil)
		h := b.host()
		h.Status.Provisioning.State, h.Status.Provisioning.ID = from, "x"
		if err := b.kube.Status().Update(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		if from == metal3.StateReady {
			b.change(withImage)
		}
		b.until(string(want), in(want))
	}
}

// B-74: start, end and duration of each operation.
func TestOperationHistory(t *testing.T) {
	b := newBench(t, 1, withImage)
	reg := prometheus.NewRegistry()
	c := b.r.Config
	c.Metrics = reg
	var err error
	if b.r, err = New(c); err != nil {
		t.Fatal(err)
	}
	entered := map[metal3.ProvisioningState]time.Time{}
	left := map[metal3.ProvisioningState]time.Time{}
	last := metal3.StateNone
	watch := func(ok func(*metal3.BareMetalHost) bool) func(*metal3.BareMetalHost) bool {
		return func(h *metal3.BareMetalHost) bool {
			if s := h.Status.Provisioning.State; s != last {
				left[last], entered[s], last = h.Status.LastUpdated.Time, h.Status.LastUpdated.Time, s
			}
			return ok(h)
		}
	}
	b.until("provisioned", watch(in(metal3.StateProvisioned)))
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
	b.until("available", watch(in(metal3.StateAvailable)))
	h := b.host()
	for _, s := range []metal3.ProvisioningState{metal3.StateRegistering, metal3.StateInspecting, metal3.StateProvisioning, metal3.StateDeprovisioning} {
		op := h.OperationMetricForState(s)
		if !op.Start.Time.Equal(entered[s]) || !op.End.Time.Equal(left[s]) {
			t.Errorf("%s: from %v to %v, want %v to %v", s, op.Start, op.End, entered[s], left[s])
		}
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		if name, ok := strings.CutSuffix(f.GetName(), "_duration_seconds"); ok {
			got[strings.TrimPrefix(name, "metal3_operation_")] = f.GetMetric()[0].GetHistogram().GetSampleSum()
		}
	}
	for s, op := range operations {
		if want := left[s].Sub(entered[s]).Seconds(); got[op.name] != want {
			t.Errorf("%s took %v s, want %v", op.name, got[op.name], want)
		}
	}
}

// B-75: the boot mode is set when an operation begins.
func TestBootModeIsSetWhenAnOperationBegins(t *testing.T) {
	b := benchProvisioned(t, nil)
	b.change(func(h *metal3.BareMetalHost) { h.Spec.BootMode = metal3.Legacy })
	b.passes(10)
	if got := b.host().Status.Provisioning.BootMode; got != metal3.UEFI {
		t.Errorf("provisioned: boot mode %s, want what it was provisioned with", got)
	}
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image.URL += "-2" })
	b.until("deprovisioning", in(metal3.StateDeprovisioning))
	if got := b.host().Status.Provisioning.BootMode; got != metal3.UEFI {
		t.Errorf("deprovisioning: boot mode %s", got)
	}
	b.until("provisioned", in(metal3.StateProvisioned))
	if got := b.host().Status.Provisioning.BootMode; got != metal3.Legacy {
		t.Errorf("provisioned again: boot mode %s, want legacy", got)
	}
}

// B-140: the image boots in the host's mode, and nothing else boots securely.
func TestSecureBootAppliesToTheImageOnly(t *testing.T) {
	for _, mode := range []metal3.BootMode{"", metal3.UEFI, metal3.Legacy, metal3.UEFISecureBoot} {
		for _, cleaning := range []metal3.AutomatedCleaningMode{metal3.CleaningModeMetadata, metal3.CleaningModeDisabled} {
			b := benchProvisioned(t, func(h *metal3.BareMetalHost) { h.Spec.BootMode, h.Spec.AutomatedCleaningMode = mode, cleaning })
			image, agent := bmc.BootMode(mode), bmc.BootMode(mode)
			if mode == "" {
				image, agent = bmc.UEFI, bmc.UEFI
			}
			if mode == metal3.UEFISecureBoot {
				agent = bmc.UEFI
			}
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
			b.until("available", in(metal3.StateAvailable))
			last := bmc.BootMode("")
			for _, c := range b.bmc.Calls() {
				if c.Verb != bmctest.SetBoot {
					continue
				}
				want := agent
				if c.Boot.Device == bmc.BootDisk {
					want = image
				}
				if last = c.Boot.Mode; last != want {
					t.Errorf("boot mode %q, cleaning %s: %+v, want %q", mode, cleaning, c.Boot, want)
				}
			}
			if mode == metal3.UEFISecureBoot && last != bmc.UEFI {
				t.Errorf("cleaning %s: secure boot is left on", cleaning)
			}
		}
	}
}

// B-65 B-58: the status after deprovisioning.
func TestStatusAfterDeprovisioning(t *testing.T) {
	b := benchProvisioned(t, nil)
	h := b.host()
	h.Status.Provisioning.RAID = &metal3.RAIDConfig{
		HardwareRAIDVolumes: []metal3.HardwareRAIDVolume{{Level: "1"}},
		SoftwareRAIDVolumes: []metal3.SoftwareRAIDVolume{{Level: "1"}},
	}
	if err := b.kube.Status().Update(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	b.annotate(metal3.RebootAnnotationPrefix, "")
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
	b.until("available", in(metal3.StateAvailable))
	p := b.host().Status.Provisioning
	if p.Image.URL != "" || p.CustomDeploy != nil || p.RootDeviceHints != nil || p.RAID == nil || len(p.RAID.HardwareRAIDVolumes) != 1 || len(p.RAID.SoftwareRAIDVolumes) != 0 {
		t.Errorf("status %+v", p)
	}
	if _, still := b.host().Annotations[metal3.RebootAnnotationPrefix]; still {
		t.Error("the reboot annotation is still there")
	}
}

// B-64: an externally provisioned host can be taken over.
func TestExternallyProvisionedHostIsTakenOver(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		withImage(h)
		h.Spec.ExternallyProvisioned = true
	})
	b.until("external", in(metal3.StateExternallyProvisioned))
	b.change(func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned = false })
	b.until("provisioned", in(metal3.StateProvisioned))
	b.passes(10)
	if h := b.host(); h.Status.Provisioning.Image.URL != imageURL || !in(metal3.StateProvisioned)(h) || len(b.ran) > 0 {
		t.Errorf("status %+v, the agent ran %v", h.Status.Provisioning, b.ran)
	}
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
	b.until("available", in(metal3.StateAvailable))
}

// B-67: the cleaning mode is read when deprovisioning begins.
func TestCleaningModeIsReadWhenDeprovisioningBegins(t *testing.T) {
	b := benchProvisioned(t, nil)
	ran := len(b.ran)
	b.change(func(h *metal3.BareMetalHost) { h.Spec.AutomatedCleaningMode = metal3.CleaningModeDisabled })
	if err := b.kube.Delete(t.Context(), b.host()); err != nil {
		t.Fatal(err)
	}
	b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
	if len(b.ran) != ran || b.power() != bmc.Off {
		t.Errorf("the agent ran %v, power %s", b.ran[ran:], b.power())
	}
}

// B-51: disabling inspection ends a running one.
func TestInspectionCanBeDisabledWhileItRuns(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.BootMACAddress = mac })
	b.deaf = true
	b.until("inspecting", in(metal3.StateInspecting))
	b.passes(5)
	b.change(func(h *metal3.BareMetalHost) { h.Spec.InspectionMode = metal3.InspectionModeDisabled })
	b.until("available", in(metal3.StateAvailable))
	if !slices.Contains(b.reasons(), "InspectionSkipped") || b.host().Status.HardwareDetails != nil {
		t.Errorf("events %v, hardware %v", b.reasons(), b.host().Status.HardwareDetails)
	}
	b.passes(10)
	if _, m := b.bmc.Now(); m.Image != "" {
		t.Errorf("the drive holds %s", m.Image)
	}
}

// B-81 B-82: a detach error of a restored status ends with the next detachment.
func TestDetachErrorIsAcceptedAndCleared(t *testing.T) {
	b := benchProvisioned(t, nil)
	h := b.host()
	h.Status.ErrorType, h.Status.ErrorMessage, h.Status.OperationalStatus = metal3.DetachError, "x", metal3.OperationalStatusError
	if err := b.kube.Status().Update(t.Context(), h); err != nil {
		t.Fatal(err)
	}
	b.passes(2)
	if s := b.host().Status; s.ErrorType != metal3.DetachError {
		t.Errorf("error %q, want it kept until the host is detached", s.ErrorType)
	}
	b.annotate(metal3.DetachedAnnotation, "")
	b.passes(2)
	if s := b.host().Status; s.ErrorType != "" || s.OperationalStatus != metal3.OperationalStatusDetached {
		t.Errorf("status %s, error %q", s.OperationalStatus, s.ErrorType)
	}
}

// B-261 B-281: events are upstream's, and name the consumer.
func TestEventsOfUpstream(t *testing.T) {
	consumer := corev1.ObjectReference{APIVersion: "cluster.x-k8s.io/v1beta1", Kind: "Machine", Name: "m", Namespace: "lab"}
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		withImage(h)
		h.Spec.ConsumerRef = &consumer
	})
	b.until("provisioned", in(metal3.StateProvisioned))
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
	b.until("on", func(h *metal3.BareMetalHost) bool { return in(metal3.StateAvailable)(h) && h.Status.PoweredOn })
	var all corev1.EventList
	if err := b.kube.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{
		"Registered": "Registered new host", "BMCAccessValidated": "Verified access to BMC", "ProfileSet": "Hardware profile set: unknown",
		"InspectionStarted": "Hardware inspection started", "InspectionComplete": "Hardware inspection completed",
		"ProvisioningStarted": "Image provisioning started for " + imageURL, "ProvisioningComplete": "Image provisioning completed for " + imageURL,
		"DeprovisioningStarted": "Image deprovisioning started", "DeprovisioningComplete": "Image deprovisioning completed",
		"PowerOn": "Host powered on",
	}
	seen := map[string]bool{}
	for _, e := range all.Items {
		seen[e.Reason] = true
		if e.Message != texts[e.Reason] || e.Type != corev1.EventTypeNormal || e.Count != 1 || !strings.HasPrefix(e.Name, e.Reason+"-") ||
			e.Source.Component != "metal3-baremetal-controller" || e.ReportingController != "metal3.io/baremetal-controller" ||
			e.InvolvedObject.Name != hostName || e.Related == nil || *e.Related != consumer {
			t.Errorf("event %+v", e)
		}
	}
	for reason := range texts {
		if !seen[reason] {
			t.Errorf("no event %s", reason)
		}
	}
}

// B-10: the finalizer is set before the server is touched, and a host whose
// finalizer was removed is left alone.
func TestNothingHappensBeforeTheFinalizerIsSet(t *testing.T) {
	b := newBench(t, 1, nil)
	b.until("registering", func(h *metal3.BareMetalHost) bool {
		if len(b.bmc.Calls()) > 0 && !slices.Contains(h.Finalizers, metal3.BareMetalHostFinalizer) {
			t.Fatal("the BMC was called for a host without a finalizer")
		}
		return in(metal3.StateInspecting)(h)
	})
	b.change(func(h *metal3.BareMetalHost) { h.Finalizers = []string{"somebody.else/s"} })
	if err := b.kube.Delete(t.Context(), b.host()); err != nil {
		t.Fatal(err)
	}
	b.bmc.Forget()
	b.passes(5)
	if calls := b.bmc.Calls(); len(calls) > 0 {
		t.Errorf("the BMC was told %v", calls)
	}
}

// B-06: every write of the status updates its time.
func TestStatusHasLastUpdated(t *testing.T) {
	b := newBench(t, 1, withImage)
	writes, at := 0, metav1.Time{}
	b.until("provisioned", func(h *metal3.BareMetalHost) bool {
		if b.statusWrites != writes {
			if writes = b.statusWrites; h.Status.LastUpdated.IsZero() || h.Status.LastUpdated.Before(&at) {
				t.Errorf("write %d: last updated %v after %v", writes, h.Status.LastUpdated, at)
			}
			at = *h.Status.LastUpdated
		}
		return in(metal3.StateProvisioned)(h)
	})
}

// B-125: a server that must stay on is restarted into its agent and into the
// deployed image; deletion leaves it on.
func TestDisablePowerOffIsNeverViolated(t *testing.T) {
	for _, image := range []string{"raw", liveISO} {
		for seed := range uint64(20) {
			b := newBench(t, seed, func(h *metal3.BareMetalHost) {
				withImage(h)
				h.Spec.DisablePowerOff = true
				h.Spec.Image.DiskFormat = &image
			})
			b.bmc.Press(bmc.On)
			if seed > 0 {
				m := &mortality{die: func(int) bool { return b.chance.IntN(60) == 0 }}
				m.take(b)
			}
			b.until("provisioned", in(metal3.StateProvisioned))
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
			b.until("available", in(metal3.StateAvailable))
			if err := b.kube.Delete(t.Context(), b.host()); err != nil {
				t.Fatal(err)
			}
			b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
			resets := 0
			for _, c := range b.bmc.Calls() {
				switch {
				case c.Verb == bmctest.SetPower && c.Power == bmc.PowerReset:
					resets++
				case c.Verb == bmctest.SetPower:
					t.Errorf("%s, seed %d: the BMC was told %+v", image, seed, c)
				}
			}
			if seed == 0 && resets != 4 {
				t.Errorf("%s: restarted %d times, want 4: to inspect, to write, to run, to clean", image, resets)
			}
			want := []job.Kind{job.Inventory, job.Clean, job.Write, job.Clean}
			if image == liveISO {
				want = []job.Kind{job.Inventory, job.Clean, job.Clean}
			}
			if _, m := b.bmc.Now(); m.Image != "" || b.power() != bmc.On || !slices.Equal(b.ran, want) {
				t.Errorf("%s, seed %d: power %s, the drive holds %q, the agent ran %v", image, seed, b.power(), m.Image, b.ran)
			}
		}
	}
}

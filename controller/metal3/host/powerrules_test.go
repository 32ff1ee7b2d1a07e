package host

import (
	"slices"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// powerChanges returns the number of the BMC's power requests so far.
func (b *bench) powerChanges() int {
	return b.verbs(bmctest.SetPower, func(bmctest.Call) bool { return true })
}

// waitForAgent makes passes until the host waits in a state for an agent that does not
// report.
func (b *bench) waitForAgent(s metal3.ProvisioningState) {
	b.t.Helper()
	b.until(string(s), in(s))
	b.deaf = true
	b.until("waiting for the agent", func(h *metal3.BareMetalHost) bool {
		_, media := b.bmc.Now()
		return in(s)(h) && b.power() == bmc.On && media.Image != ""
	})
	b.passes(1)
}

// B-50: a reboot annotation with force ends the wait of an inspection or a deployment, whose
// operation begins again with another boot. Without force it is ignored there.
func TestForcedRebootRestartsTheWaitingOperation(t *testing.T) {
	for state, end := range map[metal3.ProvisioningState]metal3.ProvisioningState{
		metal3.StateInspecting:   metal3.StatePreparing,
		metal3.StateProvisioning: metal3.StateProvisioned,
	} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t, 1, withImage)
			b.waitForAgent(state)
			first, _ := currentBoot(b.host())
			changes := b.powerChanges()
			b.annotate(metal3.RebootAnnotationPrefix, "")
			b.passes(5)
			if now, _ := currentBoot(b.host()); now != first || b.powerChanges() != changes {
				t.Errorf("without force: boot %+v and %d power requests, want %+v and none", now, b.powerChanges()-changes, first)
			}
			b.annotate(metal3.RebootAnnotationPrefix, `{"force":true}`)
			var seen []bmc.Power
			b.until("rebooted", func(h *metal3.BareMetalHost) bool {
				seen = append(seen, b.power())
				_, still := h.Annotations[metal3.RebootAnnotationPrefix]
				return !still && seen[len(seen)-1] == bmc.On && slices.Contains(seen, bmc.Off)
			})
			if h := b.host(); h.Status.ErrorCount != 0 || h.Status.ErrorType != "" {
				t.Errorf("with force: %s %q, want a reboot before the wait for the agent ends", h.Status.ErrorType, h.Status.ErrorMessage)
			}
			if now, _ := currentBoot(b.host()); now == first || !in(state)(b.host()) {
				t.Errorf("with force: %s with boot %+v, want another boot in %s", b.host().Status.Provisioning.State, now, state)
			}
			b.deaf = false
			b.until("the end of the operation", in(end))
		})
	}
}

// B-62: changes of a provisioned host that start its deprovisioning, and those that do not.
func TestTriggersOfDeprovisioning(t *testing.T) {
	withDeploy := func(h *metal3.BareMetalHost) { h.Spec.CustomDeploy = &metal3.CustomDeploy{Method: "install_ours"} }
	qcow2 := "qcow2"
	for name, tt := range map[string]struct {
		provision, change func(*metal3.BareMetalHost)
		starts            bool
	}{
		"image removed":        {withImage, func(h *metal3.BareMetalHost) { h.Spec.Image = nil }, true},
		"image.url empty":      {withImage, func(h *metal3.BareMetalHost) { h.Spec.Image.URL = "" }, true},
		"another image.url":    {withImage, func(h *metal3.BareMetalHost) { h.Spec.Image.URL += "-2" }, true},
		"customDeploy removed": {withDeploy, func(h *metal3.BareMetalHost) { h.Spec.CustomDeploy = nil }, true},
		"method empty":         {withDeploy, func(h *metal3.BareMetalHost) { h.Spec.CustomDeploy.Method = "" }, true},
		"another method":       {withDeploy, func(h *metal3.BareMetalHost) { h.Spec.CustomDeploy.Method = "another" }, true},
		"another checksum":     {withImage, func(h *metal3.BareMetalHost) { h.Spec.Image.Checksum = "another" }, false},
		"another checksumType": {withImage, func(h *metal3.BareMetalHost) { h.Spec.Image.ChecksumType = metal3.SHA512 }, false},
		"another format":       {withImage, func(h *metal3.BareMetalHost) { h.Spec.Image.DiskFormat = &qcow2 }, false},
		"other userData":       {withImage, func(h *metal3.BareMetalHost) { h.Spec.UserData = &corev1.SecretReference{Name: "other"} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, tt.provision)
			b.until("provisioned", in(metal3.StateProvisioned))
			b.passes(5)
			jobs, changes := len(b.ran), b.powerChanges()
			b.change(tt.change)
			if tt.starts {
				b.passes(1)
				if s := b.host().Status.Provisioning.State; s != metal3.StateDeprovisioning {
					t.Errorf("after a pass the host is %s, want deprovisioning", s)
				}
				return
			}
			b.passes(20)
			if s := b.host().Status.Provisioning.State; s != metal3.StateProvisioned || len(b.ran) != jobs || b.powerChanges() != changes {
				t.Errorf("the host is %s after %d jobs and %d power requests, want provisioned and none", s, len(b.ran)-jobs, b.powerChanges()-changes)
			}
		})
	}
}

// B-120: spec.online decides the power of a host that is available, provisioned or externally
// provisioned. A host that is inspected, provisioned or deprovisioned has the power that its
// operation needs, and one that is deleted is powered off first.
func TestOnlineDecidesThePowerInThreeStates(t *testing.T) {
	online := func(on bool) func(*metal3.BareMetalHost) {
		return func(h *metal3.BareMetalHost) { h.Spec.Online = on }
	}
	external := func(h *metal3.BareMetalHost) { h.Spec.ExternallyProvisioned = true }
	for state, provision := range map[metal3.ProvisioningState]func(*metal3.BareMetalHost){
		metal3.StateAvailable: nil, metal3.StateProvisioned: withImage, metal3.StateExternallyProvisioned: external,
	} {
		b := newBench(t, 1, provision)
		b.until(string(state), in(state))
		for _, on := range []bool{true, false, true} {
			b.change(online(on))
			b.passes(10)
			if want := map[bool]bmc.Power{true: bmc.On, false: bmc.Off}[on]; b.power() != want || !in(state)(b.host()) {
				t.Errorf("%s, online: %v: power %s in state %s, want %s", state, on, b.power(), b.host().Status.Provisioning.State, want)
			}
		}
		if err := b.kube.Delete(t.Context(), b.host()); err != nil {
			t.Fatal(err)
		}
		b.until("deleted", func(h *metal3.BareMetalHost) bool { return h == nil })
		if b.power() != bmc.Off {
			t.Errorf("%s and deleted: power %s, want Off", state, b.power())
		}
	}
	for _, state := range []metal3.ProvisioningState{metal3.StateInspecting, metal3.StateProvisioning, metal3.StateDeprovisioning} {
		b := newBench(t, 1, withImage)
		if state == metal3.StateDeprovisioning {
			b.until("provisioned", in(metal3.StateProvisioned))
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
		}
		b.waitForAgent(state)
		changes := b.powerChanges()
		b.change(online(false))
		b.passes(5)
		if b.power() != bmc.On || b.powerChanges() != changes || !in(state)(b.host()) {
			t.Errorf("%s, online: false: power %s after %d requests, want On after none", state, b.power(), b.powerChanges()-changes)
		}
	}
}

// B-90: a host with the annotation, whatever its value, gets no pass: its power is not
// corrected, it is not provisioned, and not deleted. The removal of the annotation begins a
// pass, which acts at once.
func TestPausedHostContinuesWhenItIsResumed(t *testing.T) {
	for _, value := range []string{"", "metal3.io/capm3", "metal3.io/hostclaim", "by hand"} {
		b := benchProvisioned(t, nil)
		b.passes(5)
		b.annotate(metal3.PausedAnnotation, value)
		b.bmc.Press(bmc.Off)
		calls, writes := len(b.bmc.Calls()), b.statusWrites
		b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
		if err := b.kube.Delete(t.Context(), b.host()); err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if res, err := b.pass(); err != nil || res.RequeueAfter != 0 {
				t.Fatalf("%q: pass = %+v, %v, want no other", value, res, err)
			}
		}
		if len(b.bmc.Calls()) != calls || b.statusWrites != writes || !in(metal3.StateProvisioned)(b.host()) || b.power() != bmc.Off {
			t.Errorf("%q: %d calls, %d writes, state %s, power %s: want nothing", value, len(b.bmc.Calls())-calls, b.statusWrites-writes, b.host().Status.Provisioning.State, b.power())
		}
		paused := b.host()
		b.change(func(h *metal3.BareMetalHost) { delete(h.Annotations, metal3.PausedAnnotation) })
		if !hostChanged.Update(event.UpdateEvent{ObjectOld: paused, ObjectNew: b.host()}) {
			t.Errorf("%q: its removal begins no pass", value)
		}
		if _, err := b.pass(); err != nil {
			t.Fatal(err)
		}
		if len(b.bmc.Calls()) == calls || b.statusWrites == writes {
			t.Errorf("%q: the first pass after its removal does nothing", value)
		}
	}
}

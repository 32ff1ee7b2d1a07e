package host

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// maxStatusWrites is the budget of a host from its creation to provisioned.
const maxStatusWrites = 12

func TestProvisioningStaysWithinTheWriteBudget(t *testing.T) {
	b := newBench(t, 1, withImage)
	b.until("provisioned", in(metal3.StateProvisioned))
	if want := []job.Kind{job.Inventory, job.Clean, job.Write}; !cmp.Equal(b.ran, want) {
		t.Errorf("the agent ran %v, want %v", b.ran, want)
	}
	if b.statusWrites > maxStatusWrites {
		t.Errorf("%d status writes, want at most %d", b.statusWrites, maxStatusWrites)
	}
	h := b.host()
	sys, media := b.bmc.Now()
	if sys.Power != bmc.On || media.Image != "" || !h.Status.PoweredOn {
		t.Errorf("power %s, media %q, poweredOn %v: want on, with an empty drive", sys.Power, media.Image, h.Status.PoweredOn)
	}
	if h.Status.Provisioning.Image.URL != imageURL || h.Status.HardwareDetails.CPU.ClockMegahertz != 2100 || h.Status.Provisioning.ID == "" {
		t.Errorf("status %+v", h.Status)
	}
	for kind, want := range map[string]metav1.ConditionStatus{ // B-83
		metal3.ManageableCondition: metav1.ConditionTrue, metal3.ProvisionedCondition: metav1.ConditionTrue,
		metal3.ReadyCondition: metav1.ConditionTrue, metal3.ProgressingCondition: metav1.ConditionFalse,
		metal3.AvailableForProvisioningCondition: metav1.ConditionFalse,
	} {
		if c := meta.FindStatusCondition(h.Status.Conditions, kind); c == nil || c.Status != want {
			t.Errorf("condition %s = %+v, want %s (B-83)", kind, c, want)
		}
	}
	quiet := b.statusWrites
	for range 20 {
		if _, err := b.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if b.statusWrites != quiet {
		t.Errorf("%d status writes of a host at rest, want none (B-06)", b.statusWrites-quiet)
	}
}

func TestFailedActionsAreReportedAndRetried(t *testing.T) {
	broken := errors.New("the BMC says no")
	for _, tt := range []struct {
		verb  bmctest.Verb
		state metal3.ProvisioningState
		want  metal3.ErrorType
	}{
		{bmctest.InsertMedia, metal3.StateInspecting, metal3.InspectionError},
		{bmctest.SetBoot, metal3.StateInspecting, metal3.InspectionError},
		{bmctest.SetPower, metal3.StateInspecting, metal3.InspectionError},
		{bmctest.EjectMedia, metal3.StatePreparing, metal3.PreparationError},
		{bmctest.InsertMedia, metal3.StateProvisioning, metal3.ProvisioningError},
		{bmctest.SetPower, metal3.StateProvisioning, metal3.ProvisioningError},
		{bmctest.ReadSystem, metal3.StateProvisioning, metal3.RegistrationError},
	} {
		t.Run(string(tt.verb)+" while "+string(tt.state), func(t *testing.T) {
			b := newBench(t, 1, withImage)
			b.until(string(tt.state), in(tt.state))
			b.bmc.FailNext(tt.verb, broken)
			b.until("error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
			s := b.host().Status
			if s.ErrorType != tt.want || !strings.Contains(s.ErrorMessage, broken.Error()) || s.ErrorCount != 1 || s.OperationalStatus != metal3.OperationalStatusError {
				t.Errorf("status %s, %q, count %d, %s: want %s", s.ErrorType, s.ErrorMessage, s.ErrorCount, s.OperationalStatus, tt.want)
			}
			b.until("provisioned all the same", in(metal3.StateProvisioned))
			if s := b.host().Status; s.ErrorType != "" || s.ErrorCount != 0 || s.OperationalStatus != metal3.OperationalStatusOK {
				t.Errorf("afterwards status %s, count %d, %s: want no error", s.ErrorType, s.ErrorCount, s.OperationalStatus)
			}
		})
	}
}

// B-14: a short silence of the BMC is no error of a registered host.
func TestUnreachableBMCIsRetriedSilently(t *testing.T) {
	b := newBench(t, 1, nil)
	b.until("inspecting", in(metal3.StateInspecting))
	b.bmc.Unplug()
	if _, err := b.pass(); !errors.Is(err, bmc.ErrUnreachable) {
		t.Fatalf("Reconcile = %v, want ErrUnreachable for the queue to retry", err)
	}
	if s := b.host().Status; s.ErrorType != "" {
		t.Errorf("error %s (%s), want none", s.ErrorType, s.ErrorMessage)
	}
	b.bmc.Plug()
	b.until("available", in(metal3.StateAvailable))
}

func TestSilentAgentEndsInAnInspectionErrorAndAnotherBoot(t *testing.T) {
	b := newBench(t, 1, nil)
	b.deaf = true
	b.until("inspection error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType == metal3.InspectionError })
	_, first := b.bmc.Now()
	b.deaf = false
	b.until("available", in(metal3.StateAvailable))
	inserted := map[string]bool{}
	for _, c := range b.bmc.Calls() {
		if c.Verb == bmctest.InsertMedia {
			inserted[c.Image] = true
		}
	}
	if len(inserted) != 2 || !inserted[first.Image] {
		t.Errorf("media %v: want the first and another, with a token of its own", inserted)
	}
}

// B-59 B-66: after a failure the disks are cleaned and the operation is retried.
func TestFailedWriteIsDeprovisionedAndRetried(t *testing.T) {
	b := newBench(t, 1, withImage)
	b.answers[job.Write] = job.Report{State: job.Failed, Error: "checksum differs"}
	b.until("provisioning error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType == metal3.ProvisioningError })
	want := "Image provisioning failed (url: " + imageURL + ", checksum: d41d8cd98f00b204e9800998ecf8427e): checksum differs"
	if got := b.host().Status.ErrorMessage; got != want {
		t.Errorf("message %q, want %q (B-59)", got, want)
	}
	b.until("deprovisioning", in(metal3.StateDeprovisioning))
	b.answers[job.Write] = job.Report{State: job.Done}
	b.until("provisioned", in(metal3.StateProvisioned))
	if want := []job.Kind{job.Inventory, job.Clean, job.Write, job.Clean, job.Clean, job.Write}; !cmp.Equal(b.ran, want) {
		t.Errorf("the agent ran %v, want %v", b.ran, want)
	}
}

func TestImageChangedDuringTheWriteIsReplaced(t *testing.T) {
	b := newBench(t, 1, withImage)
	b.answers[job.Write] = job.Report{State: job.Running, Percent: 10}
	b.until("writing", func(*metal3.BareMetalHost) bool { return len(b.ran) == 3 })
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image.URL = "http://192.0.2.1/other" })
	b.answers[job.Write] = job.Report{State: job.Done}
	b.until("deprovisioning (B-58)", in(metal3.StateDeprovisioning))
	b.until("provisioned", in(metal3.StateProvisioned))
	if got := b.host().Status.Provisioning.Image.URL; got != "http://192.0.2.1/other" {
		t.Errorf("image %s, want the other", got)
	}
}

// The exact texts that scripts search for.
func TestRegistrationErrorsHaveUpstreamsTexts(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*metal3.BareMetalHost)
		secret map[string][]byte
		want   string
		state  metal3.ProvisioningState // registering if empty
		status metal3.OperationalStatus // error if empty
	}{
		"no secret B-111":       {change: func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "x" }, want: "BMC CredentialsName secret doesn't exist The BMC secret lab/x does not exist", status: metal3.OperationalStatusDiscovered},
		"no name B-112":         {change: func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "" }, want: "No BMC CredentialsName defined The BMC secret reference is empty", status: metal3.OperationalStatusDiscovered},
		"no address B-112":      {change: func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "" }, want: "Empty BMC address Missing BMC connection detail 'Address'", state: metal3.StateUnmanaged, status: metal3.OperationalStatusDiscovered},
		"scheme B-112":          {change: func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "foo://192.0.2.2" }, want: "Unknown BMC type 'foo' for address foo://192.0.2.2"},
		"ipmi B-47":             {change: func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "ipmi://192.0.2.2" }, want: "BMC driver ipmi requires a provisioning network"},
		"pxe B-47":              {change: func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "redfish://192.0.2.2/redfish/v1/Systems/1" }, want: "BMC driver redfish requires a provisioning network"},
		"mac B-47":              {change: func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "libvirt://192.0.2.2" }, want: "BMC driver ipmi requires a BootMACAddress value"},
		"mac uninspected B-131": {change: func(h *metal3.BareMetalHost) { h.Spec.InspectionMode = metal3.InspectionModeDisabled }, want: "BMC driver redfish requires a BootMACAddress value"},
		"legacy mode by HTTP": {change: func(h *metal3.BareMetalHost) {
			h.Spec.BMC.Address, h.Spec.BootMode = "redfish-uefihttp://192.0.2.2/redfish/v1/Systems/1", metal3.Legacy
		}, want: "BMC type redfish-uefihttp boots by HTTP, which legacy firmware cannot: set bootMode to UEFI"},
		"no user B-110":     {secret: map[string][]byte{"password": []byte("x")}, want: "Validation error with BMC credentials: Missing BMC connection detail 'username' in credentials", status: metal3.OperationalStatusDiscovered},
		"no password B-110": {secret: map[string][]byte{"username": []byte("x"), "password": []byte(" \n")}, want: "Validation error with BMC credentials: Missing BMC connection details 'password' in credentials", status: metal3.OperationalStatusDiscovered},
		"profile B-190":     {change: func(h *metal3.BareMetalHost) { h.Spec.HardwareProfile = "toaster" }, want: `no hardware profile named "toaster"`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, tt.change)
			if tt.secret != nil {
				var s corev1.Secret
				if err := b.kube.Get(context.Background(), client.ObjectKey{Namespace: "lab", Name: "secret"}, &s); err != nil {
					t.Fatal(err)
				}
				s.Data = tt.secret
				if err := b.kube.Update(context.Background(), &s); err != nil {
					t.Fatal(err)
				}
			}
			b.until("error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
			s := b.host().Status
			state, status := cmpOr(tt.state, metal3.StateRegistering), cmpOr(tt.status, metal3.OperationalStatusError)
			if s.ErrorType != metal3.RegistrationError || s.ErrorMessage != tt.want || s.Provisioning.State != state || s.OperationalStatus != status || s.ErrorCount != 1 {
				t.Errorf("%s %s in %s, count %d: %q\nwant %s in %s: %q", s.OperationalStatus, s.ErrorType, s.Provisioning.State, s.ErrorCount, s.ErrorMessage, status, state, tt.want)
			}
		})
	}
}

func TestDeletionAlwaysEnds(t *testing.T) {
	for name, tt := range map[string]struct {
		from metal3.ProvisioningState
		make func(*bench)
	}{
		"provisioned":                         {metal3.StateProvisioned, nil},
		"available":                           {metal3.StateAvailable, nil},
		"with a BMC that is gone (B-69 B-70)": {metal3.StateProvisioned, func(b *bench) { b.bmc.Unplug() }},
		"with an agent that never comes up again (B-69)": {metal3.StateProvisioned, func(b *bench) { b.deaf = true }},
		"while it is inspected":                          {metal3.StateInspecting, nil},
		"before it was registered":                       {metal3.StateRegistering, func(b *bench) { b.bmc.Unplug() }},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) {
				if tt.from == metal3.StateProvisioned {
					withImage(h)
				}
			})
			if tt.from == metal3.StateRegistering && tt.make != nil {
				tt.make(b)
			}
			b.until(string(tt.from), in(tt.from))
			if tt.make != nil {
				tt.make(b)
			}
			if err := b.kube.Delete(context.Background(), b.host()); err != nil {
				t.Fatal(err)
			}
			b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
			var s corev1.Secret
			if err := b.kube.Get(context.Background(), client.ObjectKey{Namespace: "lab", Name: "secret"}, &s); err != nil || len(s.Finalizers) > 0 {
				t.Errorf("the secret keeps its finalizers %v (%v): nobody would ever remove them (B-71)", s.Finalizers, err)
			}
			if n := len(b.r.memory.hosts); n > 0 {
				t.Errorf("the controller still has the memory of %d hosts", n)
			}
		})
	}
}

// B-21 B-41: a host without BMC details is unmanaged and discovered, and left alone.
func TestHostWithoutDetailsIsUnmanaged(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.BMC = metal3.BMCDetails{} })
	b.until("unmanaged", in(metal3.StateUnmanaged))
	if res, err := b.pass(); err != nil || res.RequeueAfter != 0 || b.host().Status.OperationalStatus != metal3.OperationalStatusDiscovered {
		t.Errorf("pass = %+v, %v, status %s: want discovered, and nothing to do", res, err, b.host().Status.OperationalStatus)
	}
	if calls := b.bmc.Calls(); len(calls) > 0 {
		t.Errorf("the BMC was called: %v", calls)
	}
}

// B-123: first a soft power off; a system that ignores it is powered off hard.
func TestSystemThatIgnoresSoftOffIsPoweredOffAfterThreeMinutes(t *testing.T) {
	b := newBench(t, 1, withImage)
	b.bmc.Deaf = true
	b.until("provisioned", in(metal3.StateProvisioned))
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Online = false })
	b.bmc.Forget()
	start := b.clock.Now()
	b.until("off", func(h *metal3.BareMetalHost) bool { return !h.Status.PoweredOn })
	var asked []bmc.PowerAction
	for _, c := range b.bmc.Calls() {
		if c.Verb == bmctest.SetPower {
			asked = append(asked, c.Power)
		}
	}
	if want := []bmc.PowerAction{bmc.PowerSoftOff, bmc.PowerOff}; !cmp.Equal(asked, want) {
		t.Errorf("asked for %v, want %v", asked, want)
	}
	if waited := b.clock.Since(start); waited < 180*time.Second || waited > 200*time.Second {
		t.Errorf("waited %v, want three minutes", waited)
	}
}

// B-90: nothing is done to a paused host, not even deletion.
func TestPausedHostIsLeftAlone(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{metal3.PausedAnnotation: "metal3.io/capm3"}
	})
	for range 5 {
		if res, err := b.pass(); err != nil || res.RequeueAfter != 0 {
			t.Fatalf("pass = %+v, %v", res, err)
		}
	}
	if h := b.host(); len(h.Finalizers) > 0 || b.statusWrites > 0 || len(b.bmc.Calls()) > 0 {
		t.Errorf("finalizers %v, %d writes, calls %v: want nothing", h.Finalizers, b.statusWrites, b.bmc.Calls())
	}
}

// B-44 B-51: a host without inspection is provisioned, too.
func TestHostWithoutInspectionIsProvisioned(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		withImage(h)
		h.Spec.InspectionMode = metal3.InspectionModeDisabled
		h.Spec.BootMACAddress = "02:00:00:00:00:01"
	})
	b.until("provisioned", in(metal3.StateProvisioned))
	if want := []job.Kind{job.Clean, job.Write}; !cmp.Equal(b.ran, want) {
		t.Errorf("the agent ran %v, want %v", b.ran, want)
	}
}

// B-72 B-260: an externally provisioned host changes its power and is never
// written to.
func TestExternallyProvisionedHostOnlyChangesPower(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		withImage(h)
		h.Spec.ExternallyProvisioned = true
	})
	b.until("on", func(h *metal3.BareMetalHost) bool {
		return in(metal3.StateExternallyProvisioned)(h) && h.Status.PoweredOn
	})
	if err := b.kube.Delete(context.Background(), b.host()); err != nil {
		t.Fatal(err)
	}
	b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
	sys, _ := b.bmc.Now()
	for _, c := range b.bmc.Calls() {
		if c.Verb == bmctest.InsertMedia || c.Verb == bmctest.SetBoot {
			t.Errorf("the BMC was told %+v", c)
		}
	}
	if len(b.ran) > 0 || sys.Power != bmc.Off {
		t.Errorf("the agent ran %v, power %s: want nothing, and off", b.ran, sys.Power)
	}
}

// B-61: cleaning is skipped if it is disabled.
func TestCleaningCanBeDisabled(t *testing.T) {
	b := newBench(t, 1, func(h *metal3.BareMetalHost) {
		withImage(h)
		h.Spec.AutomatedCleaningMode = metal3.CleaningModeDisabled
	})
	b.until("provisioned", in(metal3.StateProvisioned))
	b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
	b.until("available", in(metal3.StateAvailable))
	if want := []job.Kind{job.Inventory, job.Write}; !cmp.Equal(b.ran, want) {
		t.Errorf("the agent ran %v, want %v", b.ran, want)
	}
}

// B-55 B-98: an annotation requests another inspection, once.
func TestInspectionCanBeRequestedAgain(t *testing.T) {
	b := newBench(t, 1, nil)
	b.until("available", in(metal3.StateAvailable))
	b.change(func(h *metal3.BareMetalHost) {
		h.Annotations = map[string]string{metal3.InspectAnnotationPrefix: ""}
	})
	b.until("inspecting", in(metal3.StateInspecting))
	b.until("available again", in(metal3.StateAvailable))
	for range 10 {
		if _, err := b.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if want := []job.Kind{job.Inventory, job.Inventory}; !cmp.Equal(b.ran, want) || len(b.host().Annotations) > 0 {
		t.Errorf("the agent ran %v, annotations %v: want two inspections and the annotation gone", b.ran, b.host().Annotations)
	}
}

// The conflicting update may be one that triggers no pass, such as a label.
func TestUpdateConflictRequeuesTheHost(t *testing.T) {
	b := newBench(t, 1, nil)
	b.conflicts = 1
	if res, err := b.pass(); err != nil || res.RequeueAfter == 0 {
		t.Fatalf("pass that lost = %+v, %v, want another one soon", res, err)
	}
	b.until("available", in(metal3.StateAvailable))
}

package firmware

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/metal3/host"
)

func newSeed(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 0)) }

// serverOf returns the argument for a part.
func serverOf(b *bench, h *metal3.BareMetalHost) host.Server {
	s, err := b.bmc.System(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return host.Server{Host: h, Client: b.bmc, System: s}
}

// TestPreparationWaitsForTheFirmwareObjects lets only the host controller work at
// first: the host, which was not inspected, must not become available before its
// HostFirmwareSettings and HostFirmwareComponents exist (B-43).
func TestPreparationWaitsForTheFirmwareObjects(t *testing.T) {
	b := newBench(t, nil)
	woken := ""
	b.r.Changed = func(uid string) { woken = uid }
	for range 20 {
		if _, err := b.hosts.Reconcile(b.ctx, b.request()); err != nil {
			t.Fatal(err)
		}
		b.clock.Step(time.Minute)
	}
	h := b.host()
	if got := h.Status.Provisioning.State; got != metal3.StatePreparing {
		t.Errorf("before its firmware was read the host is %q, want preparing", got)
	}
	b.look()
	if woken != string(h.UID) {
		t.Errorf("the host %q was woken, want %q", woken, h.UID)
	}
	b.until("available", b.settled)
	for _, o := range []client.Object{&metal3.HostFirmwareSettings{}, &metal3.HostFirmwareComponents{}} {
		if err := b.kube.Get(b.ctx, b.request().NamespacedName, o); err != nil {
			t.Errorf("%T: %v", o, err)
		}
	}
}

var (
	newBIOS = metal3.FirmwareUpdate{Component: "bios", URL: "http://192.0.2.9/bios"}
	newNIC  = metal3.FirmwareUpdate{Component: "nic:1", URL: "http://192.0.2.9/nic"}
	sameBMC = metal3.FirmwareUpdate{Component: "bmc", URL: "http://192.0.2.9/same"}
)

// B-211 B-212 B-52.
func TestFirmwareIsUpdated(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.wantUpdates(newNIC, newBIOS, sameBMC)
	b.until("preparing", b.in(metal3.StatePreparing))
	b.until("updated", b.settled)
	hfc := b.components()
	want := []metal3.FirmwareComponentStatus{
		{Component: "bios", InitialVersion: "1.0", CurrentVersion: "1.1", LastVersionFlashed: "1.1"},
		{Component: "bmc", InitialVersion: "2.0", CurrentVersion: "2.0", LastVersionFlashed: "2.0"},
		{Component: "nic:1", InitialVersion: "3.0", CurrentVersion: "3.1", LastVersionFlashed: "3.1"},
	}
	if d := cmp.Diff(want, hfc.Status.Components, cmpopts.IgnoreTypes(metav1.Time{})); d != "" {
		t.Errorf("components (-want +got):\n%s", d)
	}
	if d := cmp.Diff(hfc.Spec.Updates, hfc.Status.Updates); d != "" || len(b.errs) > 0 || hfc.Status.Components[0].UpdatedAt.IsZero() {
		t.Errorf("errors %v, updates (-spec +status):\n%s", b.errs, d)
	}
	if n := b.bmc.Begun(); n != 3 {
		t.Errorf("%d updates begun, want 3", n)
	}
	b.wantUpdates(newNIC, newBIOS, sameBMC, metal3.FirmwareUpdate{Component: "bmc", URL: "http://192.0.2.9/same?again"})
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Images["http://192.0.2.9/same?again"] = "2.1" })
	b.until("preparing", b.in(metal3.StatePreparing))
	b.until("updated", b.settled)
	if n := b.bmc.Begun(); n != 4 {
		t.Errorf("%d updates begun, want 4: only what changed is sent (B-212)", n)
	}
	b.wantUpdates()
	b.look()
	if got := b.components(); len(got.Status.Updates) != 0 || b.condition(changeDetected, got.Status.Conditions) {
		t.Errorf("status %+v when nothing is wanted", got.Status)
	}
}

// B-211.
func TestInvalidComponentsAreRefused(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.wantUpdates(metal3.FirmwareUpdate{Component: "fan", URL: "http://192.0.2.9/fan"})
	b.look()
	want := "ValidationFailed Invalid Firmware Components: [component fan is invalid, only 'bmc', 'bios', or names starting with 'nic:' are allowed as update names]"
	if got := strings.Join(b.messages(), "\n"); !strings.Contains(got, want) {
		t.Errorf("events %s, want %s", got, want)
	}
	for _, c := range b.components().Status.Conditions {
		if c.Type == valid && (c.Status != metav1.ConditionFalse || c.Reason != "InvalidComponent") {
			t.Errorf("condition %+v", c)
		}
	}
	for range 5 {
		b.pass()
	}
	if !b.in(metal3.StateAvailable)() || b.bmc.Begun() > 0 {
		t.Errorf("states %v, %d updates begun: want it available and alone (B-54)", b.states, b.bmc.Begun())
	}
}

// B-53 B-212: a failed update is reported and retried; updates done before are not
// repeated.
func TestUpdateThatFailsHalfway(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.wantUpdates(newNIC, newBIOS)
	b.until("the NIC is done", func() bool { return b.components().Status.Components[2].LastVersionFlashed == "3.1" })
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Breaks = true })
	b.until("an error", func() bool { return b.host().Status.ErrorType != "" })
	s := b.host().Status
	want := "firmware update of bios from http://192.0.2.9/bios failed: writing the image was interrupted"
	if s.ErrorType != metal3.PreparationError || s.ErrorMessage != want || s.Provisioning.State != metal3.StatePreparing {
		t.Errorf("%s %q in %s, want a preparation error %q", s.ErrorType, s.ErrorMessage, s.Provisioning.State, want)
	}
	if got := b.components(); got.Status.Updates != nil || !b.condition(changeDetected, got.Status.Conditions) {
		t.Errorf("status %+v, want updates nil (B-53)", got.Status)
	}
	b.until("updated", b.settled)
	if got := b.components().Status.Components[0]; got.CurrentVersion != "1.1" || b.bmc.Begun() != 3 {
		t.Errorf("%+v after %d updates, want 1.1 after 3", got, b.bmc.Begun())
	}
}

func TestImageThatCannotBeFetched(t *testing.T) {
	b := newBench(t, nil)
	b.until("available", b.settled)
	b.wantUpdates(metal3.FirmwareUpdate{Component: "bios", URL: "http://u:hidden@192.0.2.9/nowhere"})
	b.until("an error", func() bool { return b.host().Status.ErrorType != "" })
	if m := b.host().Status.ErrorMessage; !strings.Contains(m, "the image could not be fetched") || strings.Contains(m, "hidden") {
		t.Errorf("message %q: want why, without the password", m)
	}
	b.wantUpdates(newBIOS)
	b.until("updated", b.settled)
	if got := b.components().Status.Components[0].CurrentVersion; got != "1.1" {
		t.Errorf("BIOS %s, want 1.1", got)
	}
	b.wantUpdates(metal3.FirmwareUpdate{Component: "nic:9", URL: newNIC.URL})
	b.until("an error", func() bool { return b.host().Status.ErrorType != "" })
	if m := b.host().Status.ErrorMessage; !strings.Contains(m, "no component nic:9") {
		t.Errorf("message %q", m)
	}
	b.wantUpdates()
	b.until("available", b.settled)
}

// The image is pushed to a BMC that fetches none.
func TestImagesArePushed(t *testing.T) {
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "3.7") }))
	defer files.Close()
	b := newBench(t, nil)
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Pushes = true })
	b.until("available", b.settled)
	b.wantUpdates(metal3.FirmwareUpdate{Component: "nic:1", URL: files.URL + "/nic.img"})
	b.until("preparing", b.in(metal3.StatePreparing))
	b.until("updated", b.settled)
	if got := b.components().Status.Components[2].CurrentVersion; got != "3.7" {
		t.Errorf("NIC %s, want 3.7", got)
	}
}

// Whatever is killed and when, an available host runs the requested versions, and
// an update is repeated only if its result cannot be known.
func TestKilledWhileFirmwareIsUpdated(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := newBench(t, nil)
			b.until("available", b.settled)
			b.seed = newSeed(seed)
			b.crash = func() bool { return b.seed.IntN(4) == 0 }
			b.wantUpdates(newNIC, newBIOS)
			asked := false
			b.until("updated", func() bool {
				if b.seed.IntN(4) == 0 {
					b.replace()
				}
				if b.seed.IntN(8) == 0 {
					b.bmc.FailNext([]bmctest.Verb{bmctest.SetPower, bmctest.Update, bmctest.ReadTask, bmctest.ReadComponent}[b.seed.IntN(4)], fmt.Errorf("test: %w", bmc.ErrUnreachable))
				}
				asked = asked || b.in(metal3.StatePreparing)()
				if asked && b.in(metal3.StateAvailable)() {
					var components []bmc.Component
					b.bmc.Firmware(func(w *bmctest.Firmware) { components = append(components, w.Components...) })
					if components[0].Version != "1.1" || components[2].Version != "3.1" {
						t.Fatalf("available with %+v", components)
					}
				}
				return asked && b.settled()
			})
		})
	}
}

// B-220: the firmware of a host in use is updated while it is off, if its policy
// says so, and not without a policy.
func TestServicing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy *metal3.HostUpdatePolicySpec
		live   bool
	}{
		{"no policy", nil, false},
		{"on preparing", &metal3.HostUpdatePolicySpec{FirmwareSettings: "onPreparing", FirmwareUpdates: "onPreparing"}, false},
		{"on reboot", &metal3.HostUpdatePolicySpec{FirmwareSettings: "onReboot", FirmwareUpdates: "onReboot"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := provisioned(t, tt.policy)
			b.want(metal3.DesiredSettingsMap{"Cores": num(4)})
			b.wantUpdates(newNIC)
			for range 10 {
				b.pass()
			}
			if b.now("Cores") != int64(8) || b.bmc.Begun() > 0 {
				t.Fatalf("changed while the host is on")
			}
			b.bmc.Press(bmc.Off) // as a reboot would
			seen := map[metal3.OperationalStatus]bool{}
			ready := true
			b.until("on again", func() bool {
				h := b.host()
				seen[h.Status.OperationalStatus] = true
				if h.Status.OperationalStatus == metal3.OperationalStatusServicing {
					ready = ready && b.condition(metal3.ReadyCondition, h.Status.Conditions)
				}
				s, _ := b.bmc.Now()
				return s.Power == bmc.On && h.Status.OperationalStatus == metal3.OperationalStatusOK && len(seen) >= map[bool]int{true: 2, false: 1}[tt.live]
			})
			if got := seen[metal3.OperationalStatusServicing]; got != tt.live || tt.live && ready {
				t.Errorf("was being serviced: %v, and ready meanwhile: %v", got, ready)
			}
			want := map[bool]any{true: int64(4), false: int64(8)}[tt.live]
			if got := b.now("Cores"); got != want || b.bmc.Begun() != map[bool]int{true: 1, false: 0}[tt.live] || len(b.errs) > 0 {
				t.Errorf("Cores %v, %d updates, errors %v", got, b.bmc.Begun(), b.errs)
			}
			if b.host().Status.Provisioning.State != metal3.StateProvisioned {
				t.Errorf("states %v", b.states)
			}
		})
	}
}

// B-220: a failure is reported, retried, and ends when nothing is wanted any more.
func TestServicingThatFails(t *testing.T) {
	b := provisioned(t, &metal3.HostUpdatePolicySpec{FirmwareSettings: "onReboot"})
	b.bmc.Firmware(func(w *bmctest.Firmware) { w.Needs = map[string]bmc.Settings{"Cores": {"Virtual": "Disabled"}} })
	b.want(metal3.DesiredSettingsMap{"Cores": num(4)})
	b.look()
	b.bmc.Press(bmc.Off)
	b.until("a servicing error", func() bool { return b.host().Status.ErrorType == metal3.ServicingError })
	if s := b.host().Status; s.OperationalStatus != metal3.OperationalStatusError || !strings.Contains(s.ErrorMessage, "Cores is 8, not 4") {
		t.Errorf("%s %q", s.OperationalStatus, s.ErrorMessage)
	}
	n := b.host().Status.ErrorCount
	b.until("it has been tried again", func() bool { return b.host().Status.ErrorCount > n })
	b.want(metal3.DesiredSettingsMap{})
	b.until("on, with no error", func() bool {
		s, _ := b.bmc.Now()
		st := b.host().Status
		return s.Power == bmc.On && st.ErrorType == "" && st.OperationalStatus == metal3.OperationalStatusOK
	})
}

// provisioned returns a host in use that is on.
func provisioned(t *testing.T, policy *metal3.HostUpdatePolicySpec) *bench {
	t.Helper()
	b := newBench(t, func(h *metal3.BareMetalHost) {
		h.Status.Provisioning.State = metal3.StateExternallyProvisioned
		h.Spec.ExternallyProvisioned = true
		h.Status.Provisioning.State = metal3.StateProvisioned
		h.Spec.ExternallyProvisioned = false
		h.Spec.Image = &metal3.Image{URL: "http://192.0.2.1/image", Checksum: "d41d8cd98f00b204e9800998ecf8427e"}
		h.Status.Provisioning.Image = *h.Spec.Image
	})
	if policy != nil {
		p := &metal3.HostUpdatePolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: b.name}, Spec: *policy}
		if err := b.kube.Create(context.Background(), p); err != nil {
			t.Fatal(err)
		}
	}
	b.bmc.Press(bmc.On)
	b.pass()
	if policy != nil {
		var p metal3.HostUpdatePolicy
		if b.get(&p); len(p.OwnerReferences) != 1 {
			t.Errorf("owners of the policy %+v, want the host (B-04)", p.OwnerReferences)
		}
	}
	return b
}

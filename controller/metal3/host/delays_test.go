package host

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// B-12: the delays until the next pass.
func TestDelaysUntilTheNextPass(t *testing.T) {
	for name, tt := range map[string]struct {
		from, to time.Duration
		next     func(*testing.T) []time.Duration
	}{
		"an action at the BMC": {3 * time.Second, 3750 * time.Millisecond, func(t *testing.T) (all []time.Duration) {
			b := newBench(t, 1, withImage)
			for !in(metal3.StateAvailable)(b.host()) {
				before := b.verbs(bmctest.SetPower, func(bmctest.Call) bool { return true })
				res, err := b.pass()
				if err != nil {
					t.Fatal(err)
				}
				if b.verbs(bmctest.SetPower, func(bmctest.Call) bool { return true }) > before {
					all = append(all, res.RequeueAfter)
				}
			}
			if len(all) < 2 {
				t.Errorf("the power was changed %d times", len(all))
			}
			return all
		}},
		"the agent": {10 * time.Second, 12500 * time.Millisecond, func(t *testing.T) []time.Duration { return delays(t, waiting(t), 30) }},
		"a Secret that does not exist": {10 * time.Second, 10 * time.Second, func(t *testing.T) []time.Duration {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.BMC.CredentialsName = "none" })
			b.until("an error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
			return delays(t, b, 3)
		}},
		"a pre-provisioning image": {5 * time.Minute, 5 * time.Minute, func(t *testing.T) []time.Duration {
			b := imageBench(t)
			b.until("inspecting", in(metal3.StateInspecting))
			return delays(t, b, 3)
		}},
		"the validation of a part": {time.Minute, time.Minute, func(t *testing.T) []time.Duration {
			b := newBench(t, 1, nil)
			b.r.Parts = []Part{&scripted{name: "BIOS", states: []phase.PartState{phase.PartStale}}}
			b.until("preparing", in(metal3.StatePreparing))
			b.until("off and without its agent's medium", func(*metal3.BareMetalHost) bool {
				sys, media := b.bmc.Now()
				return sys.Power == bmc.Off && media.Image == ""
			})
			return delays(t, b, 3)
		}},
		"the end of servicing": {time.Minute, time.Minute, func(t *testing.T) []time.Duration {
			b := newBench(t, 1, withImage)
			b.until("provisioned", in(metal3.StateProvisioned))
			h := b.host()
			h.Status.OperationalStatus = metal3.OperationalStatusServicing
			if err := b.kube.Status().Update(t.Context(), h); err != nil {
				t.Fatal(err)
			}
			return delays(t, b, 1)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			distinct := map[time.Duration]bool{}
			for _, got := range tt.next(t) {
				if distinct[got] = true; got < tt.from || got > tt.to {
					t.Errorf("the next pass is after %v, want %v to %v", got, tt.from, tt.to)
				}
			}
			if name == "the agent" && len(distinct) < 10 {
				t.Errorf("the delays %v are not spread", distinct)
			}
		})
	}
}

// delays returns the delays after so many passes.
func delays(t *testing.T, b *bench, passes int) (out []time.Duration) {
	t.Helper()
	for range passes {
		res, err := b.pass()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, res.RequeueAfter)
	}
	return out
}

// B-12 B-121: a host in a stable state is looked at every minute; one that is unmanaged or
// detached every ten minutes.
func TestPollWakesHostsEveryMinuteOrEveryTen(t *testing.T) {
	for name, tt := range map[string]struct {
		status metal3.BareMetalHostStatus
		want   int // in twenty minutes
	}{
		"available": {metal3.BareMetalHostStatus{Provisioning: metal3.ProvisionStatus{State: metal3.StateAvailable}}, 20},
		"unmanaged": {metal3.BareMetalHostStatus{Provisioning: metal3.ProvisionStatus{State: metal3.StateUnmanaged}}, 2},
		"detached":  {metal3.BareMetalHostStatus{Provisioning: metal3.ProvisionStatus{State: metal3.StateProvisioned}, OperationalStatus: metal3.OperationalStatusDetached}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, 1, nil)
				h := b.host()
				h.Status = tt.status
				if err := b.kube.Status().Update(t.Context(), h); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- b.r.poll(ctx) }()
				for range 20 {
					synctest.Wait() // poll waits for its clock
					b.clock.Step(time.Minute)
				}
				synctest.Wait()
				cancel()
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
				if got := len(b.r.wake); got != tt.want {
					t.Errorf("it is woken %d times in twenty minutes, want %d", got, tt.want)
				}
			})
		})
	}
}

// B-07: changes of the specification, annotations, finalizers and Secrets begin a pass over
// a host; changes of the status and of labels do not.
func TestChangesThatBeginAPass(t *testing.T) {
	now := metav1.Now()
	for name, tt := range map[string]struct {
		change func(*metal3.BareMetalHost)
		want   bool
	}{
		"specification": {func(h *metal3.BareMetalHost) { h.Generation++ }, true},
		"annotations":   {func(h *metal3.BareMetalHost) { h.Annotations = map[string]string{"reboot.metal3.io": ""} }, true},
		"finalizers":    {func(h *metal3.BareMetalHost) { h.Finalizers = nil }, true},
		"deletion":      {func(h *metal3.BareMetalHost) { h.DeletionTimestamp = &now }, true},
		"status":        {func(h *metal3.BareMetalHost) { h.Status.PoweredOn = true }, false},
		"labels":        {func(h *metal3.BareMetalHost) { h.Labels = map[string]string{"rack": "r1"} }, false},
		"nothing":       {func(*metal3.BareMetalHost) {}, false},
	} {
		before := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Generation: 1, ResourceVersion: "1", Finalizers: []string{metal3.BareMetalHostFinalizer}}}
		after := before.DeepCopy()
		after.ResourceVersion = "2"
		tt.change(after)
		if got := hostChanged.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != tt.want {
			t.Errorf("a change of %s begins a pass: %v, want %v", name, got, tt.want)
		}
	}
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.PreprovisioningNetworkDataName = "network" })
	for secret, want := range map[string]int{"secret": 1, "network": 1, "another": 0} {
		got := b.r.hostsOfSecret(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: secret}})
		if len(got) != want {
			t.Errorf("a change of the Secret %s begins passes over %v, want %d", secret, got, want)
		}
	}
}

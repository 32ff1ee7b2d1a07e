package host

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

func TestSlotsAreLimited(t *testing.T) { // B-73
	var m memories
	take := func(uid types.UID, serving []types.UID) bool { return m.takeSlot(uid, serving, 2) }
	serving := []types.UID{"a"}
	if !take("b", serving) || take("c", serving) {
		t.Error("want a place for the second host, and none for the third")
	}
	if !take("b", serving) || !take("a", serving) {
		t.Error("want a host that has a place to keep it")
	}
	m.restSlot("a")
	if !take("c", serving) {
		t.Error("want a place: one host waits after a failure")
	}
	if take("a", serving) {
		t.Error("want none for it when it tries again: its place was given away")
	}
	m.leaveSlot("c")
	if !take("a", serving) || m.resting("a") {
		t.Error("want a place for it once another has left")
	}
}

// However many hosts ask at the same time, no more than the limit get a slot.
func TestSlotsAreNotGrantedTwice(t *testing.T) { // B-73
	var m memories
	var got atomic.Int32
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			if m.takeSlot(types.UID(fmt.Sprint(i)), nil, 20) {
				got.Add(1)
			}
		})
	}
	all.Wait()
	if got.Load() != 20 {
		t.Errorf("%d places given of 20", got.Load())
	}
}

// B-73: the address determines which hosts need a slot.
func TestOnlyNetworkBootHostsNeedASlot(t *testing.T) {
	for address, want := range map[string]bool{
		"ipmi://192.0.2.2": true, "192.0.2.2": true, "libvirt://192.0.2.2": true, "redfish://192.0.2.2": true, "idrac-redfish://192.0.2.2": true, "ilo5-redfish://192.0.2.2": true,
		"redfish-virtualmedia://192.0.2.2": false, "idrac-virtualmedia://192.0.2.2": false, "ilo5-virtualmedia://192.0.2.2": false,
		"redfish-uefihttp://192.0.2.2/redfish/v1/Systems/1": false, "foo://192.0.2.2": false, "": false,
	} {
		b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = address })
		b.r.Limit = 1
		b.create(busy(1))
		if full, err := b.r.slotsFull(t.Context(), b.host()); err != nil || full != want {
			t.Errorf("%s: full = %v, %v, want %v", address, full, err, want)
		}
		b.r.Limit = -1
		if full, err := b.r.slotsFull(t.Context(), b.host()); err != nil || full {
			t.Errorf("%s, no limit: full = %v, %v", address, full, err)
		}
	}
}

// busy returns another host, which is being provisioned over the network.
func busy(n int) *metal3.BareMetalHost {
	h := &metal3.BareMetalHost{ObjectMeta: metav1.ObjectMeta{Namespace: "lab", Name: fmt.Sprintf("busy-%d", n), UID: types.UID(fmt.Sprintf("busy-%d", n))}}
	h.Spec.BMC.Address = "ipmi://192.0.2.9"
	h.Status.Provisioning.State = metal3.StateProvisioning
	return h
}

func TestDefaultSlotLimit(t *testing.T) { // B-73
	b := newBench(t, 1, func(h *metal3.BareMetalHost) { h.Spec.BMC.Address = "ipmi://192.0.2.2" })
	for n := range 20 {
		if full, err := b.r.slotsFull(t.Context(), b.host()); err != nil || full {
			t.Fatalf("with %d hosts: full = %v, %v", n, full, err)
		}
		b.r.memory.leaveSlot(b.host().UID)
		b.create(busy(n))
	}
	if full, err := b.r.slotsFull(t.Context(), b.host()); err != nil || !full {
		t.Errorf("with 20 hosts: full = %v, %v", full, err)
	}
}

// B-15 B-73 B-80 B-280: the status of a host without a slot, and that it continues.
func TestHostWithoutASlotIsDelayed(t *testing.T) {
	b := newBench(t, 1, nil)
	reg := prometheus.NewRegistry()
	c := b.r.Config
	c.Metrics = reg
	var err error
	if b.r, err = New(c); err != nil {
		t.Fatal(err)
	}
	b.until("registering", in(metal3.StateRegistering))
	h, o := b.host(), &observation{facts: phase.Facts{State: metal3.StateRegistering, HasAddress: true, NoSlot: true}, system: bmc.System{ID: "x"}}
	d := phase.Decide(o.facts)
	after, err := b.r.record(t.Context(), h, o, d)
	if err != nil || after < time.Minute || after > 2*time.Minute {
		t.Errorf("record = %v, %v, want a look again within one to two minutes", after, err)
	}
	b.r.metrics.countDecision(h, metal3.StateRegistering, d)
	b.r.metrics.countDecision(h, metal3.StateProvisioned, d)
	if s := b.host().Status; s.OperationalStatus != metal3.OperationalStatusDelayed || s.Provisioning.State != metal3.StateRegistering || s.ErrorType != "" {
		t.Errorf("status %+v, want delayed", s)
	}
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counted := map[string]float64{}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), "metal3_delayed_") {
			counted[f.GetName()] = f.GetMetric()[0].GetCounter().GetValue()
		}
	}
	if counted["metal3_delayed__provisioning_total"] != 1 || counted["metal3_delayed__deprovisioning_total"] != 1 {
		t.Errorf("counted %v", counted)
	}
	b.until("inspecting", in(metal3.StateInspecting))
	if s := b.host().Status; s.OperationalStatus != metal3.OperationalStatusOK {
		t.Errorf("operational status %s, want OK", s.OperationalStatus)
	}
}

// B-12 B-13 B-121: which hosts are reconciled without a trigger, and how often.
func TestPollCoversStatesWithoutOtherTriggers(t *testing.T) {
	for name, tt := range map[string]struct {
		status metal3.BareMetalHostStatus
		every  int // rounds; 0 means never
	}{
		"available":    {metal3.BareMetalHostStatus{Provisioning: metal3.ProvisionStatus{State: metal3.StateAvailable}}, 1},
		"provisioned":  {metal3.BareMetalHostStatus{Provisioning: metal3.ProvisionStatus{State: metal3.StateProvisioned}}, 1},
		"in error":     {metal3.BareMetalHostStatus{Provisioning: metal3.ProvisionStatus{State: metal3.StateProvisioned}, ErrorType: metal3.PowerManagementError}, 0},
		"detached":     {metal3.BareMetalHostStatus{Provisioning: metal3.ProvisionStatus{State: metal3.StateProvisioned}, OperationalStatus: metal3.OperationalStatusDetached}, 10},
		"unmanaged":    {metal3.BareMetalHostStatus{Provisioning: metal3.ProvisionStatus{State: metal3.StateUnmanaged}}, 10},
		"provisioning": {metal3.BareMetalHostStatus{Provisioning: metal3.ProvisionStatus{State: metal3.StateProvisioning}}, 0},
	} {
		seen := 0
		for round := range 100 {
			if pollDue(&tt.status, round+1) {
				seen++
			}
		}
		want := 0
		if tt.every > 0 {
			want = 100 / tt.every
		}
		if seen != want {
			t.Errorf("%s: looked at %d times in 100 rounds, want %d", name, seen, want)
		}
	}
}

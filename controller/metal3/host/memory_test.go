package host

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// fullMemory returns a memory with a value in every field.
func fullMemory(t *testing.T, now time.Time) hostMemory {
	t.Helper()
	m := hostMemory{
		softOff: &now, power: &powerChange{target: bmc.On, first: now, latest: now}, silentSince: &now, dataRetry: &dataRetry{at: now},
		restartedFor: "boot", reading: &bmcReading{at: now}, slot: slotResting, inventory: &inventoryReading{next: now}, bmc: "bmc", system: "id",
	}
	for v, i := reflect.ValueOf(m), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Fatalf("fullMemory leaves %s empty: add it here", v.Type().Field(i).Name)
		}
	}
	return m
}

func TestDeletedHostLeavesNoMemory(t *testing.T) {
	for name, from := range map[string]metal3.ProvisioningState{"available": metal3.StateAvailable, "inspecting": metal3.StateInspecting} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, 1, nil)
			b.until(string(from), in(from))
			b.r.memory.update(b.host().UID, func(m *hostMemory) { *m = fullMemory(t, b.clock.Now()) })
			if err := b.kube.Delete(context.Background(), b.host()); err != nil {
				t.Fatal(err)
			}
			b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
			if len(b.r.memory.hosts) > 0 {
				t.Errorf("the controller still remembers %+v", b.r.memory.hosts)
			}
			if _, err := b.pass(); err != nil || len(b.r.memory.hosts) > 0 {
				t.Errorf("after another pass (%v) the controller remembers %+v", err, b.r.memory.hosts)
			}
		})
	}
}

func TestDetachedHostLeavesNoMemory(t *testing.T) {
	b := newBench(t, 1, nil)
	b.until("available", in(metal3.StateAvailable))
	b.r.memory.update(b.host().UID, func(m *hostMemory) { *m = fullMemory(t, b.clock.Now()) })
	b.change(func(h *metal3.BareMetalHost) { h.Annotations = map[string]string{metal3.DetachedAnnotation: ""} })
	b.until("detached", func(h *metal3.BareMetalHost) bool {
		return h.Status.OperationalStatus == metal3.OperationalStatusDetached
	})
	if len(b.r.memory.hosts) > 0 {
		t.Errorf("the controller still remembers %+v", b.r.memory.hosts)
	}
}

func TestPartsForgetADeletedHost(t *testing.T) {
	b := newBench(t, 1, nil)
	part := &scripted{name: "RAID", states: []phase.PartState{phase.PartSettled}}
	b.r.Parts = []Part{part}
	b.until("available", in(metal3.StateAvailable))
	uid := b.host().UID
	if err := b.kube.Delete(context.Background(), b.host()); err != nil {
		t.Fatal(err)
	}
	b.until("gone", func(h *metal3.BareMetalHost) bool { return h == nil })
	if !slices.Contains(part.forgot, uid) {
		t.Errorf("the part was to forget %q, want %q", part.forgot, uid)
	}
}

// An entry exists while it has something to remember: reads create none, and
// the update that clears the last field drops it.
func TestMemoryHasNoEmptyEntries(t *testing.T) {
	var m memories
	now := time.Now()
	for _, uid := range []types.UID{"a", "b"} {
		m.update(uid, func(*hostMemory) {})
		if got := m.get(uid); got != (hostMemory{}) || m.resting(uid) || len(m.hosts) > 0 {
			t.Errorf("get(%s) = %+v with %d entries, want neither", uid, got, len(m.hosts))
		}
	}
	m.update("a", func(h *hostMemory) { h.softOff = &now })
	m.restSlot("a")
	m.restSlot("b")
	m.leaveSlot("b")
	if got := m.get("a"); len(m.hosts) != 1 || got.softOff != &now || got.slot != slotResting {
		t.Errorf("get(a) = %+v with %d entries, want one with two fields", got, len(m.hosts))
	}
	m.update("a", func(h *hostMemory) { h.softOff = nil })
	m.leaveSlot("a")
	if len(m.hosts) > 0 {
		t.Errorf("%d entries, want none", len(m.hosts))
	}
	m.restSlot("b")
	m.forget("b")
	if len(m.hosts) > 0 {
		t.Errorf("%d entries after forget, want none", len(m.hosts))
	}
}

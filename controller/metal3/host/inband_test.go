package host

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// softPart creates software RAID like controller/metal3/raid, which this package cannot
// import.
type softPart struct{}

func (softPart) Name() string { return "RAID" }

func (softPart) Observe(_ context.Context, s Server) (phase.PartState, string, error) {
	some, _ := softRAID(s.Host)
	if s.Host.Spec.RAID != nil && !(some && equality.Semantic.DeepEqual(s.Host.Spec.RAID, s.Host.Status.Provisioning.RAID)) {
		return phase.PartWanted, "", nil
	}
	if s.Host.Status.Provisioning.State != metal3.StatePreparing || !some {
		return phase.PartSettled, "", nil
	}
	switch rep := s.Agent.Jobs[s.JobID("raid")]; rep.State {
	case job.Done:
		return phase.PartSettled, "", nil
	case job.Failed:
		return phase.PartFailed, rep.Error, nil
	}
	return phase.PartRunning, "", nil
}

func (softPart) Begin(h *metal3.BareMetalHost) { h.Status.Provisioning.RAID = h.Spec.RAID.DeepCopy() }

// Reset leaves an empty list, for which the agent is booted, too.
func (softPart) Reset(h *metal3.BareMetalHost) {
	h.Status.Provisioning.RAID = &metal3.RAIDConfig{SoftwareRAIDVolumes: []metal3.SoftwareRAIDVolume{}}
}

func (softPart) InBand(h *metal3.BareMetalHost) bool { _, listed := softRAID(h); return listed }

func (softPart) HasRoot(h *metal3.BareMetalHost) bool { some, _ := softRAID(h); return some }

func (softPart) Root(context.Context, Server) (Root, error) { return Root{Array: "root"}, nil }

func (softPart) Step(_ context.Context, s Server) error {
	if !s.Agent.Up {
		return nil
	}
	return s.Offer(job.Job{ID: s.JobID("raid"), Kind: job.RAID, RAID: &job.RAIDSpec{ID: s.JobID("raid")}})
}

func withSoftRAID(h *metal3.BareMetalHost) {
	h.Spec.RAID = &metal3.RAIDConfig{SoftwareRAIDVolumes: []metal3.SoftwareRAIDVolume{{Level: "1"}}}
}

// B-52 B-61 B-163 B-170: preparing boots the agent for software RAID, whatever the
// boot medium; the arrays last until the host is deprovisioned.
func TestPreparingBootsTheAgent(t *testing.T) {
	for _, scheme := range []string{"redfish-virtualmedia", "redfish", "ipmi", "redfish-uefihttp"} {
		t.Run(scheme, func(t *testing.T) {
			b := newBench(t, 1, withSoftRAID)
			if scheme != "redfish-virtualmedia" {
				b = newNetBench(t, 1, scheme, withSoftRAID)
			}
			b.answers[job.RAID] = job.Report{State: job.Done}
			b.parts = []Part{softPart{}}
			b.replace()
			b.until("available", in(metal3.StateAvailable))
			if want := []job.Kind{job.Inventory, job.RAID}; !cmp.Equal(b.ran, want) {
				t.Fatalf("the agent ran %v, want %v", b.ran, want)
			}
			if h := b.host(); h.Status.Provisioning.RootDeviceHints != nil {
				t.Errorf("root device hints %+v (B-163)", h.Status.Provisioning.RootDeviceHints)
			}
			b.change(withImage)
			b.until("provisioned", in(metal3.StateProvisioned))
			if want := []job.Kind{job.Inventory, job.RAID, job.Clean, job.Write}; !cmp.Equal(b.ran, want) || b.last.Write.Array != "root" {
				t.Fatalf("the agent ran %v, want %v; the last was %+v", b.ran, want, b.last.Write)
			}
			b.change(func(h *metal3.BareMetalHost) { h.Spec.Image = nil })
			b.until("deprovisioning", in(metal3.StateDeprovisioning))
			b.until("cleaned", func(*metal3.BareMetalHost) bool { return len(b.ran) == 5 })
			if b.last.Clean.Arrays != job.ArraysDeleted {
				t.Errorf("it was cleaned with arrays %q", b.last.Clean.Arrays)
			}
			b.until("available", in(metal3.StateAvailable))
			b.until("preparing", in(metal3.StatePreparing))
			b.until("available again", in(metal3.StateAvailable))
			if want := []job.Kind{job.Inventory, job.RAID, job.Clean, job.Write, job.Clean, job.RAID}; !cmp.Equal(b.ran, want) {
				t.Errorf("the agent ran %v, want %v", b.ran, want)
			}
		})
	}
}

// B-53: a failed job is reported, and everything is done again.
func TestSoftwareRAIDThatFails(t *testing.T) {
	b := newBench(t, 1, withSoftRAID)
	b.answers[job.RAID] = job.Report{State: job.Failed, Error: "no disk matches"}
	b.parts = []Part{softPart{}}
	b.replace()
	b.until("an error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
	if s := b.host().Status; s.ErrorType != metal3.PreparationError || s.ErrorMessage != "no disk matches" || len(s.Provisioning.RAID.SoftwareRAIDVolumes) > 0 {
		t.Errorf("status %s, %q, %+v", s.ErrorType, s.ErrorMessage, s.Provisioning.RAID)
	}
	b.answers[job.RAID] = job.Report{State: job.Done}
	b.until("available", func(h *metal3.BareMetalHost) bool {
		if m := h.Status.ErrorMessage; m != "" && m != "no disk matches" {
			t.Errorf("error %q", m)
		}
		return in(metal3.StateAvailable)(h)
	})
	if s := b.host().Status; s.ErrorType != "" || s.ErrorCount != 0 {
		t.Errorf("status %s, count %d", s.ErrorType, s.ErrorCount)
	}
}

// B-53: RAID that changes while the agent of the old one runs begins again, with an agent
// of its own and without an error.
func TestSoftwareRAIDThatChangesWhileItsAgentRuns(t *testing.T) {
	b := newBench(t, 1, withSoftRAID)
	b.answers[job.RAID] = job.Report{State: job.Running}
	b.parts = []Part{softPart{}}
	b.replace()
	b.until("the agent has its job", func(*metal3.BareMetalHost) bool { return slices.Contains(b.ran, job.RAID) })
	b.answers[job.RAID] = job.Report{State: job.Done}
	b.change(func(h *metal3.BareMetalHost) { h.Spec.RAID.SoftwareRAIDVolumes[0].Level = "0" })
	b.until("available", func(h *metal3.BareMetalHost) bool {
		if m := h.Status.ErrorMessage; m != "" {
			t.Errorf("error %q", m)
		}
		return in(metal3.StateAvailable)(h)
	})
	if want := []job.Kind{job.Inventory, job.RAID, job.RAID}; !cmp.Equal(b.ran, want) {
		t.Errorf("the agent ran %v, want %v", b.ran, want)
	}
}

// However often the controller is killed, no available host has arrays in its
// status that were not created.
func TestAnotherControllerCompletesSoftwareRAID(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, seed, withSoftRAID)
			b.answers[job.RAID] = job.Report{State: job.Done}
			b.parts = []Part{softPart{}}
			b.replace()
			m := &mortality{die: func(int) bool { return b.chance.IntN(15) == 0 }}
			m.take(b)
			made := func(h *metal3.BareMetalHost) bool {
				some, _ := softRAID(h)
				if in(metal3.StateAvailable)(h) && some && !slices.Contains(b.ran, job.RAID) {
					t.Fatalf("seed %d: available, and the agent ran %v", seed, b.ran)
				}
				return in(metal3.StateAvailable)(h) && some
			}
			b.until("available with its arrays", made)
			b.ran = nil
			b.change(withImage)
			b.until("provisioned", in(metal3.StateProvisioned))
			if slices.Contains(b.ran, job.RAID) {
				t.Errorf("seed %d: arrays were made again: %v", seed, b.ran)
			}
		})
	}
}

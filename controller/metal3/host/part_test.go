package host

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// scripted is a Part whose Observe returns its states one after another; the last
// one stays. It records the calls.
type scripted struct {
	name   string
	states []phase.PartState
	did    []string
	forgot []types.UID
}

func (p *scripted) Forget(uid types.UID) { p.forgot = append(p.forgot, uid) }

func (p *scripted) Name() string { return p.name }

func (p *scripted) Observe(context.Context, Server) (phase.PartState, string, error) {
	return p.states[0], p.name + " broke", nil
}

func (p *scripted) next() {
	if len(p.states) > 1 {
		p.states = p.states[1:]
	}
}

func (p *scripted) Begin(*metal3.BareMetalHost) { p.did = append(p.did, "begin") }

func (p *scripted) Step(context.Context, Server) error {
	p.did = append(p.did, "step")
	p.next()
	return nil
}

func (p *scripted) Reset(*metal3.BareMetalHost) {
	p.did = append(p.did, "reset")
	p.next()
}

func TestPartsArePreparedInOrder(t *testing.T) { // B-52, B-54
	b := newBench(t, 1, nil)
	var order []string
	first := &scripted{name: "RAID", states: []phase.PartState{phase.PartWanted, phase.PartRunning, phase.PartSettled}}
	second := &scripted{name: "BIOS", states: []phase.PartState{phase.PartWanted, phase.PartSettled}}
	b.r.Parts = []Part{first, second}
	b.until("available", func(h *metal3.BareMetalHost) bool {
		if len(second.did) > 0 && len(order) == 0 {
			order = append(order, strings.Join(first.did, " "))
		}
		return in(metal3.StateAvailable)(h)
	})
	if want := []string{"begin", "step", "step"}; !cmp.Equal(first.did, want) {
		t.Errorf("the first part: %v, want %v", first.did, want)
	}
	if want := []string{"begin", "step"}; !cmp.Equal(second.did, want) {
		t.Errorf("the second part: %v, want %v", second.did, want)
	}
	if want := []string{"begin step step"}; !cmp.Equal(order, want) {
		t.Errorf("when the second part began the first had done %v, want %v", order, want)
	}
}

func TestFailedPartIsReportedAndRetried(t *testing.T) { // B-53
	b := newBench(t, 1, nil)
	p := &scripted{name: "RAID", states: []phase.PartState{phase.PartWanted, phase.PartFailed, phase.PartFailed, phase.PartSettled}}
	b.r.Parts = []Part{p}
	b.until("an error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
	if s := b.host().Status; s.ErrorType != metal3.PreparationError || s.ErrorMessage != "RAID broke" || s.ErrorCount != 1 || s.Provisioning.State != metal3.StatePreparing {
		t.Errorf("status %+v, want a preparation error in preparing", s)
	}
	b.until("available", in(metal3.StateAvailable))
	if want := []string{"begin", "step", "reset", "begin", "step"}; !cmp.Equal(p.did, want) {
		t.Errorf("the part: %v, want %v", p.did, want)
	}
	if s := b.host().Status; s.ErrorType != "" || s.ErrorCount != 0 || s.OperationalStatus != metal3.OperationalStatusOK {
		t.Errorf("status %+v, want no error", s)
	}
}

// B-53 B-172: a setting that the server can never have is reported once. The host waits
// for a change of the specification or of the server.
func TestImpossiblePartIsReportedOnce(t *testing.T) {
	b := newBench(t, 1, nil)
	p := &scripted{name: "RAID", states: []phase.PartState{phase.PartImpossible}}
	b.r.Parts = []Part{p}
	b.until("an error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorType != "" })
	began := b.clock.Now()
	b.until("two days later", func(*metal3.BareMetalHost) bool { return b.clock.Since(began) > 48*time.Hour })
	if s := b.host().Status; s.ErrorType != metal3.PreparationError || s.ErrorMessage != "RAID broke" || s.ErrorCount != 1 || s.Provisioning.State != metal3.StatePreparing {
		t.Errorf("status %+v, want one preparation error in preparing", s)
	}
	if want := []string{"reset"}; !cmp.Equal(p.did, want) {
		t.Errorf("the part: %v, want %v", p.did, want)
	}
	p.name = "BIOS" // another error
	b.until("another error", func(h *metal3.BareMetalHost) bool { return h.Status.ErrorMessage == "BIOS broke" })
	if s := b.host().Status; s.ErrorCount != 2 {
		t.Errorf("status %+v, want two errors", s)
	}
	p.states = []phase.PartState{phase.PartWanted, phase.PartSettled}
	b.until("available", in(metal3.StateAvailable))
	if s := b.host().Status; s.ErrorType != "" || s.ErrorCount != 0 || s.OperationalStatus != metal3.OperationalStatusOK {
		t.Errorf("status %+v, want no error", s)
	}
}

func TestAvailableHostIsPreparedAgain(t *testing.T) { // B-55
	b := newBench(t, 1, nil)
	p := &scripted{name: "RAID", states: []phase.PartState{phase.PartSettled}}
	b.r.Parts = []Part{p}
	b.until("available", in(metal3.StateAvailable))
	p.states = []phase.PartState{phase.PartWanted, phase.PartSettled}
	b.until("preparing", in(metal3.StatePreparing))
	b.until("available again", in(metal3.StateAvailable))
	if want := []string{"begin", "step"}; !cmp.Equal(p.did, want) {
		t.Errorf("the part: %v, want %v", p.did, want)
	}
}

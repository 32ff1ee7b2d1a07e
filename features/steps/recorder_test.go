package steps

import (
	"errors"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/watch"
)

func inState(state metal3.ProvisioningState) *metal3.BareMetalHost {
	h := &metal3.BareMetalHost{}
	h.Status.Provisioning.State = state
	return h
}

func TestTrapsThatDoNotFireOrFailAreProblems(t *testing.T) {
	r := &recorder{}
	if err := r.trapProblems(); err != nil {
		t.Errorf("trapProblems() = %v without traps", err)
	}
	r.trap("deprovisioning", func() error { return nil })
	if err := r.trapProblems(); err == nil || !strings.Contains(err.Error(), `"deprovisioning"`) {
		t.Errorf("trapProblems() = %v, want an error that names the state", err)
	}
	for _, trap := range r.takeTraps("deprovisioning") {
		r.trapSprung(trap.spring())
	}
	if err := r.trapProblems(); err != nil {
		t.Errorf("trapProblems() = %v after the trap has fired", err)
	}
	failed := errors.New("no BMC")
	r.trap("available", func() error { return failed })
	for _, trap := range r.takeTraps("available") {
		r.trapSprung(trap.spring())
	}
	if err := r.trapProblems(); !errors.Is(err, failed) {
		t.Errorf("trapProblems() = %v, want %v", err, failed)
	}
}

func TestStatesSinceMarkBeginWithTheStateAtTheMark(t *testing.T) {
	r := &recorder{}
	for _, s := range []metal3.ProvisioningState{"registering", "available"} {
		r.record(watch.Modified, inState(s))
	}
	r.mark()
	for _, s := range []metal3.ProvisioningState{"inspecting", "available"} {
		r.record(watch.Modified, inState(s))
	}
	if got := r.statesSinceMark(); len(got) != 3 || got[0] != "available" || got[1] != "inspecting" {
		t.Errorf("statesSinceMark() = %q", got)
	}
	if !r.reached("available") || !r.reached("available") {
		t.Error("the host has not reached available")
	}
	if got := r.statesSinceMark(); len(got) != 1 {
		t.Errorf("statesSinceMark() = %q after the last state was waited for", got)
	}
}

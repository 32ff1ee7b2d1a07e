package steps

import (
	"errors"
	"strings"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/metalab-dev/metalab/controller/inband"
)

func inState(state metal3.ProvisioningState) *metal3.BareMetalHost {
	h := &metal3.BareMetalHost{}
	h.Status.Provisioning.State = state
	return h
}

func withError(kind metal3.ErrorType, message string) *metal3.BareMetalHost {
	h := inState(metal3.StateRegistering)
	h.Status.ErrorType, h.Status.ErrorMessage, h.Status.OperationalStatus = kind, message, metal3.OperationalStatusError
	return h
}

func TestReportsFromBeforeTheCauseDoNotCount(t *testing.T) {
	r := &recorder{}
	registration := func() bool {
		return r.hasReported(func(one report) bool { return one.kind == metal3.RegistrationError })
	}
	r.record(watch.Added, withError(metal3.RegistrationError, "wrong password"))
	if !registration() {
		t.Error("the report is not seen")
	}
	r.beginCause()
	if !registration() {
		t.Error("the host still reports it")
	}
	r.record(watch.Modified, inState(metal3.StateAvailable))
	if registration() {
		t.Error("the report is from before the cause")
	}
	for _, h := range []*metal3.BareMetalHost{withError(metal3.RegistrationError, "wrong password"), inState(metal3.StateAvailable)} {
		r.record(watch.Modified, h)
	}
	if !registration() {
		t.Error("the host has reported it since the cause")
	}
}

func TestPasswordInErrorMessageIsFound(t *testing.T) {
	for message, found := range map[string]bool{"login as admin: 401": false, "login with " + wrongPassword: true, "login with calvin": true} {
		s := &scenario{recorder: &recorder{}}
		s.server.Password = "calvin"
		s.recorder.record(watch.Added, withError(metal3.RegistrationError, message))
		if err := s.messageHoldsNoPassword(); (err != nil) != found {
			t.Errorf("messageHoldsNoPassword() = %v for %q", err, message)
		}
	}
}

func TestTokenOfAgentIsFound(t *testing.T) {
	key := make(inband.Key, inband.KeySize)
	signed := key.Sign("agent", inband.Boot{Host: "0e8e1b6c-1b7c-4a52-b5c3-3f0e5b8a7d11", ID: "7"})
	for text, found := range map[string]bool{
		`msg="agent started" token=` + signed: true,
		`msg="job done" job=7-clean_1`:        false,
	} {
		if got := token.FindString(text); (got != "") != found {
			t.Errorf("%q is found in %q", got, text)
		}
	}
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
	if first, again := r.reached("available"), r.reached("available"); !first || !again {
		t.Error("the host has not reached available")
	}
	if got := r.statesSinceMark(); len(got) != 1 {
		t.Errorf("statesSinceMark() = %q after the last state was waited for", got)
	}
}

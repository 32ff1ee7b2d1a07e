package host

import (
	"slices"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/bmc/bmctest"
)

// powerActions returns the power actions since the calls of the BMC were forgotten.
func (b *bench) powerActions() []bmc.PowerAction {
	var all []bmc.PowerAction
	for _, c := range b.bmc.Calls() {
		if c.Verb == bmctest.SetPower {
			all = append(all, c.Power)
		}
	}
	return all
}

// loseMedium ejects the medium as a restart of the BMC does: the server's system runs
// on. The calls of the BMC before are forgotten.
func (b *bench) loseMedium() {
	b.t.Helper()
	if err := b.bmc.EjectMedia(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	b.bmc.Forget()
}

// B-14 B-58: a restart of the BMC that loses the agent's medium does not end the agent.
// The server is restarted into the deployed system all the same.
func TestLostMediumDoesNotEndTheAgentOfProvisioning(t *testing.T) {
	for _, tt := range []struct {
		name string
		stay bool // spec.disablePowerOff
		want []bmc.PowerAction
	}{
		{"power may be off", false, []bmc.PowerAction{bmc.PowerOff, bmc.PowerOn}},
		{"power stays on", true, []bmc.PowerAction{bmc.PowerReset}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, 1, func(h *metal3.BareMetalHost) {
				withImage(h)
				h.Spec.DisablePowerOff = tt.stay
			})
			b.answers[job.Write] = job.Report{State: job.Running, Percent: 10}
			b.until("writing", func(*metal3.BareMetalHost) bool { return slices.Contains(b.ran, job.Write) })
			b.loseMedium()
			b.answers[job.Write] = job.Report{State: job.Done, Written: &job.Written{Device: "/dev/sda"}}
			b.done = map[string]job.Report{}
			b.until("provisioned", in(metal3.StateProvisioned))
			if got := b.powerActions(); !slices.Equal(got, tt.want) {
				t.Errorf("power actions after the BMC lost the medium = %v, want %v", got, tt.want)
			}
			if got := b.bmc.Booted(); got != "" {
				t.Errorf("the server runs %q, want its disk", got)
			}
		})
	}
}

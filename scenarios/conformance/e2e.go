package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
)

// e2eChecks are the checks of provisioning from beginning to end.
var e2eChecks = []Check{
	{
		ID: "E2E-001", Title: "virtual media: boot, inspect, write the image, boot the disk, power off", Level: Destructive, Protocol: EveryProtocol, Step: Provision,
		Predicts: "metal3 does not provision the server", Remedy: "the reasons of the checks before say why",
		After: []string{"VM-011"}, Needs: []Facility{NeedsProvisioner}, Run: provisionedBy("virtual media"),
	},
	{
		ID: "E2E-002", Title: "the same by PXE and IPMI", Level: Destructive, Protocol: EveryProtocol, Step: Provision,
		Predicts: "metal3 does not provision the server", Remedy: "the reasons of the checks before say why",
		After: []string{"BOOT-010"}, Needs: []Facility{NeedsProvisioner}, Run: provisionedBy("PXE"),
	},
}

// provisionedBy lets the provisioner do all its steps by virtual media or PXE.
func provisionedBy(how string) func(context.Context, *Run) Outcome {
	return func(ctx context.Context, r *Run) Outcome {
		if r.bmc.dry != nil {
			r.bmc.dry.print("provision by " + how)
			return Passed("")
		}
		r.Forget()
		step, err := r.Config().Provisioner.Provision(ctx, how)
		switch {
		case err == nil:
			return diskBoots(ctx, r)
		case errors.Is(err, errors.ErrUnsupported):
			return Skipped("%v", err)
		case ctx.Err() != nil, errors.Is(err, context.Canceled):
			return Judge(err)
		}
		return Failed("provisioning by %s fails in the step %s: %v", how, step, err)
	}
}

// diskBoots waits until a provisioned server boots its disk, and powers it off.
func diskBoots(ctx context.Context, r *Run) Outcome {
	r.Forget()
	now := ""
	if _, err := r.Poll(ctx, powerInterval, powerLimit, func() (_ bool, err error) {
		now, err = r.powerState(ctx)
		return now != "PoweringOn", err
	}); err != nil {
		return Judge(err)
	}
	if now != "On" {
		return Failed("after provisioning PowerState is %s, not On", now)
	}
	states, err := r.awaitPOST(ctx)
	if err != nil {
		return Judge(err)
	}
	o := Passed("").With("boot states", "%s", strings.Join(states, " "))
	if len(states) > 0 && !slices.Contains(booted, states[len(states)-1]) {
		return Failed("the server does not boot the disk with the image: it stays in %s", states[len(states)-1])
	}
	// The server stays off: its disk holds another system than before the run.
	r.powerWas = "Off"
	if err := r.ensure(ctx, "Off"); err != nil {
		return Judge(err)
	}
	return o
}

package phase

import (
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// B-73 B-11: without a slot none of the three operations begins, and everything
// that needs none continues.
func TestHostWithoutASlotWaits(t *testing.T) {
	base := Facts{HasAddress: true, Online: true, Cleaning: true, Media: MediaNone, Power: bmc.On, NoSlot: true}
	for name, tt := range map[string]struct {
		state  State
		change func(*Facts)
		waits  bool
		to     State
	}{
		"to inspect":          {state: registering, waits: true},
		"to inspect again":    {state: available, change: func(f *Facts) { f.InspectRequested = true }, waits: true},
		"to provision":        {state: available, change: func(f *Facts) { f.WantImage = "u" }, waits: true},
		"to deprovision":      {state: provisioned, change: func(f *Facts) { f.HaveImage = "u" }, waits: true},
		"to be deleted":       {state: provisioned, change: func(f *Facts) { f.HaveImage, f.Deleting = "u", true }, waits: true},
		"to try again":        {state: inspecting, change: func(f *Facts) { f.Resting = true }, waits: true},
		"has one":             {state: provisioning, change: func(f *Facts) { f.WantImage = "" }, to: deprovisioning},
		"needs none":          {state: registering, change: func(f *Facts) { f.InspectionDisabled = true }, to: preparing},
		"needs none to go":    {state: available, change: func(f *Facts) { f.Deleting = true }, to: poweringOff},
		"cannot even be told": {state: available, change: func(f *Facts) { f.WantImage, f.RegistrationError = "u", "no" }},
	} {
		f := base
		f.State = tt.state
		if tt.change != nil {
			tt.change(&f)
		}
		d := Decide(f)
		if d.Delay != tt.waits || d.To != tt.to || tt.waits && d.Moved {
			t.Errorf("%s: Decide(%+v) = %+v, want waiting %v, to %q", name, f, d, tt.waits, tt.to)
		}
		f.NoSlot = false
		if d := Decide(f); d.Delay {
			t.Errorf("%s: Decide(%+v) = %+v, though there is a place", name, f, d)
		}
	}
}

// B-124: a power change that the BMC accepts and does not make is an error of the
// host's operation.
func TestPowerThatDoesNotChangeIsAnError(t *testing.T) {
	base := Facts{HasAddress: true, Online: true, Cleaning: true, Media: MediaNone, Power: bmc.Off, WantImage: "u", HaveImage: "u"}
	for name, tt := range map[string]struct {
		state  State
		change func(*Facts)
		fails  metal3.ErrorType
		prefix string
	}{
		"cannot be switched on":             {provisioned, nil, metal3.PowerManagementError, "PowerOn operation failed: power is Off 5m0s"},
		"cannot be switched off":            {provisioned, func(f *Facts) { f.Power, f.Online, f.ErrorCount = bmc.On, false, 1 }, metal3.PowerManagementError, "PowerOff operation failed: power is On"},
		"never arrives":                     {available, func(f *Facts) { f.Power = bmc.PoweringOn }, metal3.PowerManagementError, "PowerOn operation failed: power is PoweringOn"},
		"does not stop for its inspection":  {inspecting, func(f *Facts) { f.Power = bmc.On }, metal3.InspectionError, "PowerOff operation failed"},
		"does not start its cleaning":       {deprovisioning, func(f *Facts) { f.Media, f.NextBoot = MediaCurrent, bmc.BootCD }, metal3.ProvisioningError, "PowerOn operation failed"},
		"still runs its agent in preparing": {preparing, func(f *Facts) { f.Power, f.Media = bmc.On, MediaOld }, metal3.PreparationError, "PowerOff operation failed"},
		"is deleted and stays on":           {poweringOff, func(f *Facts) { f.Power, f.Deleting = bmc.On, true }, metal3.PowerManagementError, "PowerOff operation failed"},
		"does nothing with its power":       {inspecting, nil, "", ""},
	} {
		f := base
		f.State = tt.state
		if tt.change != nil {
			tt.change(&f)
		}
		f.PowerAsked = powerWait + time.Second
		d := Decide(f)
		if d.Fail != tt.fails || !strings.HasPrefix(d.Message, tt.prefix) || tt.fails != "" && d.Do != None {
			t.Errorf("%s: Decide(%+v) = %+v, want %s %q", name, f, d, tt.fails, tt.prefix)
		}
		f.PowerAsked = powerWait
		if d := Decide(f); d.Fail != "" {
			t.Errorf("%s: Decide(%+v) = %+v, before the time is over", name, f, d)
		}
	}
}

// Results of Decide for single facts, each row with the statement that it shows.
// TestLifecycle runs through all states.
func TestStatements(t *testing.T) {
	base := Facts{HasAddress: true, Online: true, Cleaning: true, Media: MediaNone, Power: bmc.On}
	for _, tt := range []struct {
		ref     string
		state   State
		change  func(*Facts)
		do      Action
		to      State
		fail    metal3.ErrorType
		message string
		clear   metal3.ErrorType
	}{
		{ref: "B-26", state: ready, change: func(f *Facts) { f.WantImage = "u" }, to: provisioning, clear: metal3.PowerManagementError},
		{ref: "B-46", state: inspecting, change: func(f *Facts) { f.RegistrationError = "no" }, fail: metal3.RegistrationError, message: "no"},
		{ref: "B-46", state: provisioned, change: func(f *Facts) { f.RegistrationError = "no" }, fail: metal3.RegistrationError, message: "no"},
		{ref: "B-46", state: inspecting, change: func(f *Facts) { f.ErrorType = metal3.RegistrationError }, clear: metal3.RegistrationError},
		{ref: "B-63", state: provisioned, change: func(f *Facts) { f.RegistrationError, f.SystemError = "no", true }, fail: metal3.ProvisionedRegistrationError, message: "Host adoption failed: no"},
		{ref: "B-63", state: external, change: func(f *Facts) { f.External, f.RegistrationError, f.SystemError = true, "no", true }, fail: metal3.ProvisionedRegistrationError, message: "Host adoption failed: no"},
		{ref: "B-63", state: available, change: func(f *Facts) { f.RegistrationError, f.SystemError = "no", true }, fail: metal3.RegistrationError, message: "no"},
		{ref: "B-63", state: provisioned, change: func(f *Facts) { f.ErrorType = metal3.ProvisionedRegistrationError }, clear: metal3.ProvisionedRegistrationError},
		{ref: "B-49", state: inspecting, change: func(f *Facts) { f.AgentUp, f.Inspect = true, JobFailed }, fail: metal3.InspectionError, message: "Inspection failed"},
		{ref: "B-49", state: inspecting, change: func(f *Facts) { f.AgentUp, f.Inspect, f.JobError = true, JobFailed, "it was aborted by a request" }, do: BeginAgain},
		{ref: "B-51", state: inspecting, change: func(f *Facts) { f.InspectionDisabled = true }, to: preparing, clear: metal3.InspectionError},
		{ref: "B-55", state: available, change: func(f *Facts) { f.HintsChanged, f.WantImage = true, "u" }, to: preparing},
		{ref: "B-55", state: available, change: func(f *Facts) { f.HintsChanged, f.InspectRequested = true, true }, to: inspecting},
		{ref: "B-55", state: available, change: func(f *Facts) { f.InspectRequested, f.External = true, true }, to: external},
		{ref: "B-60", state: provisioning, change: func(f *Facts) { f.WantImage, f.ValidationError = "u", "Validation failed: x" }, fail: metal3.ProvisioningError, message: "Validation failed: x"},
		{ref: "B-64", state: external, change: func(f *Facts) { f.WantImage = "u" }, to: provisioned},
		{ref: "B-64", state: external, to: deprovisioning},
		{ref: "B-66", state: deprovisioning, change: func(f *Facts) { f.AgentUp, f.Clean, f.JobError = true, JobFailed, "x" }, fail: metal3.ProvisioningError, message: "Cleaning failed: x"},
		{ref: "B-66", state: deprovisioning, change: func(f *Facts) { f.AgentUp, f.Clean = true, JobFailed }, fail: metal3.ProvisioningError, message: "Deprovisioning failed"},
		{ref: "B-67", state: deprovisioning, change: func(f *Facts) { f.Cleaning = false }, do: EndOperation},
		{ref: "B-69", state: deprovisioning, change: func(f *Facts) { f.Deleting, f.NeverRegistered, f.RegistrationError = true, true, "x" }, to: deleting},
		{ref: "B-70", state: poweringOff, change: func(f *Facts) { f.Deleting, f.ErrorCount = true, 3 }, do: PowerOff},
		{ref: "B-70", state: poweringOff, change: func(f *Facts) { f.Deleting, f.ErrorCount = true, 4 }, to: deleting},
		{ref: "B-70 B-125", state: poweringOff, change: func(f *Facts) { f.Deleting, f.DisablePowerOff = true, true }, to: deleting},
		{ref: "B-72", state: external, change: func(f *Facts) { f.External, f.Deleting = true, true }, to: poweringOff},
		{ref: "B-94", state: deleting, change: func(f *Facts) { f.Deleting, f.Detach, f.IsDetached = true, true, true }, do: Release},
		{ref: "B-120", state: available, change: func(f *Facts) { f.Online = false }, do: SoftOff},
		{ref: "B-123", state: provisioned, change: func(f *Facts) { f.HaveImage, f.WantImage, f.Online, f.ErrorCount = "u", "u", false, 1 }, do: PowerOff},
		{ref: "B-124", state: available, change: func(f *Facts) { f.ErrorType = metal3.PowerManagementError }, clear: metal3.PowerManagementError},
	} {
		f := base
		f.State = tt.state
		if tt.change != nil {
			tt.change(&f)
		}
		d := Decide(f)
		if d.Do != tt.do || d.To != tt.to || d.Fail != tt.fail || tt.message != d.Message || d.Clear != tt.clear && tt.clear != "" {
			t.Errorf("%s: Decide(%+v)\n got %+v\nwant do %q, to %q, fail %q %q, clear %q", tt.ref, f, d, tt.do, tt.to, tt.fail, tt.message, tt.clear)
		}
	}
}

// A BMC whose overrides are for one boot only would start a provisioned server by
// its boot order: the disk is chosen before each start (B-58).
func TestOverrideForOneBootIsSetBeforeEachStart(t *testing.T) {
	ready := Facts{State: provisioned, Online: true, Power: bmc.Off, BootOnce: true, WantImage: "a", HaveImage: "a"}
	for _, tt := range []struct {
		name string
		edit func(*Facts)
		want Action
	}{
		{"is off", func(*Facts) {}, BootDisk},
		{"would boot its disk", func(f *Facts) { f.NextBoot = bmc.BootDisk }, PowerOn},
		{"the BMC keeps overrides", func(f *Facts) { f.BootOnce = false }, PowerOn},
		{"boots a live ISO", func(f *Facts) { f.DeployedLive = true }, PowerOn},
		{"shall be off", func(f *Facts) { f.Online = false }, None},
		{"is held off", func(f *Facts) { f.Reboot = RebootHeld }, None},
		{"is on", func(f *Facts) { f.Power = bmc.On }, None},
		{"is on, and shall be rebooted without being off", func(f *Facts) { f.Power, f.Reboot, f.DisablePowerOff = bmc.On, RebootOnce, true }, BootDisk},
		{"is on, and shall be rebooted", func(f *Facts) { f.Power, f.Reboot = bmc.On, RebootOnce }, SoftOff},
		{"is provisioned by others", func(f *Facts) { f.State, f.External = external, true }, PowerOn},
	} {
		f := ready
		tt.edit(&f)
		if d := Decide(f); d.Do != tt.want {
			t.Errorf("a host that %s: Decide(%+v) = %+v, want %q", tt.name, f, d, tt.want)
		}
	}
}

package phase

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

var update = flag.Bool("update", false, "rewrite STATES.md")

// anyFacts returns random facts, over all values of each field.
func anyFacts(r *rand.Rand, s State) Facts {
	flip := func() bool { return r.IntN(2) == 0 }
	text := func(xs ...string) string { return xs[r.IntN(len(xs))] }
	jobs := []JobState{JobUnknown, JobPending, JobDone, JobFailed}
	errs := []metal3.ErrorType{"", metal3.RegistrationError, metal3.InspectionError, metal3.PreparationError, metal3.ProvisioningError, metal3.ProvisionedRegistrationError, metal3.PowerManagementError, metal3.ServicingError}
	return Facts{
		State: s, Deleting: r.IntN(4) == 0,
		HasAddress: flip(), Online: flip(), External: r.IntN(4) == 0, DisablePowerOff: r.IntN(4) == 0,
		InspectionDisabled: flip(), InspectRequested: flip(), Cleaning: flip(),
		WantImage: text("", "a", "b"), HaveImage: text("", "a"), ImageChanged: r.IntN(8) == 0, ValidationError: text("", "", "", "bad"),
		ErrorType: errs[r.IntN(len(errs))], ErrorMessage: text("broke", "another"), ErrorCount: r.IntN(6), OpEnded: flip(),
		RegistrationError: text("", "", "", "no"), NeverRegistered: flip(),
		Power: []bmc.Power{bmc.On, bmc.Off, bmc.PoweringOn, bmc.PoweringOff}[r.IntN(4)],
		Media: []Media{MediaNone, MediaCurrent, MediaOld, MediaForeign, MediaLive}[r.IntN(5)],
		Live:  flip(), WantDeploy: text("", "", "m", "n"), HaveDeploy: text("", "", "m"), BootPersistent: flip(), BootOnce: flip(), DeployedLive: flip(),
		NextBoot:   []bmc.Device{bmc.BootNone, bmc.BootCD, bmc.BootDisk, bmc.BootPXE}[r.IntN(4)],
		AgentBound: flip(), AgentRefused: r.IntN(4) == 0,
		AgentUp: flip(), AgentWait: time.Duration(r.IntN(2)) * time.Hour, AgentSilent: time.Duration(r.IntN(4)/3) * time.Hour,
		Inspect: jobs[r.IntN(4)], Clean: jobs[r.IntN(4)], Write: jobs[r.IntN(4)], JobError: text("broke", "", "it was aborted"),
		HintsChanged: r.IntN(4) == 0, Secure: flip(), Restarted: flip(), SystemError: flip(), NoSlot: r.IntN(4) == 0, Resting: r.IntN(8) == 0,
		PowerAsked: time.Duration(r.IntN(4)/3) * time.Hour,
		Reboot:     Reboot(r.IntN(8) / 6 * (1 + r.IntN(2))), RebootHard: flip(),
		Detach: r.IntN(6) == 0, DetachForce: flip(), DetachDelays: flip(), IsDetached: r.IntN(6) == 0,
		Part:        Part{Name: "RAID", State: []PartState{PartSettled, PartSettled, PartStale, PartWanted, PartRunning, PartFailed, PartImpossible}[r.IntN(7)], Error: "broke", Agent: flip()},
		AwaitsImage: r.IntN(6) == 0, HardwareChanged: r.IntN(8) == 0,
		Data:    []Data{DataSettled, DataSettled, DataMissing, DataOther, DataWaits}[r.IntN(5)],
		SoftOff: time.Duration(r.IntN(3)) * 100 * time.Second,
		NetBoot: []bmc.Device{bmc.BootNone, bmc.BootPXE, bmc.BootHTTP}[r.IntN(3)], SeenOff: flip(), Servicing: r.IntN(4) == 0,
	}
}

const draws = 100_000

func TestEveryRuleApplies(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	type key struct {
		s State
		n string
	}
	hit := map[key]bool{}
	for _, s := range States {
		for range draws {
			hit[key{s, Decide(anyFacts(r, s)).Rule}] = true
		}
	}
	for _, rule := range rules {
		if !slices.ContainsFunc(rule.in, func(s State) bool { return hit[key{s, rule.name}] }) {
			t.Errorf("rule %q of %v never decides: another one is always first", rule.name, rule.in)
		}
	}
}

func TestEveryStateIsReachable(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	seen := map[State]bool{stateNone: true, ready: true} // ready: only in old objects (B-26)
	for grown := true; grown; {
		grown = false
		for _, s := range States {
			if !seen[s] {
				continue
			}
			for range draws {
				if d := Decide(anyFacts(r, s)); d.Moved && !seen[d.To] {
					seen[d.To], grown = true, true
				}
			}
		}
	}
	for _, s := range States {
		if !seen[s] {
			t.Errorf("state %q is not reachable", s)
		}
	}
}

// Every decision of a host with work to do has a next pass: an action needs one,
// and so does an error.
func TestDecisionsAreComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, s := range States {
		for range draws {
			f := anyFacts(r, s)
			d := Decide(f)
			switch {
			case d.Fail != "" && (d.Do != None || d.Moved):
				t.Fatalf("Decide(%+v) = %+v: an error and an action at once", f, d)
			case d.Fail != "" && d.Message == "":
				t.Fatalf("Decide(%+v) = %+v: an error without a message", f, d)
			case d.Delay && (d.Do != None || d.Moved || d.Fail != ""):
				t.Fatalf("Decide(%+v) = %+v: it waits, and yet does something", f, d)
			case d.Do != None && d.Do != Release && d.After == 0 && !d.Moved:
				t.Fatalf("Decide(%+v) = %+v: an action that nobody looks after", f, d)
			case d.Do == PowerOff && f.Power != bmc.On, d.Do == PowerOn && f.Power != bmc.Off:
				t.Fatalf("Decide(%+v) = %+v: power is that already, or changing", f, d)
			case (d.Do == OfferWrite || d.Do == OfferClean || d.Do == OfferInspect) && !f.AgentUp:
				t.Fatalf("Decide(%+v) = %+v: a job for nobody", f, d)
			case f.External && d.Do == OfferWrite && settled.has(s):
				t.Fatalf("Decide(%+v) = %+v: writes to a host that others provision", f, d)
			}
		}
	}
}

// Every state and facts have a rule, unless there is nothing to do.
func TestUnfinishedStatesAlwaysHaveARule(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for _, s := range States {
		if s == unmanaged || settled.has(s) {
			continue
		}
		for range draws {
			f := anyFacts(r, s)
			if d := Decide(f); d.Rule == "nothing to do" {
				t.Fatalf("Decide(%+v): no rule", f)
			}
		}
	}
}

func TestLifecycle(t *testing.T) {
	base := Facts{HasAddress: true, Online: true, Cleaning: true, Media: MediaNone, Power: bmc.Off}
	with := func(s State, change func(*Facts)) Facts {
		f := base
		f.State = s
		change(&f)
		return f
	}
	tests := []struct {
		ref  string
		f    Facts
		do   Action
		to   string
		fail metal3.ErrorType
	}{
		{ref: "B-40", f: with(stateNone, func(*Facts) {}), to: "registering"},
		{ref: "B-41", f: with(stateNone, func(f *Facts) { f.HasAddress = false }), to: "unmanaged"},
		{ref: "B-21", f: with(registering, func(f *Facts) { f.HasAddress = false }), to: "unmanaged"},
		{ref: "B-112", f: with(unmanaged, func(f *Facts) { f.HasAddress, f.RegistrationError = false, "no address" }), fail: metal3.RegistrationError},
		{ref: "B-112", f: with(unmanaged, func(f *Facts) {
			f.HasAddress, f.RegistrationError, f.ErrorType = false, "no address", metal3.RegistrationError
		}), do: None},
		{ref: "B-53 B-172", f: with(preparing, func(f *Facts) { f.Part = Part{State: PartImpossible, Error: "x"} }), fail: metal3.PreparationError},
		{ref: "B-53 B-172", f: with(preparing, func(f *Facts) {
			f.Part, f.ErrorType, f.ErrorMessage = Part{State: PartImpossible, Error: "x"}, metal3.PreparationError, "x"
		}), do: None},
		{ref: "B-53 B-172", f: with(preparing, func(f *Facts) {
			f.Part, f.ErrorType, f.ErrorMessage = Part{State: PartImpossible, Error: "y"}, metal3.PreparationError, "x"
		}), fail: metal3.PreparationError},
		{ref: "B-260", f: with(external, func(f *Facts) { f.External, f.HardwareChanged = true, true }), do: StoreHardware},
		{ref: "B-42", f: with(unmanaged, func(*Facts) {}), to: "registering"},
		{ref: "B-44", f: with(registering, func(*Facts) {}), to: "inspecting"},
		{ref: "B-44", f: with(registering, func(f *Facts) { f.External = true }), to: "externally provisioned"},
		{ref: "B-44", f: with(registering, func(f *Facts) { f.InspectionDisabled = true }), to: "preparing"},
		{ref: "B-45", f: with(registering, func(f *Facts) { f.RegistrationError = "401" }), fail: metal3.RegistrationError},
		{ref: "B-48", f: with(inspecting, func(*Facts) {}), do: InsertMedia},
		{ref: "B-48", f: with(inspecting, func(f *Facts) { f.Power = bmc.On }), do: PowerOff},
		{ref: "B-48", f: with(inspecting, func(f *Facts) { f.Media = MediaOld }), do: InsertMedia},
		{ref: "B-48", f: with(inspecting, func(f *Facts) { f.Media = MediaCurrent }), do: BootCD},
		{ref: "B-48", f: with(inspecting, func(f *Facts) { f.Media, f.NextBoot = MediaCurrent, bmc.BootCD }), do: PowerOn},
		{ref: "B-48", f: with(inspecting, func(f *Facts) { f.Media, f.Power = MediaCurrent, bmc.On }), do: None},
		{ref: "B-49", f: with(inspecting, func(f *Facts) { f.Media, f.Power, f.AgentWait = MediaCurrent, bmc.On, time.Hour }), fail: metal3.InspectionError},
		{ref: "B-48", f: with(inspecting, func(f *Facts) { f.Media, f.Power, f.AgentUp = MediaCurrent, bmc.On, true }), do: OfferInspect},
		{ref: "B-49", f: with(inspecting, func(f *Facts) { f.AgentUp, f.Inspect, f.JobError = true, JobFailed, "x" }), fail: metal3.InspectionError},
		{ref: "B-48", f: with(inspecting, func(f *Facts) { f.AgentUp, f.Inspect = true, JobDone }), do: StoreHardware, to: "match profile"},
		{ref: "B-52", f: with(preparing, func(f *Facts) { f.Power, f.Media = bmc.On, MediaOld }), do: PowerOff},
		{ref: "B-52", f: with(preparing, func(f *Facts) { f.Media = MediaOld }), do: EjectMedia},
		{ref: "B-52", f: with(preparing, func(f *Facts) { f.Power, f.Media = bmc.On, MediaForeign }), to: "available"},
		{ref: "B-56", f: with(available, func(f *Facts) { f.WantImage = "u" }), to: "provisioning"},
		{ref: "B-56", f: with(available, func(f *Facts) { f.WantImage, f.Online = "u", false }), do: None},
		{ref: "B-55", f: with(available, func(f *Facts) { f.WantImage, f.External = "u", true }), to: "externally provisioned"},
		{ref: "B-55", f: with(available, func(f *Facts) { f.WantImage, f.InspectRequested = "u", true }), to: "inspecting"},
		{ref: "B-126", f: with(available, func(*Facts) {}), do: PowerOn},
		{ref: "B-61", f: with(provisioning, func(f *Facts) { f.WantImage, f.AgentUp = "u", true }), do: OfferClean},
		{ref: "B-61", f: with(provisioning, func(f *Facts) { f.WantImage, f.AgentUp, f.Cleaning = "u", true, false }), do: OfferWrite},
		{ref: "B-58", f: with(provisioning, func(f *Facts) { f.WantImage, f.AgentUp, f.Clean = "u", true, JobDone }), do: OfferWrite},
		{ref: "B-59", f: with(provisioning, func(f *Facts) {
			f.WantImage, f.AgentUp, f.Clean, f.Write, f.JobError = "u", true, JobDone, JobFailed, "x"
		}), fail: metal3.ProvisioningError},
		{ref: "B-59", f: with(provisioning, func(f *Facts) { f.WantImage, f.ErrorType = "u", metal3.ProvisioningError }), to: "deprovisioning"},
		{ref: "B-58", f: with(provisioning, func(*Facts) {}), to: "deprovisioning"},
		{ref: "B-58", f: with(provisioning, func(f *Facts) {
			f.WantImage, f.AgentUp, f.Clean, f.Write = "u", true, JobDone, JobDone
		}), do: EndOperation},
		{ref: "B-58", f: with(provisioning, func(f *Facts) { f.WantImage, f.OpEnded, f.Power, f.Media = "u", true, bmc.On, MediaCurrent }), do: PowerOff},
		{ref: "B-58", f: with(provisioning, func(f *Facts) { f.WantImage, f.OpEnded, f.Media = "u", true, MediaCurrent }), do: EjectMedia},
		{ref: "B-58", f: with(provisioning, func(f *Facts) { f.WantImage, f.OpEnded = "u", true }), do: BootDisk},
		{ref: "B-58", f: with(provisioning, func(f *Facts) { f.WantImage, f.OpEnded, f.NextBoot = "u", true, bmc.BootDisk }), do: PowerOn},
		{ref: "B-58", f: with(provisioning, func(f *Facts) { f.WantImage, f.OpEnded, f.SeenOff, f.Power = "u", true, true, bmc.On }), to: "provisioned"},
		{ref: "B-14 B-58", f: with(provisioning, func(f *Facts) { f.WantImage, f.OpEnded, f.Power = "u", true, bmc.On }), do: PowerOff}, // the BMC has restarted, and has lost the agent's medium
		{ref: "B-62", f: with(provisioned, func(f *Facts) { f.HaveImage = "u" }), to: "deprovisioning"},
		{ref: "B-153", f: with(provisioning, func(f *Facts) { f.WantImage, f.Live, f.AgentUp = "u", true, true }), do: OfferClean},
		{ref: "B-153", f: with(provisioning, func(f *Facts) { f.WantImage, f.Live, f.AgentUp, f.Clean = "u", true, true, JobDone }), do: EndOperation},
		{ref: "B-153", f: with(provisioning, func(f *Facts) { f.WantImage, f.Live, f.Cleaning = "u", true, false }), do: EndOperation},
		{ref: "B-153", f: with(provisioning, func(f *Facts) {
			f.WantImage, f.Live, f.OpEnded, f.Power, f.Media = "u", true, true, bmc.On, MediaForeign
		}), do: PowerOff},
		{ref: "B-153", f: with(provisioning, func(f *Facts) { f.WantImage, f.Live, f.OpEnded, f.Media = "u", true, true, MediaOld }), do: EjectMedia},
		{ref: "B-153", f: with(provisioning, func(f *Facts) { f.WantImage, f.Live, f.OpEnded = "u", true, true }), do: InsertLive},
		{ref: "B-153", f: with(provisioning, func(f *Facts) {
			f.WantImage, f.Live, f.OpEnded, f.Media, f.NextBoot = "u", true, true, MediaLive, bmc.BootCD
		}), do: BootLive},
		{ref: "B-153", f: with(provisioning, func(f *Facts) {
			f.WantImage, f.Live, f.OpEnded, f.Media, f.NextBoot, f.BootPersistent = "u", true, true, MediaLive, bmc.BootCD, true
		}), do: PowerOn},
		{ref: "B-153", f: with(provisioning, func(f *Facts) {
			f.WantImage, f.Live, f.OpEnded, f.SeenOff, f.Power, f.Media = "u", true, true, true, bmc.On, MediaLive
		}), to: "provisioned"},
		{ref: "B-153", f: with(deprovisioning, func(f *Facts) { f.OpEnded, f.Media = true, MediaLive }), do: EjectMedia},
		{ref: "B-153", f: with(deprovisioning, func(f *Facts) { f.Cleaning, f.NextBoot, f.BootPersistent = false, bmc.BootCD, true }), do: BootAny},
		{ref: "B-156", f: with(available, func(f *Facts) { f.WantDeploy = "m" }), to: "provisioning"},
		{ref: "B-156", f: with(available, func(f *Facts) { f.WantDeploy, f.Online = "m", false }), do: None},
		{ref: "B-156", f: with(provisioning, func(f *Facts) { f.WantDeploy, f.AgentUp, f.Clean = "m", true, JobDone }), do: OfferWrite},
		{ref: "B-62 B-156", f: with(provisioned, func(f *Facts) { f.HaveDeploy, f.WantDeploy = "m", "n" }), to: "deprovisioning"},
		{ref: "B-62 B-156", f: with(provisioned, func(f *Facts) { f.HaveDeploy = "m" }), to: "deprovisioning"},
		{ref: "B-156", f: with(provisioned, func(f *Facts) { f.HaveDeploy, f.WantDeploy, f.Power = "m", "m", bmc.On }), do: None},
		{ref: "B-123", f: with(provisioned, func(f *Facts) { f.Power, f.Online = bmc.On, false }), do: SoftOff},
		{ref: "B-123", f: with(provisioned, func(f *Facts) { f.Power, f.Online, f.SoftOff = bmc.On, false, time.Minute }), do: None},
		{ref: "B-123", f: with(provisioned, func(f *Facts) { f.Power, f.Online, f.SoftOff = bmc.On, false, 4*time.Minute }), do: PowerOff},
		{ref: "B-125", f: with(provisioned, func(f *Facts) { f.Power, f.Online, f.DisablePowerOff = bmc.On, false, true }), do: None},
		{ref: "B-24", f: with(matching, func(*Facts) {}), to: "preparing"},
		{ref: "B-50", f: with(inspecting, func(f *Facts) { f.Reboot = RebootOnce }), do: BeginAgain},
		{ref: "B-50", f: with(provisioning, func(f *Facts) { f.WantImage, f.Reboot = "u", RebootOnce }), do: BeginAgain},
		{ref: "B-91", f: with(provisioned, func(f *Facts) { f.Detach, f.HaveImage = true, "u" }), do: Detach},
		{ref: "B-91", f: with(provisioned, func(f *Facts) { f.Detach, f.IsDetached, f.HaveImage = true, true, "u" }), do: None},
		{ref: "B-91", f: with(provisioned, func(f *Facts) { f.IsDetached, f.HaveImage = true, "u" }), do: Attach},
		{ref: "B-91", f: with(inspecting, func(f *Facts) { f.Detach = true }), do: InsertMedia},
		{ref: "B-92", f: with(inspecting, func(f *Facts) { f.Detach, f.DetachForce = true, true }), do: Detach},
		{ref: "B-93", f: with(provisioned, func(f *Facts) { f.Deleting, f.Detach = true, true }), to: "deleting"},
		{ref: "B-93", f: with(provisioned, func(f *Facts) { f.Deleting, f.Detach, f.DetachDelays = true, true, true }), do: None},
		{ref: "B-93", f: with(provisioned, func(f *Facts) { f.Deleting, f.IsDetached = true, true }), do: Attach},
		{ref: "B-95", f: with(provisioned, func(f *Facts) { f.Power, f.Reboot = bmc.On, RebootOnce }), do: SoftOff},
		{ref: "B-95", f: with(provisioned, func(f *Facts) { f.Power, f.Reboot, f.RebootHard = bmc.On, RebootOnce, true }), do: PowerOff},
		{ref: "B-95", f: with(available, func(f *Facts) { f.Power, f.Reboot = bmc.On, RebootOnce }), do: SoftOff}, // with force: see observeReboot
		{ref: "B-95", f: with(available, func(f *Facts) { f.Power, f.Reboot = bmc.Off, RebootOnce }), do: EndReboot},
		{ref: "B-96", f: with(available, func(f *Facts) { f.Power, f.Reboot, f.RebootHard = bmc.On, RebootHeld, true }), do: PowerOff},
		{ref: "B-96", f: with(available, func(f *Facts) { f.Power, f.Reboot = bmc.Off, RebootHeld }), do: None},
		{ref: "B-97", f: with(provisioned, func(f *Facts) { f.Reboot = RebootOnce }), do: EndReboot},
		{ref: "B-96", f: with(provisioned, func(f *Facts) { f.Reboot = RebootHeld }), do: None},
		{ref: "B-125", f: with(provisioned, func(f *Facts) { f.Power, f.Reboot, f.DisablePowerOff = bmc.On, RebootOnce, true }), do: Restart},
		{ref: "B-65", f: with(deprovisioning, func(f *Facts) { f.AgentUp = true }), do: OfferClean},
		{ref: "B-65", f: with(deprovisioning, func(f *Facts) { f.Cleaning, f.Power = false, bmc.On }), do: EndOperation},
		{ref: "B-65", f: with(deprovisioning, func(f *Facts) { f.OpEnded, f.Power = true, bmc.On }), do: PowerOff},
		{ref: "B-65", f: with(deprovisioning, func(f *Facts) { f.OpEnded = true }), to: "available"},
		{ref: "B-68", f: with(provisioned, func(f *Facts) { f.Deleting = true }), to: "deprovisioning"},
		{ref: "B-68", f: with(available, func(f *Facts) { f.Deleting = true }), to: "powering off before delete"},
		{ref: "B-68", f: with(registering, func(f *Facts) { f.Deleting = true }), to: "deleting"},
		{ref: "B-69", f: with(deprovisioning, func(f *Facts) { f.Deleting, f.ErrorCount = true, 4 }), to: "powering off before delete"},
		{ref: "B-70", f: with(poweringOff, func(f *Facts) { f.Deleting, f.Power = true, bmc.On }), do: PowerOff},
		{ref: "B-70", f: with(poweringOff, func(f *Facts) { f.Deleting = true }), to: "deleting"},
		{ref: "B-70", f: with(poweringOff, func(f *Facts) { f.Deleting, f.Media = true, MediaOld }), do: EjectMedia},
		{ref: "B-70", f: with(poweringOff, func(f *Facts) { f.Deleting, f.ErrorCount, f.RegistrationError = true, 4, "x" }), to: "deleting"},
		{ref: "B-71", f: with(deleting, func(f *Facts) { f.Deleting, f.RegistrationError = true, "x" }), do: Release},
	}
	for i, tt := range tests {
		t.Run(fmt.Sprintf("%s_%d", tt.ref, i), func(t *testing.T) {
			d := Decide(tt.f)
			if d.Do != tt.do || d.Moved != (tt.to != "") || string(d.To) != tt.to || d.Fail != tt.fail {
				t.Fatalf("Decide(%+v)\n got %+v\nwant do %q, to %q, fail %q", tt.f, d, tt.do, tt.to, tt.fail)
			}
		})
	}
}

func TestBackoffRange(t *testing.T) {
	for count, upper := range map[int]time.Duration{0: 2, 1: 2, 2: 4, 3: 8, 9: 512, 40: 512} {
		for _, jitter := range []float64{0, 0.5, 0.999999} {
			got := Backoff(count, jitter)
			if got > upper*time.Minute || got <= upper*time.Minute/2 {
				t.Errorf("Backoff(%d, %v) = %v, want in ]%v, %v] (B-13)", count, jitter, got, upper*time.Minute/2, upper*time.Minute)
			}
		}
	}
}

func TestDocumentIsCurrent(t *testing.T) {
	const file = "STATES.md"
	if *update {
		if err := os.WriteFile(file, []byte(Document()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil || string(got) != Document() {
		t.Fatalf("%s is not what the rules say (%v): run go generate ./controller/metal3/host/phase", file, err)
	}
}

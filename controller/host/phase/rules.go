package phase

import (
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// The states, named as in the specification.
const (
	stateNone       = metal3.StateNone
	unmanaged       = metal3.StateUnmanaged
	registering     = metal3.StateRegistering
	inspecting      = metal3.StateInspecting
	matching        = metal3.StateMatchProfile
	preparing       = metal3.StatePreparing
	available       = metal3.StateAvailable
	ready           = metal3.StateReady // old spelling of available (B-26)
	provisioning    = metal3.StateProvisioning
	provisioned     = metal3.StateProvisioned
	external        = metal3.StateExternallyProvisioned
	deprovisioning  = metal3.StateDeprovisioning
	poweringOff     = metal3.StatePoweringOffBeforeDelete
	deleting        = metal3.StateDeleting
	shortWait       = 3 * time.Second  // for a BMC (B-12)
	longWait        = 10 * time.Second // for an agent (B-12)
	softOffWait     = 180 * time.Second
	agentSilence    = 15 * time.Minute // it speaks every few seconds, whatever it does
	agentWait       = 30 * time.Minute // a slow server's POST and a download of the agent
	staleWait       = time.Minute      // for the validation of what a host is prepared with (B-12, B-54)
	servicedWait    = time.Minute      // B-12
	dataWait        = 30 * time.Second // B-230
	imageWait       = 5 * time.Minute  // B-12
	forgivenDeletes = 3                // failures before a deletion goes on regardless (B-69, B-70)
)

// States are all provisioning states that rules know.
var States = []State{stateNone, unmanaged, registering, inspecting, matching, preparing, available, ready,
	provisioning, provisioned, external, deprovisioning, poweringOff, deleting}

type states []State

func (s states) has(x State) bool { return slices.Contains(s, x) }

var (
	managed  = states{registering, inspecting, preparing, available, ready, provisioning, provisioned, external, deprovisioning, poweringOff}
	attached = states{inspecting, matching, preparing, available, ready, provisioning, provisioned, external, deprovisioning} // that can be detached
	settled  = states{available, ready, provisioned, external}
	idle     = states{available, ready}
	bootable = states{provisioned, external}                               // whose system can be rebooted
	withWork = states{inspecting, preparing, provisioning, deprovisioning} // states that boot the agent
	serving  = states{inspecting, provisioning, deprovisioning}            // states that always boot it
)

// rule is one row of the state machine: in one of these states, when this
// holds, do that.
type rule struct {
	in    states
	name  string // the condition, in words
	ref   string // statements of the reference
	when  func(Facts) bool
	do    Action
	to    *State
	after time.Duration
	fail  func(Facts) (metal3.ErrorType, string)
	clear metal3.ErrorType
}

// awaits: the rule waits for the agent and does nothing else.
func (r *rule) awaits() bool {
	return r.after == longWait && r.do == None && r.to == nil && r.fail == nil
}

func to(s State) *State { return &s }

func always(Facts) bool { return true }

func isDeleting(f Facts) bool { return f.Deleting }

func unregistered(f Facts) bool { return f.RegistrationError != "" }

// working holds while a state that boots the agent still needs it.
func working(f Facts) bool {
	if f.State == preparing {
		return f.Part.Agent && f.Part.State == PartRunning
	}
	return f.State == inspecting || !f.OpEnded && withWork.has(f.State) && (f.State == provisioning && !f.Live || f.Cleaning)
}

func ended(f Facts) bool { return f.OpEnded }

func needsProvisioning(f Facts) bool {
	return f.Online && (f.WantImage != "" && f.HaveImage == "" || f.WantDeploy != "" && f.WantDeploy != f.HaveDeploy)
}

// shallBeOff holds for a while when a reboot is asked for.
func shallBeOff(f Facts) bool {
	return !f.DisablePowerOff && (!f.Online || f.Reboot != RebootNone && bootable.has(f.State))
}

// hard: the operating system is not asked (any more).
func hard(f Facts) bool {
	return f.ErrorCount > 0 || f.RebootHard && f.Reboot != RebootNone && bootable.has(f.State)
}

// detachable: the annotation counts (B-91).
func detachable(f Facts) bool { return f.Detach && (settled.has(f.State) || f.DetachForce) }

// Leaves says whether a server is left alone: it is detached, or about to be.
func Leaves(f Facts) bool { return f.IsDetached || attached.has(f.State) && detachable(f) }

// imageGone: what is deployed is not what is wanted (B-62).
func imageGone(f Facts) bool {
	return f.HaveImage != f.WantImage || f.HaveDeploy != f.WantDeploy
}

func nothingWanted(f Facts) bool { return f.WantImage == "" && f.WantDeploy == "" }

// unwanted: a deployment that is under way is no longer asked for, or is for
// something else (B-58).
func unwanted(f Facts) bool {
	return nothingWanted(f) || f.ImageChanged || (f.HaveImage != "" || f.HaveDeploy != "") && imageGone(f)
}

func live(f Facts) bool { return f.Live }

func liveMedium(f Facts) bool { return f.Media == MediaLive }

func ours(f Facts) bool { return f.Media == MediaCurrent || f.Media == MediaOld }

// byNetwork: the agent does not come by virtual media.
func byNetwork(f Facts) bool { return f.Net != bmc.BootNone }

// setUp: what a server that is on runs, or is about to, is this operation's
// agent.
func setUp(f Facts) bool { return f.Media == MediaCurrent || byNetwork(f) && f.SeenOff }

// runsAgent: an agent whose work is done still runs. That a server booted it by
// the network shows in nothing but when its power was last told: as the work of
// provisioning and deprovisioning ended, and not while it was inspected.
func runsAgent(f Facts) bool {
	switch {
	case !byNetwork(f):
		return ours(f)
	case neverOff(f): // what it was restarted into shows in nothing
		return false
	case f.State == provisioning || f.State == deprovisioning && f.Cleaning:
		return on(f) && !f.SeenOff
	}
	return on(f) && f.SeenOff && f.State != deprovisioning && f.Part.State != PartRunning
}

// neverOff: the server is on, and must stay on.
func neverOff(f Facts) bool { return f.DisablePowerOff && on(f) }

// strayWait is how long an agent is listened for that another controller may
// have had booted, where nothing else shows that: agents are heard of every few
// seconds (agent.Config, Poll). Whatever boots meanwhile has begun no work.
const strayWait = time.Minute

// unheard: an agent that came by the network would have been heard of by now.
func unheard(f Facts) bool { return f.AgentWait >= strayWait }

// stillAgents: a server that must not be off has not been restarted into what is
// deployed, as far as is known.
func stillAgents(f Facts) bool { return ours(f) || byNetwork(f) && !f.Restarted }

func onMedia(f Facts) bool { return !byNetwork(f) }

func restarted(f Facts) bool { return f.Restarted }

func nextBootIsNot(d bmc.Device) func(Facts) bool {
	return func(f Facts) bool { return f.NextBoot != d }
}

func and(conditions ...func(Facts) bool) func(Facts) bool {
	return func(f Facts) bool {
		for _, c := range conditions {
			if !c(f) {
				return false
			}
		}
		return true
	}
}

func not(c func(Facts) bool) func(Facts) bool { return func(f Facts) bool { return !c(f) } }

func on(f Facts) bool  { return f.Power == bmc.On }
func off(f Facts) bool { return f.Power == bmc.Off }

func moving(f Facts) bool { return f.Power == bmc.PoweringOn || f.Power == bmc.PoweringOff }

func agentUp(f Facts) bool { return f.AgentUp }

func failed(t metal3.ErrorType) func(Facts) bool {
	return func(f Facts) bool { return f.ErrorType == t }
}

func job(which func(Facts) JobState, is JobState) func(Facts) bool {
	return func(f Facts) bool { return which(f) == is }
}

func inspectJob(f Facts) JobState { return f.Inspect }
func cleanJob(f Facts) JobState   { return f.Clean }
func writeJob(f Facts) JobState   { return f.Write }

// cleanFirst: disks are erased before an image is written, too (B-61).
func cleanFirst(f Facts) bool { return f.Cleaning && f.Clean != JobDone }

func servicing(f Facts) bool { return f.Servicing }

func part(is PartState) func(Facts) bool {
	return func(f Facts) bool { return f.Part.State == is }
}

func data(is Data) func(Facts) bool { return func(f Facts) bool { return f.Data == is } }

// WantsAgent says whether a state needs an agent that is not up.
func WantsAgent(f Facts) bool { return withWork.has(f.State) && working(f) && !f.AgentUp }

// TakesData says whether a host is about to be switched on with what was written
// to its disks: the one moment at which its data image is attached or detached
// (B-230).
func TakesData(f Facts) bool {
	return bootable.has(f.State) && off(f) && f.Online && f.Reboot == RebootNone
}

// jobFails tells what the agent says; silent is told when it says nothing.
func jobFails(t metal3.ErrorType, before, silent string) func(Facts) (metal3.ErrorType, string) {
	return func(f Facts) (metal3.ErrorType, string) {
		if f.JobError == "" {
			return t, silent
		}
		return t, before + f.JobError
	}
}

// aborted: somebody has ended the inspection who wants it begun anew (B-49).
func aborted(f Facts) bool { return strings.Contains(f.JobError, "aborted") }

func registrationFails(f Facts) (metal3.ErrorType, string) {
	if f.Strange && bootable.has(f.State) {
		return metal3.ProvisionedRegistrationError, "Host adoption failed: " + f.RegistrationError
	}
	return metal3.RegistrationError, f.RegistrationError
}

// Rules that are counted by their names.
const (
	GaveUpDeprovisioning = "is being deleted and cannot be deprovisioned"
	AwaitsImage          = "waits for its pre-provisioning image"
	AwaitsAttaching      = "is being deleted once it is attached"
)

// rules in order: the first that applies decides. The order within a state is
// that of B-11 (deletion, registration, the state's own).
var rules = []rule{
	{in: attached, name: "is being deleted, detached", ref: "B-93", when: func(f Facts) bool {
		return f.Deleting && !f.DetachDelays && (detachable(f) || f.Detach && f.IsDetached)
	}, to: to(deleting)},
	{in: attached, name: AwaitsAttaching, ref: "B-93", when: func(f Facts) bool { return f.Deleting && (detachable(f) || f.Detach && f.IsDetached) }},
	{in: attached, name: "is detached", ref: "B-91", when: func(f Facts) bool { return f.Detach && f.IsDetached }},
	{in: attached, name: "shall be detached", ref: "B-91", when: detachable, do: Detach, after: 1},
	{in: attached, name: "is no longer detached", ref: "B-91 B-93", when: func(f Facts) bool { return f.IsDetached }, do: Attach, after: 1},

	{in: states{stateNone, unmanaged, registering}, name: "is being deleted before it was registered", ref: "B-68", when: isDeleting, to: to(deleting)},
	{in: states{provisioning, provisioned}, name: "is being deleted with an image on its disk", ref: "B-68", when: isDeleting, to: to(deprovisioning)},
	{in: states{inspecting, matching, preparing, available, ready, external}, name: "is being deleted without an image", ref: "B-68", when: isDeleting, to: to(poweringOff)},
	{in: states{deprovisioning, poweringOff}, name: "is being deleted and was never registered", ref: "B-69", when: func(f Facts) bool { return f.Deleting && f.NeverRegistered && unregistered(f) }, to: to(deleting)},
	{in: states{deprovisioning}, name: GaveUpDeprovisioning, ref: "B-69", when: func(f Facts) bool { return f.Deleting && f.ErrorCount > forgivenDeletes }, to: to(poweringOff)},
	{in: states{poweringOff}, name: "cannot be powered off", ref: "B-70", when: func(f Facts) bool { return f.ErrorCount > forgivenDeletes }, to: to(deleting)},

	{in: states{stateNone, unmanaged}, name: "has BMC details", ref: "B-40 B-42", when: func(f Facts) bool { return f.HasDetails }, to: to(registering)},
	{in: states{stateNone}, name: "has no BMC details", ref: "B-41", when: always, to: to(unmanaged)},

	{in: managed, name: "cannot be registered", ref: "B-45 B-46", when: unregistered, fail: registrationFails},
	{in: managed, name: "is registered again", ref: "B-46 B-114", when: func(f Facts) bool { return f.ErrorType == metal3.RegistrationError && f.State != registering }, clear: metal3.RegistrationError, after: 1},
	{in: bootable, name: "is adopted again", ref: "B-63", when: failed(metal3.ProvisionedRegistrationError), clear: metal3.ProvisionedRegistrationError, after: 1},
	{in: states{registering}, name: "is registered, provisioned by others", ref: "B-44", when: func(f Facts) bool { return f.External }, to: to(external), clear: metal3.RegistrationError},
	{in: states{registering}, name: "is registered, inspection disabled", ref: "B-44 B-51", when: func(f Facts) bool { return f.InspectionDisabled }, to: to(preparing), clear: metal3.RegistrationError},
	{in: states{registering}, name: "is registered", ref: "B-43 B-44", when: always, to: to(inspecting), clear: metal3.RegistrationError},

	{in: states{provisioning}, name: "failed", ref: "B-58 B-59", when: failed(metal3.ProvisioningError), to: to(deprovisioning)},
	{in: states{provisioning}, name: "is no longer wanted", ref: "B-58", when: unwanted, to: to(deprovisioning)},
	{in: states{provisioning}, name: "cannot be provisioned as specified", ref: "B-60", when: func(f Facts) bool { return f.ValidationError != "" && !f.OpEnded }, fail: func(f Facts) (metal3.ErrorType, string) { return metal3.ProvisioningError, f.ValidationError }},

	{in: states{inspecting}, name: "shall not be inspected after all", ref: "B-51", when: func(f Facts) bool { return f.InspectionDisabled }, to: to(preparing), clear: metal3.InspectionError, after: 1},
	{in: states{inspecting, provisioning}, name: "shall begin again", ref: "B-50", when: func(f Facts) bool { return f.Reboot == RebootOnce && f.RebootForce && !f.OpEnded }, do: BeginAgain, after: 1},

	{in: withWork, name: AwaitsImage, ref: "B-240", when: and(WantsAgent, func(f Facts) bool { return f.AwaitsImage }), after: imageWait},
	{in: withWork, name: powerChanges, when: moving, after: shortWait},
	// A server that must never be off is restarted instead (B-125). The override
	// goes before the medium: that it is spent shows that the agent was booted.
	{in: withWork, name: "must not be off, and would not boot its agent", ref: "B-125", when: and(working, onMedia, not(agentUp), neverOff, nextBootIsNot(bmc.BootCD), not(setUp)), do: BootCD, after: 1},
	{in: withWork, name: "must not be off, and has no agent medium", ref: "B-125", when: and(working, onMedia, not(agentUp), neverOff, not(setUp)), do: InsertMedia, after: 1},
	{in: withWork, name: "must not be off, and is to boot its agent", ref: "B-125", when: and(working, onMedia, not(agentUp), neverOff, not(nextBootIsNot(bmc.BootCD)), not(restarted)), do: RestartBoot, after: longWait},
	// One that boots by the network may run its agent already: it has no medium
	// that would show.
	{in: withWork, name: "must not be off, and may run an agent that was not heard of", ref: "B-125", when: and(working, byNetwork, not(agentUp), neverOff, not(setUp), not(restarted), not(unheard)), after: shortWait},
	{in: withWork, name: "must not be off, and would not boot its agent by the network", ref: "B-125 B-131", when: and(working, byNetwork, not(agentUp), neverOff, not(setUp), not(restarted), func(f Facts) bool { return f.NextBoot != f.Net }), do: BootNet, after: 1},
	{in: withWork, name: "must not be off, and is to boot its agent by the network", ref: "B-125 B-131", when: and(working, byNetwork, not(agentUp), neverOff, not(setUp), not(restarted)), do: RestartBoot, after: longWait},
	{in: withWork, name: "runs something other than its agent", when: and(working, not(agentUp), on, not(setUp), not(and(byNetwork, neverOff))), do: PowerOff, after: shortWait},
	{in: withWork, name: "has no agent medium", when: and(working, not(byNetwork), not(agentUp), off, not(setUp)), do: InsertMedia, after: 1},
	{in: withWork, name: "would not boot its agent", when: and(working, not(byNetwork), not(agentUp), off, nextBootIsNot(bmc.BootCD)), do: BootCD, after: 1},
	{in: withWork, name: "would not boot its agent by the network", ref: "B-131", when: and(working, byNetwork, not(agentUp), off, func(f Facts) bool { return f.NextBoot != f.Net }), do: BootNet, after: 1},
	{in: withWork, name: "is ready to boot its agent", when: and(working, not(agentUp), off), do: PowerOn, after: shortWait},
	{in: withWork, name: "has booted no agent in time", when: and(working, not(agentUp), func(f Facts) bool { return f.AgentWait > agentWait }), fail: func(f Facts) (metal3.ErrorType, string) {
		return FailsAs(f.State), "the agent did not report within " + agentWait.String() + " of the boot"
	}},
	{in: withWork, name: "has an agent that has fallen silent", when: and(working, agentUp, func(f Facts) bool { return f.AgentSilent > agentSilence }), fail: func(f Facts) (metal3.ErrorType, string) {
		return FailsAs(f.State), "the agent has not been heard of for " + agentSilence.String()
	}},
	{in: withWork, name: "boots its agent", when: and(working, not(agentUp)), after: longWait},

	{in: states{inspecting}, name: "agent has no job", ref: "B-48", when: job(inspectJob, JobUnknown), do: OfferInspect, after: longWait},
	{in: states{inspecting}, name: "inspection was aborted", ref: "B-49", when: and(job(inspectJob, JobFailed), aborted), do: BeginAgain, after: 1},
	{in: states{inspecting}, name: "inspection failed", ref: "B-49", when: job(inspectJob, JobFailed), fail: jobFails(metal3.InspectionError, "", "Inspection failed")},
	{in: states{inspecting}, name: "inspection is done", ref: "B-48", when: job(inspectJob, JobDone), do: KeepHardware, to: to(matching), clear: metal3.InspectionError, after: 1},
	{in: states{inspecting}, name: "inspection runs", when: always, after: longWait},

	{in: states{matching}, name: "is compared with the known profiles", ref: "B-24 B-190", when: always, to: to(preparing), after: 1},

	{in: states{provisioning, deprovisioning}, name: "disks are not clean", ref: "B-61 B-65", when: and(working, cleanFirst, job(cleanJob, JobUnknown)), do: OfferClean, after: longWait},
	{in: states{provisioning}, name: "cleaning failed", ref: "B-59", when: and(working, cleanFirst, job(cleanJob, JobFailed)), fail: jobFails(metal3.ProvisioningError, "", "Image provisioning failed")},
	{in: states{deprovisioning}, name: "cleaning failed", ref: "B-66", when: and(working, cleanFirst, job(cleanJob, JobFailed)), fail: jobFails(metal3.ProvisioningError, "Cleaning failed: ", "Deprovisioning failed")},
	{in: states{provisioning, deprovisioning}, name: "cleaning runs", when: and(working, cleanFirst), after: longWait},
	{in: states{provisioning}, name: "image is not written", ref: "B-58 B-156", when: and(working, not(live), job(writeJob, JobUnknown)), do: OfferWrite, after: longWait},
	{in: states{provisioning}, name: "writing failed", ref: "B-59", when: and(working, not(live), job(writeJob, JobFailed)), fail: jobFails(metal3.ProvisioningError, "", "Image provisioning failed")},
	{in: states{provisioning}, name: "writing runs", when: and(working, not(live), job(writeJob, JobPending)), after: longWait},
	{in: states{deprovisioning}, name: "would still boot its image securely", ref: "B-140", when: and(not(ended), func(f Facts) bool { return f.Secure && f.BootStays }), do: BootAny, after: shortWait},
	{in: states{provisioning, deprovisioning}, name: "in-band work is done", ref: "B-58 B-65", when: not(ended), do: EndOperation, after: 1},

	{in: states{provisioning}, name: "must not be off, and would not boot its disk", ref: "B-125", when: and(not(working), not(live), neverOff, stillAgents, nextBootIsNot(bmc.BootDisk)), do: BootDisk, after: 1},
	{in: states{provisioning}, name: "must not be off, and would not boot its live medium", ref: "B-125 B-153", when: and(not(working), live, neverOff, not(restarted), func(f Facts) bool { return f.NextBoot != bmc.BootCD || !f.BootStays }), do: BootLive, after: 1},
	{in: states{provisioning}, name: "must not be off, and has no live medium", ref: "B-125 B-153", when: and(not(working), live, neverOff, not(liveMedium)), do: InsertLive, after: 1},
	{in: states{provisioning}, name: "must not be off, and is to boot what is deployed", ref: "B-125", when: and(not(working), neverOff, not(restarted), func(f Facts) bool { return live(f) || stillAgents(f) }), do: RestartBoot, after: shortWait},
	{in: states{preparing, provisioning, deprovisioning, poweringOff}, name: "must not be off, and still has the agent medium", ref: "B-125", when: and(not(working), neverOff, ours), do: EjectMedia, after: 1},
	{in: states{preparing, provisioning}, name: "still runs its agent", when: and(not(working), on, runsAgent), do: PowerOff, after: shortWait},
	{in: states{provisioning}, name: "runs something other than its live image", ref: "B-153", when: and(live, on, not(liveMedium)), do: PowerOff, after: shortWait},
	{in: states{deprovisioning, poweringOff}, name: "is still on", ref: "B-65 B-70", when: and(on, func(f Facts) bool { return !f.DisablePowerOff || runsAgent(f) }), do: PowerOff, after: shortWait},
	{in: states{preparing, poweringOff}, name: powerChanges, when: moving, after: shortWait},
	{in: states{preparing, provisioning, deprovisioning, poweringOff}, name: "still has the agent medium", when: and(not(working), ours), do: EjectMedia, after: 1},
	{in: states{deprovisioning, poweringOff}, name: "still has its live medium", ref: "B-153", when: liveMedium, do: EjectMedia, after: 1},

	{in: states{preparing}, name: "waits for a part's validation", ref: "B-54", when: part(PartStale), after: staleWait},
	{in: states{preparing}, name: "could not be prepared, and is tried again", ref: "B-53", when: and(part(PartFailed), failed(metal3.PreparationError)), do: BeginPart, after: shortWait},
	{in: states{preparing}, name: "could not be prepared", ref: "B-53", when: part(PartFailed), fail: func(f Facts) (metal3.ErrorType, string) { return metal3.PreparationError, f.Part.Error }},
	{in: states{preparing}, name: "has a part to prepare", ref: "B-52", when: part(PartWanted), do: BeginPart, after: shortWait},
	{in: states{preparing}, name: "prepares a part", ref: "B-52", when: part(PartRunning), do: CarryPart, after: longWait},
	{in: states{preparing}, name: "has nothing to prepare", ref: "B-52", when: always, to: to(available), clear: metal3.PreparationError, after: 1},
	{in: states{provisioning}, name: "has no live medium", ref: "B-153", when: and(live, off, not(liveMedium)), do: InsertLive, after: 1},
	{in: states{provisioning}, name: "would not boot its live medium", ref: "B-153", when: and(live, off, func(f Facts) bool { return f.NextBoot != bmc.BootCD || !f.BootStays }), do: BootLive, after: shortWait},
	{in: states{provisioning}, name: "would not boot its disk", ref: "B-58", when: and(not(live), off, nextBootIsNot(bmc.BootDisk)), do: BootDisk, after: 1},
	{in: states{provisioning}, name: "is ready to boot what is deployed", ref: "B-58 B-153", when: off, do: PowerOn, after: shortWait},
	{in: states{provisioning}, name: "is deployed and on", ref: "B-58", when: always, to: to(provisioned), clear: metal3.ProvisioningError},
	{in: states{deprovisioning}, name: "is clean, and being deleted", ref: "B-69", when: isDeleting, to: to(poweringOff), clear: metal3.ProvisioningError, after: 1},
	{in: states{deprovisioning}, name: "is clean", ref: "B-65", when: always, to: to(available), clear: metal3.ProvisioningError, after: 1},
	{in: states{poweringOff}, name: "is off", ref: "B-70", when: always, to: to(deleting), after: 1},
	{in: states{deleting}, name: "may go", ref: "B-71", when: always, do: Release},

	{in: idle, name: "is provisioned by others", ref: "B-55 B-260", when: func(f Facts) bool { return f.External }, to: to(external)},
	{in: states{external}, name: "is no longer provisioned by others, and has no image", ref: "B-64", when: func(f Facts) bool { return !f.External && nothingWanted(f) }, to: to(deprovisioning), after: 1},
	{in: states{external}, name: "is no longer provisioned by others", ref: "B-64", when: func(f Facts) bool { return !f.External }, to: to(provisioned), after: 1},
	{in: idle, name: "shall be inspected again", ref: "B-55 B-98", when: func(f Facts) bool { return f.InspectRequested && !f.InspectionDisabled }, to: to(inspecting), after: 1},
	{in: idle, name: "shall be prepared again", ref: "B-55", when: func(f Facts) bool { return f.Part.State != PartSettled && f.Part.State != PartStale }, to: to(preparing), after: 1},
	{in: idle, name: "has other root device hints than before", ref: "B-55 B-65", when: func(f Facts) bool { return f.HintsChanged }, to: to(preparing), after: 1},
	{in: idle, name: "shall be provisioned", ref: "B-55 B-56 B-156", when: needsProvisioning, to: to(provisioning), clear: metal3.PowerManagementError, after: 1},
	{in: states{provisioned}, name: "has another image than wanted", ref: "B-62 B-156", when: imageGone, to: to(deprovisioning), after: 1},

	{in: settled, name: powerChanges, ref: "B-120", when: moving, after: shortWait},
	{in: bootable, name: "waits for the validation of what it is serviced with", ref: "B-54 B-220", when: and(servicing, part(PartStale)), after: staleWait},
	{in: bootable, name: "could not be serviced, and is tried again", ref: "B-220", when: and(servicing, part(PartFailed), failed(metal3.ServicingError)), do: BeginPart, after: shortWait},
	{in: bootable, name: "could not be serviced", ref: "B-220", when: and(servicing, part(PartFailed)), fail: func(f Facts) (metal3.ErrorType, string) { return metal3.ServicingError, f.Part.Error }},
	{in: bootable, name: "has a part to be serviced", ref: "B-220", when: and(servicing, part(PartWanted)), do: BeginPart, after: shortWait},
	{in: bootable, name: "services a part", ref: "B-220", when: and(servicing, part(PartRunning)), do: CarryPart, after: longWait},
	{in: bootable, name: "is serviced", ref: "B-220", when: servicing, do: EndService, clear: metal3.ServicingError, after: servicedWait},
	{in: bootable, name: "was off before it could be rebooted, or is for it", ref: "B-95 B-97", when: func(f Facts) bool { return off(f) && f.Reboot == RebootOnce }, do: EndReboot, after: 1},
	{in: bootable, name: "is held off", ref: "B-96", when: func(f Facts) bool { return off(f) && f.Reboot == RebootHeld }},
	{in: bootable, name: "shall be rebooted, but never be off", ref: "B-125", when: func(f Facts) bool { return on(f) && f.Reboot == RebootOnce && f.DisablePowerOff }, do: Restart, after: 1},
	{in: bootable, name: "shall be serviced before it is on", ref: "B-220", when: func(f Facts) bool {
		return off(f) && f.Online && f.Part.State != PartSettled && f.Part.State != PartStale
	}, do: BeginService, after: 1},
	{in: bootable, name: "could not be given its data image yet", ref: "B-230", when: and(TakesData, data(DataWaits)), after: dataWait},
	{in: bootable, name: "holds another data image than it shall", ref: "B-230", when: and(TakesData, data(DataOther)), do: DetachData, after: 1},
	{in: bootable, name: "has not got its data image", ref: "B-230", when: and(TakesData, data(DataMissing)), do: AttachData, after: 1},
	{in: settled, name: "shall be on", ref: "B-120", when: and(off, func(f Facts) bool { return f.Online }), do: PowerOn, after: shortWait},
	{in: settled, name: "shall be off", ref: "B-95 B-123", when: func(f Facts) bool { return on(f) && shallBeOff(f) && f.SoftOff == 0 && !hard(f) }, do: SoftOff, after: shortWait},
	{in: settled, name: "was asked to shut down", ref: "B-123", when: func(f Facts) bool { return on(f) && shallBeOff(f) && f.SoftOff < softOffWait && !hard(f) }, after: shortWait},
	{in: settled, name: "does not shut down, or shall not be asked to", ref: "B-95 B-123", when: func(f Facts) bool { return on(f) && shallBeOff(f) }, do: PowerOff, after: shortWait},
	{in: settled, name: "power is as wanted again", ref: "B-124", when: failed(metal3.PowerManagementError), clear: metal3.PowerManagementError},
}

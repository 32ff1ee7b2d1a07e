package phase

import (
	"slices"
	"strings"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// The states by the names of the specification.
const (
	stateNone      = metal3.StateNone
	unmanaged      = metal3.StateUnmanaged
	registering    = metal3.StateRegistering
	inspecting     = metal3.StateInspecting
	matching       = metal3.StateMatchProfile
	preparing      = metal3.StatePreparing
	available      = metal3.StateAvailable
	ready          = metal3.StateReady // older name of available (B-26)
	provisioning   = metal3.StateProvisioning
	provisioned    = metal3.StateProvisioned
	external       = metal3.StateExternallyProvisioned
	deprovisioning = metal3.StateDeprovisioning
	poweringOff    = metal3.StatePoweringOffBeforeDelete
	deleting       = metal3.StateDeleting
	shortWait      = 3 * time.Second  // until the next look at the BMC (B-12)
	longWait       = 10 * time.Second // until the next look at the agent (B-12)
	softOffWait    = 180 * time.Second
	agentSilence   = 15 * time.Minute // an agent reports every few seconds, whatever it does
	usurpedSilence = 2 * time.Minute  // the same, when another agent has the token of its boot
	agentWait      = 30 * time.Minute // POST of a slow server and download of the agent
	staleWait      = time.Minute      // for the validation of a part (B-12, B-54)
	servicedWait   = time.Minute      // B-12
	dataWait       = 30 * time.Second // B-230
	imageWait      = 5 * time.Minute  // B-12
	impossibleWait = 10 * time.Minute // until the next comparison of an impossible part with the server
	deleteAttempts = 3                // failures after which a deletion goes on regardless (B-69, B-70)
)

// States lists the provisioning states of the rules.
var States = []State{stateNone, unmanaged, registering, inspecting, matching, preparing, available, ready,
	provisioning, provisioned, external, deprovisioning, poweringOff, deleting}

type states []State

func (s states) has(x State) bool { return slices.Contains(s, x) }

var (
	managed  = states{registering, inspecting, preparing, available, ready, provisioning, provisioned, external, deprovisioning, poweringOff}
	attached = states{inspecting, matching, preparing, available, ready, provisioning, provisioned, external, deprovisioning} // states that can be detached
	settled  = states{available, ready, provisioned, external}
	idle     = states{available, ready}
	bootable = states{provisioned, external}                               // states whose system runs
	withWork = states{inspecting, preparing, provisioning, deprovisioning} // states that boot the agent
	serving  = states{inspecting, provisioning, deprovisioning}            // states that always boot the agent
)

// rule is a row of the state machine: in one of these states, when the condition
// holds, the action.
type rule struct {
	in    states
	name  string // the condition in words
	ref   string // numbers of the reference's statements
	when  func(Facts) bool
	do    Action
	to    *State
	after time.Duration
	fail  func(Facts) (metal3.ErrorType, string)
	clear metal3.ErrorType
}

// awaits reports whether the rule only waits for the agent.
func (r *rule) awaits() bool {
	return r.after == longWait && r.do == None && r.to == nil && r.fail == nil
}

// stuck reports whether the rule only waits, and not for the agent or the BMC.
func (r *rule) stuck() bool {
	return r.after > longWait && r.do == None && r.to == nil && r.fail == nil
}

func to(s State) *State { return &s }

func always(Facts) bool { return true }

func isDeleting(f Facts) bool { return f.Deleting }

func unregistered(f Facts) bool { return f.RegistrationError != "" }

// working reports whether the state still needs its agent.
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

// wantsOff is true for a while when a reboot is requested.
func wantsOff(f Facts) bool {
	return !f.DisablePowerOff && (!f.Online || f.Reboot != RebootNone && settled.has(f.State))
}

// wantsHardOff reports whether to power off without asking the operating system.
func wantsHardOff(f Facts) bool {
	return f.ErrorCount > 0 || f.RebootHard && f.Reboot != RebootNone && settled.has(f.State)
}

// detachable reports whether the detached annotation applies (B-91).
func detachable(f Facts) bool { return f.Detach && (settled.has(f.State) || f.DetachForce) }

// Leaves reports whether the controller must not touch a server: its host is
// detached, or about to be.
func Leaves(f Facts) bool { return f.IsDetached || attached.has(f.State) && detachable(f) }

// imageDiffers reports whether the deployed image or method differs from the one of
// the specification (B-62).
func imageDiffers(f Facts) bool {
	return f.HaveImage != f.WantImage || f.HaveDeploy != f.WantDeploy
}

func nothingWanted(f Facts) bool { return f.WantImage == "" && f.WantDeploy == "" }

// deploymentUnwanted reports whether a running deployment is no longer wanted, or
// is of another image (B-58).
func deploymentUnwanted(f Facts) bool {
	return nothingWanted(f) || f.ImageChanged || (f.HaveImage != "" || f.HaveDeploy != "") && imageDiffers(f)
}

func live(f Facts) bool { return f.Live }

func liveMedium(f Facts) bool { return f.Media == MediaLive }

func hasAgentMedium(f Facts) bool { return f.Media == MediaCurrent || f.Media == MediaOld }

// byNetwork reports whether the agent boots over the network instead of from
// virtual media.
func byNetwork(f Facts) bool { return f.NetBoot != bmc.BootNone }

// runsCurrentAgent reports whether a server that is on runs this operation's
// agent, or is booting it.
func runsCurrentAgent(f Facts) bool { return f.Media == MediaCurrent || byNetwork(f) && f.SeenOff }

// runsAgent reports whether an agent still runs whose work is done. Its medium shows
// it, and in provisioning the power in the status, too: a BMC that restarts loses the
// medium while the agent runs on, which would end as the deployed system. After an
// inspection such an agent is idle, and the next operation ends it. An agent booted
// over the network has no medium: the power in the status is updated when the work of
// provisioning and deprovisioning ends, and not while a host is inspected.
func runsAgent(f Facts) bool {
	switch {
	case hasAgentMedium(f):
		return true
	case mustStayOn(f): // nothing shows into which system it was restarted
		return false
	case f.State == provisioning || byNetwork(f) && f.State == deprovisioning && f.Cleaning:
		return on(f) && !f.SeenOff
	case !byNetwork(f):
		return false
	}
	return on(f) && f.SeenOff && f.State != deprovisioning && f.Part.State != PartRunning
}

// mustStayOn reports whether the server is on and must not be powered off.
func mustStayOn(f Facts) bool { return f.DisablePowerOff && on(f) }

// unknownAgentWait is the wait for an agent that another controller may have
// booted, where nothing else shows it: agents report every few seconds
// (agent.Config, Poll). An agent that boots meanwhile has not begun any work.
const unknownAgentWait = time.Minute

// agentNotHeard reports whether a running agent would have reported by now.
func agentNotHeard(f Facts) bool { return f.AgentWait >= unknownAgentWait }

// runsUndeployedAgent reports whether a server that must stay on has not yet been
// restarted from the agent into the deployed system. It is true if that is unknown.
func runsUndeployedAgent(f Facts) bool { return hasAgentMedium(f) || !f.Restarted && !f.SeenOff }

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

func agentBound(f Facts) bool { return f.AgentBound }

func failed(t metal3.ErrorType) func(Facts) bool {
	return func(f Facts) bool { return f.ErrorType == t }
}

// reported reports whether the status has the part's error.
func reported(t metal3.ErrorType) func(Facts) bool {
	return func(f Facts) bool { return f.ErrorType == t && f.ErrorMessage == f.Part.Error }
}

func job(which func(Facts) JobState, want JobState) func(Facts) bool {
	return func(f Facts) bool { return which(f) == want }
}

func inspectJob(f Facts) JobState { return f.Inspect }
func cleanJob(f Facts) JobState   { return f.Clean }
func writeJob(f Facts) JobState   { return f.Write }

// cleanFirst reports whether disks have to be erased first, also before an image
// is written (B-61).
func cleanFirst(f Facts) bool { return f.Cleaning && f.Clean != JobDone }

func servicing(f Facts) bool { return f.Servicing }

func part(want PartState) func(Facts) bool {
	return func(f Facts) bool { return f.Part.State == want }
}

func data(want Data) func(Facts) bool { return func(f Facts) bool { return f.Data == want } }

// WantsAgent reports whether a state needs an agent that is not up.
func WantsAgent(f Facts) bool { return withWork.has(f.State) && working(f) && !f.AgentUp }

// TakesData reports whether a host is about to be powered on and to boot the deployed
// system: its data image is attached or detached only then (B-230).
func TakesData(f Facts) bool {
	return bootable.has(f.State) && off(f) && f.Online && f.Reboot == RebootNone
}

// jobFails returns the agent's error; silent applies if the agent gives none.
func jobFails(t metal3.ErrorType, before, silent string) func(Facts) (metal3.ErrorType, string) {
	return func(f Facts) (metal3.ErrorType, string) {
		if f.JobError == "" {
			return t, silent
		}
		return t, before + f.JobError
	}
}

// aborted reports whether a user has aborted the inspection to start it again
// (B-49).
func aborted(f Facts) bool { return strings.Contains(f.JobError, "aborted") }

func registrationFails(f Facts) (metal3.ErrorType, string) {
	if f.SystemError && bootable.has(f.State) {
		return metal3.ProvisionedRegistrationError, "Host adoption failed: " + f.RegistrationError
	}
	return metal3.RegistrationError, f.RegistrationError
}

// Names of rules that metrics count.
const (
	GaveUpDeprovisioning = "is being deleted and cannot be deprovisioned"
	AwaitsImage          = "waits for its pre-provisioning image"
	AwaitsAttaching      = "is being deleted once it is attached"
)

// rules are in order: the first that applies decides. Within a state the order is
// that of B-11 (deletion, registration, the state's own rules).
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
	{in: states{deprovisioning}, name: GaveUpDeprovisioning, ref: "B-69", when: func(f Facts) bool { return f.Deleting && f.ErrorCount > deleteAttempts }, to: to(poweringOff)},
	{in: states{poweringOff}, name: "cannot be powered off", ref: "B-70", when: func(f Facts) bool { return f.ErrorCount > deleteAttempts }, to: to(deleting)},

	{in: states{stateNone, unmanaged}, name: "has a BMC address", ref: "B-40 B-42", when: func(f Facts) bool { return f.HasAddress }, to: to(registering)},
	{in: states{stateNone}, name: "has no BMC address", ref: "B-21 B-41", when: always, to: to(unmanaged)},
	{in: states{registering}, name: "has no BMC address any more", ref: "B-21", when: func(f Facts) bool { return !f.HasAddress }, to: to(unmanaged)},
	{in: states{unmanaged}, name: "has credentials and no BMC address", ref: "B-112", when: and(unregistered, not(failed(metal3.RegistrationError))), fail: registrationFails},
	{in: states{unmanaged}, name: "has neither credentials nor a BMC address any more", ref: "B-41", when: and(not(unregistered), failed(metal3.RegistrationError)), clear: metal3.RegistrationError},

	{in: managed, name: "cannot be registered", ref: "B-45 B-46", when: unregistered, fail: registrationFails},
	{in: managed, name: "is registered again", ref: "B-46 B-114", when: func(f Facts) bool { return f.ErrorType == metal3.RegistrationError && f.State != registering }, clear: metal3.RegistrationError, after: 1},
	{in: bootable, name: "is adopted again", ref: "B-63", when: failed(metal3.ProvisionedRegistrationError), clear: metal3.ProvisionedRegistrationError, after: 1},
	{in: states{registering}, name: "is registered, provisioned by others", ref: "B-44", when: func(f Facts) bool { return f.External }, to: to(external), clear: metal3.RegistrationError},
	{in: states{registering}, name: "is registered, inspection disabled", ref: "B-44 B-51", when: func(f Facts) bool { return f.InspectionDisabled }, to: to(preparing), clear: metal3.RegistrationError},
	{in: states{registering}, name: "is registered", ref: "B-43 B-44", when: always, to: to(inspecting), clear: metal3.RegistrationError},

	{in: states{provisioning}, name: "failed", ref: "B-58 B-59", when: failed(metal3.ProvisioningError), to: to(deprovisioning)},
	{in: states{provisioning}, name: "is no longer wanted", ref: "B-58", when: deploymentUnwanted, to: to(deprovisioning)},
	{in: states{provisioning}, name: "cannot be provisioned as specified", ref: "B-60", when: func(f Facts) bool { return f.ValidationError != "" && !f.OpEnded }, fail: func(f Facts) (metal3.ErrorType, string) { return metal3.ProvisioningError, f.ValidationError }},

	{in: states{inspecting}, name: "shall not be inspected after all", ref: "B-51", when: func(f Facts) bool { return f.InspectionDisabled }, to: to(preparing), clear: metal3.InspectionError, after: 1},
	{in: states{inspecting, provisioning}, name: "shall begin again", ref: "B-50", when: func(f Facts) bool { return f.Reboot == RebootOnce && !f.OpEnded }, do: BeginAgain, after: 1},

	{in: withWork, name: AwaitsImage, ref: "B-240", when: and(WantsAgent, func(f Facts) bool { return f.AwaitsImage }), after: imageWait},
	{in: withWork, name: rulePowerChanging, when: moving, after: shortWait},
	// Its memory is gone, and with it the agent that has the boot's token.
	{in: serving, name: "has lost the agent that its boot is bound to", when: and(working, not(agentUp), agentBound, off), do: BeginAgain, after: 1},
	// A server that must stay on is restarted instead (B-125). The boot override
	// is set before the medium is inserted: that it is used up shows that the
	// agent was booted.
	{in: withWork, name: "must not be off, and would not boot its agent", ref: "B-125", when: and(working, onMedia, not(agentUp), mustStayOn, nextBootIsNot(bmc.BootCD), not(runsCurrentAgent)), do: BootCD, after: 1},
	{in: withWork, name: "must not be off, and has no agent medium", ref: "B-125", when: and(working, onMedia, not(agentUp), mustStayOn, not(runsCurrentAgent)), do: InsertMedia, after: 1},
	{in: withWork, name: "must not be off, and is to boot its agent", ref: "B-125", when: and(working, onMedia, not(agentUp), mustStayOn, not(nextBootIsNot(bmc.BootCD)), not(restarted)), do: RestartBoot, after: longWait},
	// One that boots over the network may run its agent already: no medium shows
	// it.
	{in: withWork, name: "must not be off, and may run an agent that was not heard of", ref: "B-125", when: and(working, byNetwork, not(agentUp), mustStayOn, not(runsCurrentAgent), not(restarted), not(agentNotHeard)), after: shortWait},
	{in: withWork, name: "must not be off, and would not boot its agent by the network", ref: "B-125 B-131", when: and(working, byNetwork, not(agentUp), mustStayOn, not(runsCurrentAgent), not(restarted), func(f Facts) bool { return f.NextBoot != f.NetBoot }), do: BootNet, after: 1},
	{in: withWork, name: "must not be off, and is to boot its agent by the network", ref: "B-125 B-131", when: and(working, byNetwork, not(agentUp), mustStayOn, not(runsCurrentAgent), not(restarted)), do: RestartBoot, after: longWait},
	{in: withWork, name: "runs something other than its agent", when: and(working, not(agentUp), on, not(runsCurrentAgent), not(and(byNetwork, mustStayOn))), do: PowerOff, after: shortWait},
	{in: withWork, name: "has no agent medium", when: and(working, not(byNetwork), not(agentUp), off, not(runsCurrentAgent)), do: InsertMedia, after: 1},
	{in: withWork, name: "would not boot its agent", when: and(working, not(byNetwork), not(agentUp), off, nextBootIsNot(bmc.BootCD)), do: BootCD, after: 1},
	{in: withWork, name: "would not boot its agent by the network", ref: "B-131", when: and(working, byNetwork, not(agentUp), off, func(f Facts) bool { return f.NextBoot != f.NetBoot }), do: BootNet, after: 1},
	{in: withWork, name: "is ready to boot its agent", when: and(working, not(agentUp), off), do: PowerOn, after: shortWait},
	{in: withWork, name: "has booted no agent in time", when: and(working, not(agentUp), func(f Facts) bool { return f.AgentWait > agentWait }), fail: func(f Facts) (metal3.ErrorType, string) {
		return FailsAs(f.State), "the agent did not report within " + agentWait.String() + " of the boot"
	}},
	{in: withWork, name: "has an agent that has fallen silent, and another one has its token", when: and(working, agentUp, func(f Facts) bool { return f.AgentRefused && f.AgentSilent > usurpedSilence }), fail: func(f Facts) (metal3.ErrorType, string) {
		return FailsAs(f.State), "the agent has not been heard of for " + usurpedSilence.String() + ", and another one with its token was refused: the server was restarted, or a stranger has read its boot medium"
	}},
	{in: withWork, name: "has an agent that has fallen silent", when: and(working, agentUp, func(f Facts) bool { return f.AgentSilent > agentSilence }), fail: func(f Facts) (metal3.ErrorType, string) {
		return FailsAs(f.State), "the agent has not been heard of for " + agentSilence.String()
	}},
	{in: withWork, name: "boots its agent", when: and(working, not(agentUp)), after: longWait},

	{in: states{inspecting}, name: "agent has no job", ref: "B-48", when: job(inspectJob, JobUnknown), do: OfferInspect, after: longWait},
	{in: states{inspecting}, name: "inspection was aborted", ref: "B-49", when: and(job(inspectJob, JobFailed), aborted), do: BeginAgain, after: 1},
	{in: states{inspecting}, name: "inspection failed", ref: "B-49", when: job(inspectJob, JobFailed), fail: jobFails(metal3.InspectionError, "", "Inspection failed")},
	{in: states{inspecting}, name: "inspection is done", ref: "B-48", when: job(inspectJob, JobDone), do: StoreHardware, to: to(matching), clear: metal3.InspectionError, after: 1},
	{in: states{inspecting}, name: "inspection runs", when: always, after: longWait},

	{in: states{matching}, name: "is compared with the known profiles", ref: "B-24 B-190", when: always, to: to(preparing), after: 1},

	{in: states{provisioning, deprovisioning}, name: "disks are not clean", ref: "B-61 B-65", when: and(working, cleanFirst, job(cleanJob, JobUnknown)), do: OfferClean, after: longWait},
	{in: states{provisioning}, name: "cleaning failed", ref: "B-59", when: and(working, cleanFirst, job(cleanJob, JobFailed)), fail: jobFails(metal3.ProvisioningError, "", "Image provisioning failed")},
	{in: states{deprovisioning}, name: "cleaning failed", ref: "B-66", when: and(working, cleanFirst, job(cleanJob, JobFailed)), fail: jobFails(metal3.ProvisioningError, "Cleaning failed: ", "Deprovisioning failed")},
	{in: states{provisioning, deprovisioning}, name: "cleaning runs", when: and(working, cleanFirst), after: longWait},
	{in: states{provisioning}, name: "image is not written", ref: "B-58 B-156", when: and(working, not(live), job(writeJob, JobUnknown)), do: OfferWrite, after: longWait},
	{in: states{provisioning}, name: "writing failed", ref: "B-59", when: and(working, not(live), job(writeJob, JobFailed)), fail: jobFails(metal3.ProvisioningError, "", "Image provisioning failed")},
	{in: states{provisioning}, name: "writing runs", when: and(working, not(live), job(writeJob, JobPending)), after: longWait},
	{in: states{deprovisioning}, name: "would still boot its image securely", ref: "B-140", when: and(not(ended), func(f Facts) bool { return f.Secure && f.BootPersistent }), do: BootAny, after: shortWait},
	{in: states{deprovisioning}, name: "would still boot its live medium", ref: "B-153", when: and(not(ended), func(f Facts) bool { return f.NextBoot == bmc.BootCD && f.BootPersistent }), do: BootAny, after: shortWait},
	{in: states{provisioning, deprovisioning}, name: "in-band work is done", ref: "B-58 B-65", when: not(ended), do: EndOperation, after: 1},

	{in: states{provisioning}, name: "must not be off, and would not boot its disk", ref: "B-125", when: and(not(working), not(live), mustStayOn, runsUndeployedAgent, nextBootIsNot(bmc.BootDisk)), do: BootDisk, after: 1},
	{in: states{provisioning}, name: "must not be off, and would not boot its live medium", ref: "B-125 B-153", when: and(not(working), live, mustStayOn, not(restarted), func(f Facts) bool { return f.NextBoot != bmc.BootCD || !f.BootPersistent }), do: BootLive, after: 1},
	{in: states{provisioning}, name: "must not be off, and has no live medium", ref: "B-125 B-153", when: and(not(working), live, mustStayOn, not(liveMedium)), do: InsertLive, after: 1},
	{in: states{provisioning}, name: "must not be off, and is to boot what is deployed", ref: "B-125", when: and(not(working), mustStayOn, not(restarted), func(f Facts) bool { return live(f) || runsUndeployedAgent(f) }), do: RestartBoot, after: shortWait},
	{in: states{preparing, provisioning, deprovisioning, poweringOff}, name: "must not be off, and still has the agent medium", ref: "B-125", when: and(not(working), mustStayOn, hasAgentMedium), do: EjectMedia, after: 1},
	{in: states{preparing, provisioning}, name: "still runs its agent", when: and(not(working), on, runsAgent), do: PowerOff, after: shortWait},
	{in: states{provisioning}, name: "runs something other than its live image", ref: "B-153", when: and(live, on, not(liveMedium)), do: PowerOff, after: shortWait},
	{in: states{deprovisioning, poweringOff}, name: "is still on", ref: "B-65 B-70", when: and(on, func(f Facts) bool { return !f.DisablePowerOff || runsAgent(f) }), do: PowerOff, after: shortWait},
	{in: states{preparing, poweringOff}, name: rulePowerChanging, when: moving, after: shortWait},
	{in: states{preparing, provisioning, deprovisioning, poweringOff}, name: "still has the agent medium", when: and(not(working), hasAgentMedium), do: EjectMedia, after: 1},
	{in: states{deprovisioning, poweringOff}, name: "still has its live medium", ref: "B-153", when: liveMedium, do: EjectMedia, after: 1},

	{in: states{preparing}, name: "waits for a part's validation", ref: "B-54", when: part(PartStale), after: staleWait},
	{in: states{preparing}, name: "cannot be prepared as specified, and waits for a change", ref: "B-53 B-172", when: and(part(PartImpossible), reported(metal3.PreparationError)), after: impossibleWait},
	{in: states{preparing}, name: "cannot be prepared as specified", ref: "B-53 B-172", when: part(PartImpossible), fail: func(f Facts) (metal3.ErrorType, string) { return metal3.PreparationError, f.Part.Error }, after: impossibleWait},
	{in: states{preparing}, name: "could not be prepared, and is tried again", ref: "B-53", when: and(part(PartFailed), failed(metal3.PreparationError)), do: BeginPart, after: shortWait},
	{in: states{preparing}, name: "could not be prepared", ref: "B-53", when: part(PartFailed), fail: func(f Facts) (metal3.ErrorType, string) { return metal3.PreparationError, f.Part.Error }},
	{in: states{preparing}, name: "has a part to prepare", ref: "B-52", when: part(PartWanted), do: BeginPart, after: shortWait},
	{in: states{preparing}, name: "prepares a part", ref: "B-52", when: part(PartRunning), do: StepPart, after: longWait},
	{in: states{preparing}, name: "has nothing to prepare", ref: "B-52", when: always, to: to(available), clear: metal3.PreparationError, after: 1},
	{in: states{provisioning}, name: "has no live medium", ref: "B-153", when: and(live, off, not(liveMedium)), do: InsertLive, after: 1},
	{in: states{provisioning}, name: "would not boot its live medium", ref: "B-153", when: and(live, off, func(f Facts) bool { return f.NextBoot != bmc.BootCD || !f.BootPersistent }), do: BootLive, after: shortWait},
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
	{in: states{provisioned}, name: "has another image than wanted", ref: "B-62 B-156", when: imageDiffers, to: to(deprovisioning), after: 1},

	{in: states{external}, name: "has other hardware than recorded", ref: "B-260", when: func(f Facts) bool { return f.HardwareChanged }, do: StoreHardware, after: 1},
	{in: settled, name: rulePowerChanging, ref: "B-120", when: moving, after: shortWait},
	{in: bootable, name: "waits for the validation of what it is serviced with", ref: "B-54 B-220", when: and(servicing, part(PartStale)), after: staleWait},
	{in: bootable, name: "cannot be serviced as specified, and waits for a change", ref: "B-220", when: and(servicing, part(PartImpossible), reported(metal3.ServicingError)), after: impossibleWait},
	{in: bootable, name: "cannot be serviced as specified", ref: "B-220", when: and(servicing, part(PartImpossible)), fail: func(f Facts) (metal3.ErrorType, string) { return metal3.ServicingError, f.Part.Error }, after: impossibleWait},
	{in: bootable, name: "could not be serviced, and is tried again", ref: "B-220", when: and(servicing, part(PartFailed), failed(metal3.ServicingError)), do: BeginPart, after: shortWait},
	{in: bootable, name: "could not be serviced", ref: "B-220", when: and(servicing, part(PartFailed)), fail: func(f Facts) (metal3.ErrorType, string) { return metal3.ServicingError, f.Part.Error }},
	{in: bootable, name: "has a part to be serviced", ref: "B-220", when: and(servicing, part(PartWanted)), do: BeginPart, after: shortWait},
	{in: bootable, name: "services a part", ref: "B-220", when: and(servicing, part(PartRunning)), do: StepPart, after: longWait},
	{in: bootable, name: "is serviced", ref: "B-220", when: servicing, do: EndService, clear: metal3.ServicingError, after: servicedWait},
	{in: settled, name: "was off before it could be rebooted, or is for it", ref: "B-95 B-97", when: func(f Facts) bool { return off(f) && f.Reboot == RebootOnce }, do: EndReboot, after: 1},
	{in: settled, name: "is held off", ref: "B-96", when: func(f Facts) bool { return off(f) && f.Reboot == RebootHeld }},
	{in: states{provisioned}, name: "would not boot its disk, which its BMC takes for one boot only", ref: "B-58 B-131", when: func(f Facts) bool {
		starts := off(f) && f.Online && f.Reboot == RebootNone || on(f) && f.Reboot == RebootOnce && f.DisablePowerOff
		return starts && f.BootOnce && !f.DeployedLive && f.NextBoot != bmc.BootDisk
	}, do: BootDisk, after: 1},
	{in: settled, name: "shall be rebooted, but never be off", ref: "B-125", when: func(f Facts) bool { return on(f) && f.Reboot == RebootOnce && f.DisablePowerOff }, do: Restart, after: 1},
	{in: bootable, name: "shall be serviced before it is on", ref: "B-220", when: func(f Facts) bool {
		return off(f) && f.Online && f.Part.State != PartSettled && f.Part.State != PartStale
	}, do: BeginService, after: 1},
	{in: bootable, name: "could not be given its data image yet", ref: "B-230", when: and(TakesData, data(DataWaits)), after: dataWait},
	{in: bootable, name: "holds another data image than it shall", ref: "B-230", when: and(TakesData, data(DataOther)), do: DetachData, after: 1},
	{in: bootable, name: "has not got its data image", ref: "B-230", when: and(TakesData, data(DataMissing)), do: AttachData, after: 1},
	{in: settled, name: "shall be on", ref: "B-120", when: and(off, func(f Facts) bool { return f.Online }), do: PowerOn, after: shortWait},
	{in: settled, name: "shall be off", ref: "B-95 B-123", when: func(f Facts) bool { return on(f) && wantsOff(f) && f.SoftOff == 0 && !wantsHardOff(f) }, do: SoftOff, after: shortWait},
	{in: settled, name: "was asked to shut down", ref: "B-123", when: func(f Facts) bool { return on(f) && wantsOff(f) && f.SoftOff < softOffWait && !wantsHardOff(f) }, after: shortWait},
	{in: settled, name: "does not shut down, or shall not be asked to", ref: "B-95 B-123", when: func(f Facts) bool { return on(f) && wantsOff(f) }, do: PowerOff, after: shortWait},
	{in: settled, name: "power is as wanted again", ref: "B-124", when: failed(metal3.PowerManagementError), clear: metal3.PowerManagementError},
}

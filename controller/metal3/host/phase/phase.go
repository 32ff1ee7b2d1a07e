// Package phase decides the next action for a BareMetalHost. Decide is a pure function
// of the facts. The table of rules is the state machine, the source of its
// documentation (STATES.md) and of its test. The package knows no client and no
// network, neither how facts are observed nor how a decision is performed.
package phase

import (
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// State is a provisioning state.
type State = metal3.ProvisioningState

// JobState is the state of an in-band job of the current boot.
type JobState string

// The job states. A job is Unknown if it was never offered or if a restarted
// controller does not know it.
const (
	JobUnknown JobState = ""
	JobPending JobState = "pending" // offered or running
	JobDone    JobState = "done"
	JobFailed  JobState = "failed"
)

// Media is the content of the virtual CD drive.
type Media string

// The contents.
const (
	MediaNone    Media = "none"
	MediaCurrent Media = "current" // the agent for this operation's boot
	MediaOld     Media = "old"     // the agent for an earlier boot
	MediaLive    Media = "live"    // the live ISO that is the host's image
	MediaForeign Media = "foreign" // nothing of ours
)

// PartState is the state of one part of a host's preparation: RAID, BIOS settings or
// firmware (B-52).
type PartState string

// The states of a part.
const (
	PartSettled PartState = ""
	PartStale   PartState = "stale"   // the specification has not been validated yet (B-54)
	PartWanted  PartState = "wanted"  // the server has to be changed
	PartRunning PartState = "running" // the change is in progress
	PartFailed  PartState = "failed"  // the change has failed
	// PartImpossible: the server does not offer the specified settings. Another attempt
	// would fail in the same way.
	PartImpossible PartState = "impossible"
)

// Part is the first part, in order of preparation, that is not settled; zero if
// all are.
type Part struct {
	Name  string // as in "RAID"
	State PartState
	Error string // reason of a failure, or why it is impossible
	Agent bool   // it needs the agent while it runs
}

// Data is how the virtual CD drive compares with the host's DataImage.
type Data string

// The values.
const (
	DataSettled Data = ""        // the drive holds the image that it should, or there is no DataImage
	DataMissing Data = "missing" // the drive is empty
	DataOther   Data = "other"   // the drive holds another image, or should be empty
	DataWaits   Data = "waits"   // a change has failed and is retried later
)

// Reboot is the request of the reboot annotations that count in the state (B-95,
// B-96).
type Reboot int

// The values; of several annotations the highest applies.
const (
	RebootNone Reboot = 0
	RebootOnce Reboot = 1 // off and on again
	RebootHeld Reboot = 2 // off until the annotation is removed
)

// Facts is the input of Decide: the state of a host from its object, its BMC and its
// agent. Fields that a restart of the controller clears come from earlier passes.
type Facts struct {
	State    State
	Deleting bool // deletionTimestamp is set

	// From the specification.
	HasAddress         bool   // BMC address is given
	Online             bool   // spec.online
	External           bool   // spec.externallyProvisioned
	DisablePowerOff    bool   // spec.disablePowerOff
	InspectionDisabled bool   // inspectionMode or annotation
	InspectRequested   bool   // inspect.metal3.io requests an inspection
	Cleaning           bool   // automatedCleaningMode is not disabled
	WantImage          string // spec.image.url
	HaveImage          string // status.provisioning.image.url
	Secure             bool   // status.provisioning.bootMode is UEFISecureBoot
	Live               bool   // the image is a live ISO: booted, never written (B-153)
	DeployedLive       bool   // the deployed image is a live ISO
	WantDeploy         string // spec.customDeploy.method
	HaveDeploy         string // status.provisioning.customDeploy.method
	ImageChanged       bool   // the offered write job is for another image than spec.image
	HintsChanged       bool   // root device hints differ from those that the host was prepared with
	ValidationError    string // error in the image or its parameters; "" for none

	// Reboot of an operation (inspecting, provisioning) restarts it: there, only
	// annotations with force count.
	Reboot     Reboot
	RebootHard bool // power off without asking the operating system

	Detach       bool // the annotation is present
	DetachForce  bool // applies during an operation, too
	DetachDelays bool // a deletion waits until the annotation is removed

	// From the status.
	IsDetached   bool // operationalStatus
	ErrorType    metal3.ErrorType
	ErrorMessage string
	ErrorCount   int
	OpEnded      bool // the in-band work of this state's operation has ended

	// From the BMC, in this pass.
	RegistrationError string // why the BMC cannot be managed; "" if it can
	SystemError       bool   // RegistrationError is about the system, not about the BMC
	NeverRegistered   bool   // no credentials have ever worked
	Power             bmc.Power
	Media             Media
	NextBoot          bmc.Device // boot override
	BootPersistent    bool       // the override is persistent
	BootOnce          bool       // the BMC takes overrides for the next boot only

	// NetBoot is how the agent boots over the network: BootPXE or BootHTTP.
	// BootNone means virtual media; the rules about media apply only then.
	NetBoot bmc.Device
	// SeenOff: the status last showed the host powered off. During an operation this
	// means that the running system was booted for the operation or, if its in-band
	// work has ended, after it.
	SeenOff bool

	// From the agent of this operation's boot.
	AgentUp   bool
	AgentWait time.Duration // time since it was expected; restarts with the controller
	// AgentBound: an agent has the boot, even if it has not been heard of since the
	// controller started. AgentRefused: another one has had its token, too.
	AgentBound   bool
	AgentRefused bool
	// AgentSilent is the time since the last report of an agent that is up.
	AgentSilent time.Duration
	Inspect     JobState
	Clean       JobState
	Write       JobState
	JobError    string // error of the failed job

	// From the parts that the state observes.
	Part      Part
	Servicing bool // the host is in use and is being serviced, or its servicing has failed

	// NoSlot: the limit of hosts served over the network is reached. Resting: the
	// host has failed, and has no slot until its next attempt (B-73).
	NoSlot  bool
	Resting bool

	// PowerAsked is the time since a power change was requested that has not
	// happened yet; 0 for none. It restarts with the controller.
	PowerAsked time.Duration

	// AwaitsImage: the pre-provisioning image of the agent is not built yet.
	AwaitsImage bool

	// HardwareChanged: the BMC of a host that others provision shows other hardware
	// than the status.
	HardwareChanged bool

	// Data is the state of the data image of a host that takes one: see TakesData.
	Data Data

	// Restarted, for a server that must stay on: it was restarted into the agent
	// of this boot or, if the work has ended, into the deployed system. A restarted
	// controller does not know it.
	Restarted bool
	// SoftOff is the time since a soft power-off was requested; 0 for none, or if
	// the controller has restarted.
	SoftOff time.Duration
}

// Action is a side effect.
type Action string

// The actions. None waits.
const (
	None          Action = ""
	Release       Action = "release"         // remove finalizers, so that the object is deleted
	PowerOn       Action = "power on"        //
	PowerOff      Action = "power off"       // at once
	SoftOff       Action = "soft off"        // ask the operating system
	InsertMedia   Action = "insert media"    // medium of this boot's agent
	EjectMedia    Action = "eject media"     //
	BootCD        Action = "boot CD"         // for the next boot
	BootNet       Action = "boot network"    // for the next boot
	BootDisk      Action = "boot disk"       // persistently
	BootAny       Action = "boot anything"   // in the system's boot order, without secure boot
	InsertLive    Action = "insert live"     // the live ISO of the image
	BootLive      Action = "boot live"       // from the virtual CD, persistently
	OfferInspect  Action = "offer inspect"   // an inventory job for the agent
	OfferClean    Action = "offer clean"     //
	OfferWrite    Action = "offer write"     //
	StoreHardware Action = "store hardware"  // the result of the inspection, or the BMC's inventory
	EndOperation  Action = "end operation"   // record that the in-band work is done
	BeginAgain    Action = "begin again"     // restart the operation, with a new boot of the agent
	EndReboot     Action = "end reboot"      // remove the annotation
	Restart       Action = "restart"         // reset without power off
	RestartBoot   Action = "restart to boot" // the same, for the next step of the operation
	BeginPart     Action = "begin part"      // change the server; the status records it
	StepPart      Action = "step part"       // next step of a change in progress
	BeginService  Action = "begin service"   // servicing of a host in use; the status records it
	EndService    Action = "end service"     //
	AttachData    Action = "attach data"     // insert it into the virtual CD drive
	DetachData    Action = "detach data"     //
	Detach        Action = "detach"          // stop managing the server
	Attach        Action = "attach"          // manage it again
)

// Decision is the result of Decide: the next action and the change of the status.
type Decision struct {
	Rule  string        // name of the rule that decided
	Do    Action        // performed after the status is recorded
	To    State         // the next state, if Moved
	Moved bool          // the state changes to To (which may be the empty state)
	After time.Duration // delay until the next pass, at most

	// Awaits: there is nothing to do but wait for the agent, whose reports trigger
	// a pass.
	Awaits bool

	// Stuck: there is nothing to do until somebody else changes something; the pass after
	// the delay is to see whether that has happened.
	Stuck bool

	// Fail records an error of this type, retried after a Backoff. In a state that
	// boots the agent it begins a new attempt with a new boot.
	Fail    metal3.ErrorType
	Message string
	// Delay makes the host wait for a slot (B-73), for as long as after a first
	// failure (B-15).
	Delay bool
	// Clear ends an error of this type and resets the count of failures.
	Clear metal3.ErrorType
}

// Decide returns the decision of the first rule that applies. In a state without
// rules it decides nothing.
func Decide(f Facts) Decision {
	for i := range rules {
		r := &rules[i]
		if !r.in.has(f.State) || !r.when(f) {
			continue
		}
		d := Decision{Rule: r.name, Do: r.do, After: r.after, Clear: r.clear, Awaits: r.awaits(), Stuck: r.stuck()}
		if r.to != nil {
			d.To, d.Moved = *r.to, true
		}
		if r.fail != nil {
			d.Fail, d.Message = r.fail(f)
		}
		return guard(f, d)
	}
	return Decision{Rule: "nothing to do"}
}

// Spread returns the delay of a decision as the queue gets it: a wait for a BMC or an agent
// is longer by up to a quarter, which chance, a function that returns a number in [0,1),
// chooses (B-12). Hosts that began together do not stay in step. Other delays are as they
// are.
func Spread(after time.Duration, chance func() float64) time.Duration {
	if after == shortWait || after == longWait {
		after += time.Duration(chance() * float64(after) / 4)
	}
	return after
}

// Backoff returns the wait after the count-th consecutive failure, counted from 1:
// 2^min(count,9) minutes, times a factor in (0.5,1] that jitter in [0,1) chooses
// (B-13).
func Backoff(count int, jitter float64) time.Duration {
	longest := time.Duration(1<<min(max(count, 1), 9)) * time.Minute
	return longest - time.Duration(jitter*float64(longest)/2)
}

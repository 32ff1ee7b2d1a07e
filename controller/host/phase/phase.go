// Package phase decides what to do with a BareMetalHost. Decide is pure: facts
// in, one decision out. The table of rules is the state machine, its
// documentation (STATES.md is generated from it) and the source of its test.
// The package knows no client and no network; it does not know how facts are
// observed nor how a decision is carried out.
package phase

import (
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"

	"github.com/metalab-dev/metalab/controller/bmc"
)

// State is a provisioning state.
type State = metal3.ProvisioningState

// JobState is how an in-band job of the current boot stands.
type JobState string

// The job states. A job that was never offered, or that a restarted controller
// has forgotten, is Unknown.
const (
	JobUnknown JobState = ""
	JobPending JobState = "pending" // offered or running
	JobDone    JobState = "done"
	JobFailed  JobState = "failed"
)

// Media says what the virtual CD holds.
type Media string

// The contents.
const (
	MediaNone    Media = "none"
	MediaCurrent Media = "current" // the agent for this operation's boot
	MediaOld     Media = "old"     // the agent for an earlier boot
	MediaLive    Media = "live"    // the live ISO that is the host's image
	MediaForeign Media = "foreign" // nothing of ours
)

// PartState is how a part of what a host is prepared with stands: its RAID, its
// BIOS settings or its firmware (B-52).
type PartState string

// The states of a part.
const (
	PartSettled PartState = ""
	PartStale   PartState = "stale"   // what is wanted has not been validated yet (B-54)
	PartWanted  PartState = "wanted"  // the server is to be changed
	PartRunning PartState = "running" // it is being changed
	PartFailed  PartState = "failed"  // it could not be changed
)

// Part is the first part, in the order in which they are prepared, that is not
// settled; zero when all are.
type Part struct {
	Name  string // as in "RAID"
	State PartState
	Error string // why it failed
	Agent bool   // it needs the agent while it is running
}

// Data says how the virtual CD and the host's DataImage agree.
type Data string

// The values.
const (
	DataSettled Data = ""        // the drive holds what it shall, or there is no DataImage
	DataMissing Data = "missing" // it is empty
	DataOther   Data = "other"   // it holds something else, or shall be empty
	DataWaits   Data = "waits"   // it could not be changed: not yet again
)

// Reboot is what the reboot annotations ask for (B-95, B-96).
type Reboot int

// The values; where several annotations ask, the highest holds.
const (
	RebootNone Reboot = 0
	RebootOnce Reboot = 1 // off and on again
	RebootHeld Reboot = 2 // off, until whoever asked for it lets go
)

// Facts are what is known of a host. Everything comes from the object, the
// BMC and the agent; nothing is remembered from an earlier decision but
// the members that say so.
type Facts struct {
	State    State
	Deleting bool // deletionTimestamp is set

	// Of the specification.
	HasDetails         bool   // BMC address or credentialsName is given
	Online             bool   // spec.online
	External           bool   // spec.externallyProvisioned
	DisablePowerOff    bool   // spec.disablePowerOff
	InspectionDisabled bool   // inspectionMode or annotation
	InspectRequested   bool   // inspect.metal3.io asks for another inspection
	Cleaning           bool   // automatedCleaningMode is not disabled
	WantImage          string // spec.image.url
	HaveImage          string // status.provisioning.image.url
	Secure             bool   // status.provisioning.bootMode is secure boot's
	Live               bool   // the image is a live ISO: booted, never written (B-153)
	WantDeploy         string // spec.customDeploy.method
	HaveDeploy         string // status.provisioning.customDeploy.method
	ImageChanged       bool   // the job that writes is for another image than the specification's
	HintsChanged       bool   // other root device hints than the host was prepared with
	ValidationError    string // of what provisioning needs; "" when there is none

	Reboot      Reboot
	RebootHard  bool // without asking the operating system
	RebootForce bool // an operation under way is begun anew

	Detach       bool // the annotation is there
	DetachForce  bool // also in the middle of an operation
	DetachDelays bool // a deletion waits until the annotation has gone

	// Of the status.
	IsDetached bool // operationalStatus
	ErrorType  metal3.ErrorType
	ErrorCount int
	OpEnded    bool // the in-band work of this state's operation is done

	// Of the BMC, in this pass.
	RegistrationError string // why the BMC cannot be worked with; "" when it can
	Strange           bool   // RegistrationError is about the system: the BMC itself can be worked with
	NeverRegistered   bool   // no credentials have ever worked
	Power             bmc.Power
	Media             Media
	NextBoot          bmc.Device // of the override
	BootStays         bool       // the override is not for the next boot alone

	// Net is how the agent comes by the network: BootPXE or BootHTTP. BootNone
	// is by virtual media, and the rules about media are for that alone.
	Net bmc.Device
	// SeenOff, of a host that boots by the network: when the status last told
	// its power, it was off. Within an operation that means that what it runs
	// was booted for the operation.
	SeenOff bool

	// Of the agent of this operation's boot.
	AgentUp   bool
	AgentWait time.Duration // how long it has been expected; restarts with the controller
	// AgentSilent is how long an agent that is up has not been heard of.
	AgentSilent time.Duration
	Inspect     JobState
	Clean       JobState
	Write       JobState
	JobError    string // of the failed job

	// Of the parts that the state looks at.
	Part      Part
	Servicing bool // the host is in use, and being serviced, or that has failed

	// NoSlot: as many hosts as may are served by the network. Resting: the host
	// has failed, and has let its place go until it tries again (B-73).
	NoSlot  bool
	Resting bool

	// PowerAsked is how long ago a change of power was asked for that has not
	// come about; 0 when there is none. It restarts with the controller.
	PowerAsked time.Duration

	// AwaitsImage: the image that the agent is booted from is not built yet.
	AwaitsImage bool

	// Data is how the data image stands of a host that takes one: see TakesData.
	Data Data

	// Restarted, of a server that must never be off: it was restarted into the
	// agent of this boot or, when the work has ended, into what is deployed. A
	// controller that was restarted does not know it.
	Restarted bool
	// SoftOff is how long ago a graceful shutdown was asked for; 0 when it was
	// not, or the controller has restarted.
	SoftOff time.Duration
}

// Action is a side effect.
type Action string

// The actions. None only waits.
const (
	None         Action = ""
	Release      Action = "release"         // remove finalizers: the object may go
	PowerOn      Action = "power on"        //
	PowerOff     Action = "power off"       // at once
	SoftOff      Action = "soft off"        // ask the operating system
	InsertMedia  Action = "insert media"    // the agent of this boot
	EjectMedia   Action = "eject media"     //
	BootCD       Action = "boot CD"         // once
	BootNet      Action = "boot network"    // once
	BootDisk     Action = "boot disk"       // from now on
	BootAny      Action = "boot anything"   // in its own order, and without secure boot
	InsertLive   Action = "insert live"     // the live ISO that is the image
	BootLive     Action = "boot live"       // from the CD, from now on
	OfferInspect Action = "offer inspect"   // a job to the agent
	OfferClean   Action = "offer clean"     //
	OfferWrite   Action = "offer write"     //
	KeepHardware Action = "keep hardware"   // what inspection found, before the state is left
	EndOperation Action = "end operation"   // the in-band work is done: stamp it
	BeginAgain   Action = "begin again"     // the operation under way, with an agent of its own
	EndReboot    Action = "end reboot"      // its annotation is spent
	Restart      Action = "restart"         // at once, without being off
	RestartBoot  Action = "restart to boot" // likewise, for what the operation needs
	BeginPart    Action = "begin part"      // change the server: what is begun is in the status
	CarryPart    Action = "carry part on"   // the next step of a change that is under way
	BeginService Action = "begin service"   // of a host in use: that it is serviced is in the status
	EndService   Action = "end service"     //
	AttachData   Action = "attach data"     // image, in the virtual CD
	DetachData   Action = "detach data"     //
	Detach       Action = "detach"          // let the server be
	Attach       Action = "attach"          // manage it again
)

// Decision is what to do next.
type Decision struct {
	Rule  string        // name of the rule that decided
	Do    Action        // after the status is recorded
	To    State         // when the state changes
	Moved bool          // To holds a state (which may be the empty one)
	After time.Duration // look again, at the latest

	// Awaits: there is nothing to do but wait for the agent, which makes itself
	// heard.
	Awaits bool

	// Fail records an error of this type, to be tried again after a Backoff. In
	// a state that boots the agent it also begins a new attempt, with a boot
	// of its own.
	Fail    metal3.ErrorType
	Message string
	// Delay lets the host wait for a place among those that are served (B-73),
	// for as long as after a first failure (B-15).
	Delay bool
	// Clear ends an error of this type and the count of failures.
	Clear metal3.ErrorType
}

// Decide returns the decision of the first rule that applies. A state that no
// rule knows is left alone.
func Decide(f Facts) Decision {
	for i := range rules {
		r := &rules[i]
		if !r.in.has(f.State) || !r.when(f) {
			continue
		}
		d := Decision{Rule: r.name, Do: r.do, After: r.after, Clear: r.clear, Awaits: r.awaits()}
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

// Backoff is how long to wait after the count-th failure in a row, 1 being the
// first: 2^min(count,9) minutes, times a number from ]0.5,1] that jitter, from
// [0,1[, chooses (B-13).
func Backoff(count int, jitter float64) time.Duration {
	whole := time.Duration(1<<min(max(count, 1), 9)) * time.Minute
	return whole - time.Duration(jitter*float64(whole)/2)
}

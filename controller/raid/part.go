// Package raid prepares hosts with the RAID that they are asked to have:
// volumes that a server's controllers make, over the BMC's storage verbs, or
// software RAID, by a job for the agent. It compares what is wanted with what
// there is and names the next step; it knows no protocol, and the turn of a host
// is not its to take.
//
// Whatever it must know after a restart is in the host's status or on the BMC:
// what has been made is read there, and so is what is being made.
package raid

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host"
	"github.com/metalab-dev/metalab/controller/host/phase"
)

// Names of the arrays that software RAID consists of.
var arrayNames = [2]string{"root", "data"}

// jobRAID is the job of a boot that makes software RAID.
const jobRAID = "raid"

// resetWait is how long a server takes at the most from a reset until its
// controllers have done what waited for it: it is not reset again before.
const resetWait = 20 * time.Minute

// Part is the RAID of hosts. It is a host.Part.
type Part struct {
	Clock clock.PassiveClock

	mu   sync.Mutex
	runs map[types.UID]*run
}

// run is what this process has seen of a host that is being prepared. Without
// it nothing is done that would be wrong: a server may be reset once more.
type run struct {
	operations []string // begun, and not known to have ended
	waits      bool     // one of them, for the server's next start
	reset      time.Time
	made       int // volumes whose making has been begun
	error      string
}

var (
	_ host.Part   = (*Part)(nil)
	_ host.InBand = (*Part)(nil)
	_ host.Rooter = (*Part)(nil)
)

// Name implements host.Part.
func (p *Part) Name() string { return "RAID" }

// of is the run of a host.
func (p *Part) of(h *metal3.BareMetalHost) *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = map[types.UID]*run{}
	}
	r := p.runs[h.UID]
	if r == nil {
		r = &run{}
		p.runs[h.UID] = r
	}
	return r
}

// settled forgets a host's run.
func (p *Part) settled(h *metal3.BareMetalHost) phase.PartState {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, h.UID)
	return phase.PartSettled
}

// wanted are the volumes that the specification asks for: hard nil keeps what
// there is, while software RAID is what is asked for or none (B-170).
func wanted(h *metal3.BareMetalHost) (hard []metal3.HardwareRAIDVolume, soft []metal3.SoftwareRAIDVolume) {
	if h.Spec.RAID == nil {
		return nil, nil
	}
	return h.Spec.RAID.HardwareRAIDVolumes, h.Spec.RAID.SoftwareRAIDVolumes
}

// recorded are the volumes of the status: those that a host was prepared with,
// or is being. soft is empty but not nil where software RAID is to be deleted.
func recorded(h *metal3.BareMetalHost) (hard []metal3.HardwareRAIDVolume, soft []metal3.SoftwareRAIDVolume) {
	if h.Status.Provisioning.RAID == nil {
		return nil, nil
	}
	return h.Status.Provisioning.RAID.HardwareRAIDVolumes, h.Status.Provisioning.RAID.SoftwareRAIDVolumes
}

// begun says whether the status has what the specification asks for.
func begun(h *metal3.BareMetalHost) bool {
	hard, soft := wanted(h)
	haveHard, haveSoft := recorded(h)
	return (hard == nil || haveHard != nil && reflect.DeepEqual(hard, haveHard)) &&
		(len(soft)+len(haveSoft) == 0 || reflect.DeepEqual(soft, haveSoft))
}

// Look implements host.Part.
func (p *Part) Look(ctx context.Context, s host.Server) (phase.PartState, string, error) {
	if !begun(s.Host) {
		if err := check(s.Host); err != nil {
			return phase.PartFailed, err.Error(), nil
		}
		return phase.PartWanted, "", nil
	}
	if s.Host.Status.Provisioning.State != metal3.StatePreparing {
		return p.settled(s.Host), "", nil
	}
	if err := check(s.Host); err != nil {
		return phase.PartFailed, err.Error(), nil
	}
	if p.InBand(s.Host) {
		switch rep := s.Agent.Jobs[s.JobID(jobRAID)]; rep.State {
		case job.Done:
		case job.Failed:
			return phase.PartFailed, rep.Error, nil
		default:
			return phase.PartRunning, "", nil
		}
	}
	hard, _ := recorded(s.Host)
	if hard == nil {
		return p.settled(s.Host), "", nil
	}
	return p.lookHard(ctx, s, hard)
}

// InBand implements host.InBand: software RAID is the agent's work, and so is
// its deletion.
func (p *Part) InBand(h *metal3.BareMetalHost) bool {
	_, soft := recorded(h)
	return soft != nil
}

func check(h *metal3.BareMetalHost) error {
	address, err := bmc.ParseAddress(h.Spec.BMC.Address)
	if err != nil {
		return err
	}
	return Check(&h.Spec, address.Traits)
}

// lookHard compares the volumes of a server with those that are wanted.
func (p *Part) lookHard(ctx context.Context, s host.Server, want []metal3.HardwareRAIDVolume) (phase.PartState, string, error) {
	r := p.of(s.Host)
	store, err := p.read(ctx, s)
	var refused *failure
	switch {
	case errors.As(err, &refused):
		return phase.PartFailed, refused.Error(), nil
	case err != nil:
		return "", "", err
	}
	if err := p.follow(ctx, s, r); err != nil {
		return "", "", err
	}
	if r.error != "" {
		return phase.PartFailed, r.error, nil
	}
	if len(r.operations)+len(store.Operations) > 0 {
		return phase.PartRunning, "", nil
	}
	r.waits, r.reset = false, time.Time{} // what comes next may need one of its own
	if v, broken := broken(store); broken && r.made > 0 {
		return phase.PartFailed, fmt.Sprintf("volume %s has lost a drive while it was made", v.Name), nil
	}
	plan, err := makePlan(want, store)
	switch {
	case err != nil:
		return phase.PartFailed, err.Error(), nil
	case plan.done():
		return p.settled(s.Host), "", nil
	case r.made > 0 && r.made >= len(want) && len(plan.remove)+len(plan.create) > 0:
		return phase.PartFailed, fmt.Sprintf("what the controller has made is not what was asked for: %s", described(store)), nil
	}
	return phase.PartRunning, "", nil
}

// broken finds a volume that is not well.
func broken(s bmc.Storage) (bmc.Volume, bool) {
	for _, c := range s.Controllers {
		for _, v := range c.Volumes {
			if !v.Healthy {
				return v, true
			}
		}
	}
	return bmc.Volume{}, false
}

func described(s bmc.Storage) string {
	return names(volumes(s), func(v bmc.Volume) []string {
		return []string{fmt.Sprintf("%s (level %s, %d GiB of %d drives)", v.Name, v.Level, v.Bytes>>30, len(v.Drives))}
	})
}

func volumes(s bmc.Storage) (out []bmc.Volume) {
	for _, c := range s.Controllers {
		out = append(out, c.Volumes...)
	}
	return out
}

// failure is an error that is the user's to mend, or that passes with another
// attempt: not one that is merely waited for.
type failure struct{ error }

func (f *failure) Unwrap() error { return f.error }

// read is the storage of a server; a failure where its BMC has none.
func (p *Part) read(ctx context.Context, s host.Server) (bmc.Storage, error) {
	store := bmc.StorerOf(s.Client)
	missing := &failure{fmt.Errorf(controllerMissing, driver(s.Host))} //nolint:staticcheck // Metal3's text
	if store == nil {
		return bmc.Storage{}, missing
	}
	out, err := store.Storage(ctx)
	switch {
	case errors.Is(err, bmc.ErrUnsupported):
		hard, _ := recorded(s.Host)
		if len(hard) == 0 { // `[]`: there is nothing to clear
			return bmc.Storage{}, nil
		}
		return out, missing
	case err != nil:
		return out, err
	}
	hard, _ := recorded(s.Host)
	if len(hard) > 0 && !slices.ContainsFunc(out.Controllers, func(c bmc.Controller) bool { return len(c.Levels) > 0 }) {
		return out, missing
	}
	return out, nil
}

func driver(h *metal3.BareMetalHost) string {
	address, err := bmc.ParseAddress(h.Spec.BMC.Address)
	if err != nil {
		return ""
	}
	return address.Hardware
}

// follow asks how what was begun stands.
func (p *Part) follow(ctx context.Context, s host.Server, r *run) error {
	store := bmc.StorerOf(s.Client)
	if store == nil {
		return nil
	}
	var left []string
	for _, id := range r.operations {
		o, err := store.PollOperation(ctx, id)
		switch {
		case err != nil:
			return err
		case o.State == bmc.OperationFailed && r.error == "":
			r.error = o.Error
		case o.State == bmc.OperationRunning || o.State == bmc.OperationPending:
			left = append(left, id)
		}
	}
	r.operations = left
	return nil
}

// Begin implements host.Part (B-52).
func (p *Part) Begin(h *metal3.BareMetalHost) {
	p.settled(h)
	_, had := recorded(h)
	raid := h.Spec.RAID.DeepCopy()
	if raid == nil {
		raid = &metal3.RAIDConfig{}
	}
	if len(raid.SoftwareRAIDVolumes) == 0 {
		raid.SoftwareRAIDVolumes = nil
		if had != nil { // to be deleted
			raid.SoftwareRAIDVolumes = []metal3.SoftwareRAIDVolume{}
		}
	}
	h.Status.Provisioning.RAID = raid
}

// Forget implements host.Part (B-53). That software RAID is to be deleted is
// not forgotten: nothing else would tell.
func (p *Part) Forget(h *metal3.BareMetalHost) {
	p.settled(h)
	if r := h.Status.Provisioning.RAID; r != nil && len(r.SoftwareRAIDVolumes) > 0 {
		r.SoftwareRAIDVolumes = []metal3.SoftwareRAIDVolume{}
	}
}

// Carry implements host.Part.
func (p *Part) Carry(ctx context.Context, s host.Server) error {
	if err := check(s.Host); err != nil {
		return nil //nolint:nilerr // Look tells of it
	}
	if p.InBand(s.Host) && s.Agent.Jobs[s.JobID(jobRAID)].State != job.Done {
		if !s.Agent.Up {
			return nil
		}
		return s.Offer(job.Job{ID: s.JobID(jobRAID), Kind: job.RAID, RAID: softSpec(s)})
	}
	hard, _ := recorded(s.Host)
	if hard == nil {
		return nil
	}
	return p.carryHard(ctx, s, hard)
}

// carryHard takes the next step: everything is deleted that must go, then what
// is missing is made, one volume after the other where that takes time.
func (p *Part) carryHard(ctx context.Context, s host.Server, want []metal3.HardwareRAIDVolume) error {
	r := p.of(s.Host)
	store, err := p.read(ctx, s)
	if err != nil {
		return waitFor(err)
	}
	client := bmc.StorerOf(s.Client)
	if client == nil || r.error != "" {
		return nil
	}
	if s.System.Power == bmc.Off { // controllers have power with their server
		return s.Client.SetPower(ctx, bmc.PowerOn)
	}
	if s.System.Power != bmc.On {
		return nil
	}
	if len(store.Operations) > 0 || len(r.operations) > 0 {
		return p.wait(ctx, s, r, store.Operations)
	}
	plan, err := makePlan(want, store)
	if err != nil {
		return nil //nolint:nilerr // Look tells of it
	}
	for _, v := range plan.remove {
		o, err := client.DeleteVolume(ctx, v.ID)
		if err != nil {
			return fmt.Errorf("delete volume %s: %w", v.Name, err)
		}
		r.note(o)
	}
	if len(plan.remove) > 0 && len(r.operations) > 0 {
		return nil
	}
	for _, v := range plan.create {
		o, err := client.CreateVolume(ctx, v)
		if err != nil {
			return fmt.Errorf("create a volume of level %s: %w", v.Level, err)
		}
		r.made++
		r.note(o)
		if o.State == bmc.OperationRunning {
			return nil
		}
	}
	return nil
}

// waitFor keeps what Look tells of out of Carry's errors.
func waitFor(err error) error {
	var refused *failure
	if errors.As(err, &refused) {
		return nil
	}
	return err
}

func (r *run) note(o bmc.Operation) {
	if o.ID != "" && o.State != bmc.OperationDone {
		r.operations, r.waits = append(r.operations, o.ID), r.waits || o.State == bmc.OperationPending
	}
}

// wait resets a server whose controllers wait for that, once.
func (p *Part) wait(ctx context.Context, s host.Server, r *run, all []bmc.Operation) error {
	waits := r.waits
	store := bmc.StorerOf(s.Client)
	for _, id := range r.operations {
		o, err := store.PollOperation(ctx, id)
		if err != nil {
			return err
		}
		waits = waits || o.State == bmc.OperationPending
	}
	for _, o := range all {
		waits = waits || o.State == bmc.OperationPending
	}
	if !waits || !r.reset.IsZero() && p.Clock.Since(r.reset) < resetWait {
		return nil
	}
	r.reset = p.Clock.Now()
	return s.Client.SetPower(ctx, bmc.PowerReset)
}

// softSpec is the job that makes software RAID.
func softSpec(s host.Server) *job.RAIDSpec {
	_, soft := recorded(s.Host)
	out := &job.RAIDSpec{ID: s.JobID(jobRAID), Made: s.Now.Unix()}
	for i, v := range soft {
		a := job.ArraySpec{Name: arrayNames[i], Level: v.Level, SizeGiB: int(size(v.SizeGibibytes) >> 30)}
		for j := range v.PhysicalDisks {
			a.Disks = append(a.Disks, host.JobHints(&v.PhysicalDisks[j]))
		}
		out.Arrays = append(out.Arrays, a)
	}
	return out
}

// Root implements host.Rooter: where there are no hints the first volume is the
// root device (B-163, B-174).
func (p *Part) Root(ctx context.Context, s host.Server) (host.Root, error) {
	hard, soft := recorded(s.Host)
	if len(soft) > 0 {
		return host.Root{Array: arrayNames[0]}, nil
	}
	if len(hard) == 0 {
		return host.Root{}, nil
	}
	store, err := p.read(ctx, s)
	if err != nil {
		return host.Root{}, err
	}
	for _, c := range store.Controllers { // it is the root device, well or not
		for i := range c.Volumes {
			c.Volumes[i].Healthy = true
		}
	}
	plan, err := makePlan(hard, store)
	if err == nil && plan.volumes[0] == nil {
		err = errors.New("the first hardware RAID volume is not there any more")
	}
	if err == nil && plan.volumes[0].WWN == "" {
		err = errors.New("the BMC does not tell the worldwide name of the first hardware RAID volume: use rootDeviceHints")
	}
	if err != nil {
		return host.Root{}, err
	}
	return host.Root{Hints: job.Hints{WWNWithExtension: plan.volumes[0].WWN}}, nil
}

// HasRoot implements host.Rooter.
func (p *Part) HasRoot(h *metal3.BareMetalHost) bool {
	hard, soft := recorded(h)
	return len(hard)+len(soft) > 0
}

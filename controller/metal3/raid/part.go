// Package raid prepares hosts with the RAID of their specification: volumes of the
// server's controllers, through the BMC's storage methods, or software RAID, by a
// job for the agent. It compares the specification with the server and decides the
// next step. It knows no protocol, and package host decides when a host is
// prepared.
//
// State that must survive a restart is in the host's status or on the BMC, from which
// it reads volumes and unfinished operations.
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
	"github.com/metalab-dev/metalab/controller/metal3/host"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// Names of the software RAID arrays.
var arrayNames = [2]string{"root", "data"}

// jobRAID is the suffix of the ID of the job that creates software RAID.
const jobRAID = "raid"

// resetWait is the longest time from a reset until the controllers have done their
// pending operations: the server is not reset again before.
const resetWait = 20 * time.Minute

// Part prepares the RAID of hosts. It implements host.Part.
type Part struct {
	Clock clock.PassiveClock

	mu sync.Mutex
	// runs holds the progress of each host in preparation. It is not a field of
	// host's memory of a server, because package host, which this package imports,
	// does not know its type; host empties both together, see Forget.
	runs map[types.UID]*progress
	// refused holds software RAID that an agent has found impossible. A controller that
	// has lost it has the agent look once more.
	refused map[types.UID]refusal
}

// progress holds the operations that this process has begun for a host in
// preparation. It may be lost without harm: at worst a server is reset once more.
type progress struct {
	operations []string  // IDs of operations that have begun and not ended
	needsReset bool      // one of them is pending until the next start
	reset      time.Time // time of the last reset for pending operations
	made       int       // number of volumes requested
	error      string    // error of the first operation that failed
}

var (
	_ host.Part         = (*Part)(nil)
	_ host.InBand       = (*Part)(nil)
	_ host.RootProvider = (*Part)(nil)
	_ host.Forgetter    = (*Part)(nil)
)

// Name implements host.Part.
func (p *Part) Name() string { return "RAID" }

// progressOf returns the progress of a host, which it creates if necessary.
func (p *Part) progressOf(h *metal3.BareMetalHost) *progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = map[types.UID]*progress{}
	}
	r := p.runs[h.UID]
	if r == nil {
		r = &progress{}
		p.runs[h.UID] = r
	}
	return r
}

// Forget implements host.Forgetter: it drops the progress of a host, and why its server
// cannot have its software RAID.
func (p *Part) Forget(uid types.UID) {
	p.forgetProgress(uid)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.refused, uid)
}

func (p *Part) forgetProgress(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.runs, uid)
}

// settle drops the progress of a host whose RAID is as wanted.
func (p *Part) settle(h *metal3.BareMetalHost) phase.PartState {
	p.Forget(h.UID)
	return phase.PartSettled
}

// wanted returns the volumes of the specification. Nil hardware volumes leave the
// server's as they are; nil software volumes mean none (B-170).
func wanted(h *metal3.BareMetalHost) (hard []metal3.HardwareRAIDVolume, soft []metal3.SoftwareRAIDVolume) {
	if h.Spec.RAID == nil {
		return nil, nil
	}
	return h.Spec.RAID.HardwareRAIDVolumes, h.Spec.RAID.SoftwareRAIDVolumes
}

// recorded returns the volumes of the status: those that a host was prepared with,
// or is being prepared with. Empty but non-nil soft means that software RAID is to
// be deleted.
func recorded(h *metal3.BareMetalHost) (hard []metal3.HardwareRAIDVolume, soft []metal3.SoftwareRAIDVolume) {
	if h.Status.Provisioning.RAID == nil {
		return nil, nil
	}
	return h.Status.Provisioning.RAID.HardwareRAIDVolumes, h.Status.Provisioning.RAID.SoftwareRAIDVolumes
}

// begun reports whether the status has the volumes of the specification.
func begun(h *metal3.BareMetalHost) bool {
	hard, soft := wanted(h)
	haveHard, haveSoft := recorded(h)
	return (hard == nil || haveHard != nil && reflect.DeepEqual(hard, haveHard)) &&
		(len(soft)+len(haveSoft) == 0 || reflect.DeepEqual(soft, haveSoft))
}

// Observe implements host.Part.
func (p *Part) Observe(ctx context.Context, s host.Server) (phase.PartState, string, error) {
	if !begun(s.Host) {
		if err := check(s.Host); err != nil {
			return phase.PartImpossible, err.Error(), nil
		}
		if why := p.refusal(s.Host); why != "" {
			return phase.PartImpossible, why, nil
		}
		return phase.PartWanted, "", nil
	}
	if s.Host.Status.Provisioning.State != metal3.StatePreparing {
		return p.settle(s.Host), "", nil
	}
	if err := check(s.Host); err != nil {
		return phase.PartImpossible, err.Error(), nil
	}
	if p.InBand(s.Host) {
		switch rep := s.Agent.Jobs[s.JobID(jobRAID)]; rep.State {
		case job.Done:
		case job.Failed:
			if rep.Impossible {
				p.refuse(s.Host, rep.Error)
				return phase.PartImpossible, rep.Error, nil
			}
			return phase.PartFailed, rep.Error, nil
		default:
			return phase.PartRunning, "", nil
		}
	}
	hard, _ := recorded(s.Host)
	if hard == nil {
		return p.settle(s.Host), "", nil
	}
	return p.observeHardware(ctx, s, hard)
}

// InBand implements host.InBand: the agent creates and deletes software RAID.
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

// observeHardware compares the volumes of a server with the wanted ones.
func (p *Part) observeHardware(ctx context.Context, s host.Server, want []metal3.HardwareRAIDVolume) (phase.PartState, string, error) {
	r := p.progressOf(s.Host)
	store, err := p.read(ctx, s)
	var never *impossible
	switch {
	case errors.As(err, &never):
		return phase.PartImpossible, never.Error(), nil
	case err != nil:
		return "", "", err
	}
	if err := p.pollOperations(ctx, s, r); err != nil {
		return "", "", err
	}
	if r.error != "" {
		return phase.PartFailed, r.error, nil
	}
	if len(r.operations)+len(store.Operations) > 0 {
		return phase.PartRunning, "", nil
	}
	r.needsReset, r.reset = false, time.Time{} // later operations may need another reset
	if v, broken := findUnhealthy(store); broken && r.made > 0 {
		return phase.PartFailed, fmt.Sprintf("volume %s has lost a drive while it was made", v.Name), nil
	}
	plan, err := makePlan(want, store)
	switch {
	case err != nil:
		return phase.PartImpossible, err.Error(), nil
	case plan.complete():
		return p.settle(s.Host), "", nil
	case r.made > 0 && r.made >= len(want) && len(plan.remove)+len(plan.create) > 0:
		return phase.PartFailed, fmt.Sprintf("what the controller has made is not what was asked for: %s", describe(store)), nil
	}
	return phase.PartRunning, "", nil
}

// findUnhealthy returns a volume that is not healthy.
func findUnhealthy(s bmc.Storage) (bmc.Volume, bool) {
	for _, c := range s.Controllers {
		for _, v := range c.Volumes {
			if !v.Healthy {
				return v, true
			}
		}
	}
	return bmc.Volume{}, false
}

func describe(s bmc.Storage) string {
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

// impossible is an error that a new attempt would meet again: the specification or
// the server has to change.
type impossible struct{ error }

func (e *impossible) Unwrap() error { return e.error }

// read reads the storage of a server. The error is an impossible if the BMC reports
// none.
func (p *Part) read(ctx context.Context, s host.Server) (bmc.Storage, error) {
	store := bmc.StorerOf(s.Client)
	missing := &impossible{errors.New(controllerMissing)}
	if store == nil {
		return bmc.Storage{}, missing
	}
	out, err := store.Storage(ctx)
	switch {
	case errors.Is(err, bmc.ErrUnsupported):
		hard, _ := recorded(s.Host)
		if len(hard) == 0 { // an empty list: nothing to delete
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

// pollOperations reads the state of the operations that have begun.
func (p *Part) pollOperations(ctx context.Context, s host.Server, r *progress) error {
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
	p.forgetProgress(h.UID)
	_, had := recorded(h)
	raid := h.Spec.RAID.DeepCopy()
	if raid == nil {
		raid = &metal3.RAIDConfig{}
	}
	if len(raid.SoftwareRAIDVolumes) == 0 {
		raid.SoftwareRAIDVolumes = nil
		if had != nil { // it is to be deleted
			raid.SoftwareRAIDVolumes = []metal3.SoftwareRAIDVolume{}
		}
	}
	h.Status.Provisioning.RAID = raid
}

// Reset implements host.Part (B-53). It keeps the empty list of software RAID, the
// only record that it is to be deleted.
func (p *Part) Reset(h *metal3.BareMetalHost) {
	p.forgetProgress(h.UID)
	if r := h.Status.Provisioning.RAID; r != nil && len(r.SoftwareRAIDVolumes) > 0 {
		r.SoftwareRAIDVolumes = []metal3.SoftwareRAIDVolume{}
	}
}

// Step implements host.Part.
func (p *Part) Step(ctx context.Context, s host.Server) error {
	if err := check(s.Host); err != nil {
		return nil //nolint:nilerr // Observe reports it
	}
	if p.InBand(s.Host) && s.Agent.Jobs[s.JobID(jobRAID)].State != job.Done {
		if !s.Agent.Up {
			return nil
		}
		if _, soft := recorded(s.Host); len(soft) == 0 { // disks without arrays stay as they are
			return s.Offer(job.Job{ID: s.JobID(jobRAID), Kind: job.Clean, Clean: &job.CleanSpec{Arrays: job.ArraysOnly}})
		}
		return s.Offer(job.Job{ID: s.JobID(jobRAID), Kind: job.RAID, RAID: softSpec(s)})
	}
	hard, _ := recorded(s.Host)
	if hard == nil {
		return nil
	}
	return p.stepHardware(ctx, s, hard)
}

// stepHardware takes the next step: it deletes the volumes that are not wanted,
// then creates the missing ones, one after another if that takes time.
func (p *Part) stepHardware(ctx context.Context, s host.Server, want []metal3.HardwareRAIDVolume) error {
	r := p.progressOf(s.Host)
	store, err := p.read(ctx, s)
	if err != nil {
		return ignoreImpossible(err)
	}
	client := bmc.StorerOf(s.Client)
	if client == nil || r.error != "" {
		return nil
	}
	if s.System.Power == bmc.Off { // a controller needs the power of its server
		return s.Client.SetPower(ctx, bmc.PowerOn)
	}
	if s.System.Power != bmc.On {
		return nil
	}
	if len(store.Operations) > 0 || len(r.operations) > 0 {
		return p.resetForPending(ctx, s, r, store.Operations)
	}
	plan, err := makePlan(want, store)
	if err != nil {
		return nil //nolint:nilerr // Observe reports it
	}
	for _, v := range plan.remove {
		o, err := client.DeleteVolume(ctx, v.ID)
		if err != nil {
			return fmt.Errorf("delete volume %s: %w", v.Name, err)
		}
		r.addOperation(o)
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
		r.addOperation(o)
		if o.State == bmc.OperationRunning {
			return nil
		}
	}
	return nil
}

// ignoreImpossible drops errors that Observe reports.
func ignoreImpossible(err error) error {
	var never *impossible
	if errors.As(err, &never) {
		return nil
	}
	return err
}

func (r *progress) addOperation(o bmc.Operation) {
	if o.ID != "" && o.State != bmc.OperationDone {
		r.operations, r.needsReset = append(r.operations, o.ID), r.needsReset || o.State == bmc.OperationPending
	}
}

// resetForPending resets a server with pending operations, once.
func (p *Part) resetForPending(ctx context.Context, s host.Server, r *progress, all []bmc.Operation) error {
	waits := r.needsReset
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

// softSpec returns the job that creates software RAID.
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

// Root implements host.RootProvider: without hints the first volume is the root
// device (B-163, B-174).
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
	for _, c := range store.Controllers { // healthy or not
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

// HasRoot implements host.RootProvider.
func (p *Part) HasRoot(h *metal3.BareMetalHost) bool {
	hard, soft := recorded(h)
	return len(hard)+len(soft) > 0
}

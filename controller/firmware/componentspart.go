package firmware

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/controller/bmc"
	"github.com/metalab-dev/metalab/controller/host"
	"github.com/metalab-dev/metalab/controller/host/phase"
)

// updateLimit is how long one update may take: some components are written at
// a few kilobytes a second.
const updateLimit = 2 * time.Hour

// Components is the part of a host that the versions of its firmware are.
type Components struct{ r *Reconciler }

// Components is the part for firmware updates.
func (r *Reconciler) Components() *Components { return &Components{r} }

var _ host.Servicer = (*Components)(nil)

// Name implements host.Part.
func (*Components) Name() string { return "firmware" }

// step is how far one update is. The values are stored.
type step string

const (
	stepNone     step = ""
	stepStarting step = "starting" // the BMC has been asked, or is about to be
	stepTask     step = "task"     // it is at work
	stepCheck    step = "check"    // it says that it is done
)

// updateAttempt is how far an attempt at updates is.
type updateAttempt struct {
	Of    string                  `json:"of"` // what is wanted
	List  []metal3.FirmwareUpdate `json:"list"`
	Done  int                     `json:"done"` // of the list
	Error string                  `json:"error,omitempty"`

	// Of the update that is under way.
	Step   step      `json:"step,omitempty"`
	Task   string    `json:"task,omitempty"`   // "": the BMC gave none, or nobody got to know it
	Before string    `json:"before,omitempty"` // version
	At     time.Time `json:"at,omitzero"`      // when it began
	Reset  time.Time `json:"reset,omitzero"`   // when the system was last reset for it
}

// order is what is wanted of a host's components.
type order struct {
	hfc   *metal3.HostFirmwareComponents // nil: there is none
	at    *updateAttempt                 // nil: nothing is under way
	list  []metal3.FirmwareUpdate        // that are to be installed
	stale bool
	valid bool
}

func (p *Components) look(ctx context.Context, h *metal3.BareMetalHost) (*order, error) {
	var hfc metal3.HostFirmwareComponents
	if err := p.r.read.Get(ctx, client.ObjectKeyFromObject(h), &hfc); err != nil {
		return &order{}, client.IgnoreNotFound(err)
	}
	return &order{
		hfc: &hfc, at: load[updateAttempt](&hfc),
		list:  changedUpdates(hfc.Spec.Updates, hfc.Status.Updates),
		stale: !observed(hfc.Status.Conditions, hfc.Generation) && len(hfc.Spec.Updates) > 0,
		valid: isTrue(hfc.Status.Conditions, valid),
	}, nil
}

func (o *order) digest() string {
	var words []string
	for _, u := range o.hfc.Spec.Updates {
		words = append(words, u.Component, u.URL)
	}
	return digest(words...)
}

// aborted says whether what the attempt is at is no longer wanted.
func (o *order) aborted() bool { return o.at != nil && o.at.Of != o.digest() }

// Look implements host.Part.
func (p *Components) Look(ctx context.Context, s host.Server) (phase.PartState, string, error) {
	o, err := p.look(ctx, s.Host)
	switch {
	case err != nil || o.hfc == nil:
		return phase.PartSettled, "", err
	case o.stale:
		return phase.PartStale, "", nil
	case o.at == nil && (!o.valid || len(o.list) == 0):
		return phase.PartSettled, "", nil
	case o.at == nil, idle(s.Host):
		return phase.PartWanted, "", nil
	case o.at.Error != "" && !o.aborted():
		return phase.PartFailed, o.at.Error, nil
	case o.at.Error != "":
		return phase.PartWanted, "", nil
	}
	return phase.PartRunning, "", nil
}

// Begin implements host.Part: what is begun is in the status of the components.
func (*Components) Begin(*metal3.BareMetalHost) {}

// Forget implements host.Part.
func (*Components) Forget(*metal3.BareMetalHost) {}

// Due implements host.Servicer (B-220).
func (p *Components) Due(ctx context.Context, h *metal3.BareMetalHost) (bool, error) {
	policy, err := p.r.policy(ctx, h)
	return policy.FirmwareUpdates == metal3.HostUpdatePolicyOnReboot, err
}

// Carry implements host.Part.
func (p *Components) Carry(ctx context.Context, s host.Server) error {
	o, err := p.look(ctx, s.Host)
	if err != nil || o.hfc == nil {
		return err
	}
	u, err := updater(s.Client)
	if err != nil {
		return err
	}
	// What the BMC is at cannot be called back: what is wanted now waits for it.
	if o.at == nil || o.at.Error != "" || o.aborted() && o.at.Step == stepNone {
		if !o.valid || o.at == nil && len(o.list) == 0 {
			return p.r.save(ctx, o.hfc, nil)
		}
		if err := p.begin(ctx, s, o, u); err != nil {
			return err
		}
	}
	for o.at.Step == stepNone {
		if o.at.Done == len(o.at.List) {
			return p.r.save(ctx, o.hfc, nil)
		}
		if err := p.start(ctx, s, o, u); err != nil || o.at.Error != "" {
			return err
		}
	}
	switch o.at.Step {
	case stepStarting:
		return p.resume(ctx, s, o, u)
	case stepTask:
		return p.follow(ctx, s, o, u)
	}
	return p.check(ctx, s, o, u)
}

// begin begins an attempt: that it does is noted first, then the status has what
// was asked for (B-212). An attempt that follows a failed one at the same goes
// on where that one ended.
func (p *Components) begin(ctx context.Context, s host.Server, o *order, u bmc.Updater) error {
	at := &updateAttempt{Of: o.digest(), List: o.list}
	if o.at != nil && o.at.Error != "" && o.at.Of == at.Of {
		at.List, at.Done = o.at.List, o.at.Done
	}
	o.at = at
	if err := p.r.save(ctx, o.hfc, o.at); err != nil {
		return err
	}
	return p.keep(ctx, s, o, u, func(st *metal3.HostFirmwareComponentsStatus) { st.Updates = o.hfc.Spec.Updates })
}

// keep writes the status with the versions that the BMC tells now.
func (p *Components) keep(ctx context.Context, s host.Server, o *order, u bmc.Updater, edit func(*metal3.HostFirmwareComponentsStatus)) error {
	found, err := u.Components(ctx)
	if err != nil {
		return err
	}
	return p.r.writeComponents(ctx, s.Host, o.hfc, found, edit)
}

// start asks the BMC for the next update. What it is asked for is noted before,
// and which version there was: who finds that can tell what came of it.
func (p *Components) start(ctx context.Context, s host.Server, o *order, u bmc.Updater) error {
	next := o.at.List[o.at.Done]
	is, err := u.Component(ctx, next.Component)
	switch {
	case unsupported(err):
		return p.fail(ctx, s, o, u, fmt.Sprintf("firmware component %s: %v", next.Component, err))
	case err != nil:
		return err
	case is.Updating: // by somebody else
		return p.follow(ctx, s, o, u)
	}
	o.at.Step, o.at.Task, o.at.Before, o.at.At, o.at.Reset = stepStarting, "", is.Version, p.r.Clock.Now().UTC(), time.Time{}
	if err := p.r.save(ctx, o.hfc, o.at); err != nil {
		return err
	}
	return p.ask(ctx, s, o, u)
}

// ask hands the image to the BMC.
func (p *Components) ask(ctx context.Context, s host.Server, o *order, u bmc.Updater) error {
	next := o.at.List[o.at.Done]
	task, err := u.Update(ctx, next.Component, next.URL)
	if unsupported(err) {
		task, err = p.push(ctx, next, u)
	}
	switch {
	case errors.Is(err, bmc.ErrUnreachable) || ctx.Err() != nil:
		return err // it may have been understood: resume finds out
	case err != nil:
		return p.fail(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s: %v", next.Component, shown(next.URL), err))
	}
	o.at.Step, o.at.Task = stepTask, task
	return p.r.save(ctx, o.hfc, o.at)
}

// push sends the image to a BMC that does not fetch any.
func (p *Components) push(ctx context.Context, next metal3.FirmwareUpdate, u bmc.Updater) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, next.URL, nil)
	if err != nil {
		return "", errors.New("its address is no URL")
	}
	resp, err := p.r.HTTP.Do(req)
	if e := new(url.Error); errors.As(err, &e) {
		err = e.Err // without the address, which may hold a password
	}
	if err != nil {
		return "", fmt.Errorf("fetch the image: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("fetch the image: %s", resp.Status)
	}
	return u.Push(ctx, next.Component, path.Base(req.URL.Path), resp.Body, resp.ContentLength)
}

// shown is an address without its password.
func shown(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is no URL"
	}
	return u.Redacted()
}

// resume finds out what came of asking, where nobody is left who knows.
func (p *Components) resume(ctx context.Context, s host.Server, o *order, u bmc.Updater) error {
	is, err := u.Component(ctx, o.at.List[o.at.Done].Component)
	switch {
	case err != nil:
		return err
	case is.Updating:
		o.at.Step = stepTask
		return p.r.save(ctx, o.hfc, o.at)
	case is.Version != o.at.Before:
		o.at.Step = stepCheck
		return p.r.save(ctx, o.hfc, o.at)
	}
	return p.ask(ctx, s, o, u)
}

// follow looks at the task, or where there is none at the component.
func (p *Components) follow(ctx context.Context, s host.Server, o *order, u bmc.Updater) error {
	next := o.at.List[o.at.Done]
	task, err := bmc.Task{}, bmc.ErrNoTask
	if o.at.Task != "" {
		task, err = u.Task(ctx, o.at.Task)
	}
	lost := errors.Is(err, bmc.ErrNoTask)
	if lost {
		var is bmc.Component
		if is, err = u.Component(ctx, next.Component); err == nil {
			task.State = bmc.TaskDone
			if is.Updating {
				task.State = bmc.TaskRunning
			}
		}
	}
	switch {
	case err != nil:
		return err
	case task.State == bmc.TaskFailed:
		return p.fail(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s failed: %s", next.Component, shown(next.URL), task.Text))
	case task.State == bmc.TaskDone && o.at.Step == stepTask:
		o.at.Step = stepCheck
		return p.r.save(ctx, o.hfc, o.at)
	case !o.at.At.IsZero() && p.r.Clock.Since(o.at.At) > updateLimit:
		return p.fail(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s: not done after %s", next.Component, shown(next.URL), updateLimit))
	case task.State == bmc.TaskWaiting, lost && task.State == bmc.TaskRunning && p.r.Clock.Since(o.at.At) > resetAgain:
		return p.reset(ctx, s, o)
	}
	return nil
}

// reset starts the system anew for an update, unless that has just been: a POST
// may be writing the image.
func (p *Components) reset(ctx context.Context, s host.Server, o *order) error {
	if s.System.POST || s.System.Power != bmc.Off && !o.at.Reset.IsZero() && p.r.Clock.Since(o.at.Reset) < resetAgain {
		return nil
	}
	return startAnew(ctx, s.Client, s.System, func() error {
		o.at.Reset = p.r.Clock.Now().UTC()
		return p.r.save(ctx, o.hfc, o.at)
	})
}

// check looks at what an update has brought about. Some BMCs say that they are
// done while an image still waits for a reset.
func (p *Components) check(ctx context.Context, s host.Server, o *order, u bmc.Updater) error {
	next := o.at.List[o.at.Done]
	if s.System.POST {
		return nil
	}
	is, err := u.Component(ctx, next.Component)
	switch {
	case err != nil:
		return err
	case is.Updating:
		return nil
	case is.Health == "Critical":
		return p.fail(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s: the component does not run afterwards", next.Component, shown(next.URL)))
	case is.Version == o.at.Before && o.at.Reset.IsZero() && next.Component != bmc.ComponentBMC:
		return p.reset(ctx, s, o)
	case is.Version == o.at.Before && !o.at.Reset.IsZero() && p.r.Clock.Since(o.at.Reset) < applyGrace:
		return nil // it takes a while to show
	case is.Version == o.at.Before && o.at.Task == "":
		return p.fail(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s: the BMC has lost it", next.Component, shown(next.URL)))
	}
	err = p.keep(ctx, s, o, u, func(st *metal3.HostFirmwareComponentsStatus) {
		for i := range st.Components {
			if c := &st.Components[i]; c.Component == next.Component {
				c.LastVersionFlashed, c.UpdatedAt = c.CurrentVersion, p.r.now()
			}
		}
	})
	if err != nil {
		return err
	}
	o.at.Done, o.at.Step, o.at.Task, o.at.Before, o.at.At, o.at.Reset = o.at.Done+1, stepNone, "", "", time.Time{}, time.Time{}
	if o.at.Done == len(o.at.List) && !o.aborted() {
		return p.r.save(ctx, o.hfc, nil)
	}
	return p.r.save(ctx, o.hfc, o.at)
}

// fail ends an attempt. The status forgets what was asked for, so that it is
// asked for again (B-53, B-212).
func (p *Components) fail(ctx context.Context, s host.Server, o *order, u bmc.Updater, why string) error {
	o.at.Error, o.at.Step = why, stepNone
	if err := p.r.save(ctx, o.hfc, o.at); err != nil {
		return err
	}
	return p.keep(ctx, s, o, u, func(st *metal3.HostFirmwareComponentsStatus) { st.Updates = nil })
}

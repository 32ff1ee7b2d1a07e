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
	"github.com/metalab-dev/metalab/controller/metal3/host"
	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// updateLimit bounds one update: some components are written at a few kilobytes a
// second.
const updateLimit = 2 * time.Hour

// Components is the host.Part for firmware updates.
type Components struct{ r *Reconciler }

// Components returns the host.Part for firmware updates.
func (r *Reconciler) Components() *Components { return &Components{r} }

var _ host.Servicer = (*Components)(nil)

// Name implements host.Part.
func (*Components) Name() string { return "firmware" }

// updateStep is the progress of one update. The values are stored.
type updateStep string

const (
	stepNone     updateStep = ""
	stepStarting updateStep = "starting" // the BMC has been asked, or is about to be
	stepTask     updateStep = "task"     // the BMC is updating
	stepCheck    updateStep = "check"    // the BMC reports the end
)

// updateAttempt is the progress of an attempt at several updates.
type updateAttempt struct {
	Of    string                  `json:"of"` // digest of the wanted updates
	List  []metal3.FirmwareUpdate `json:"list"`
	Done  int                     `json:"done"` // number of updates done
	Error string                  `json:"error,omitempty"`

	// The update in progress.
	Step   updateStep `json:"step,omitempty"`
	Task   string     `json:"task,omitempty"`   // "" if the BMC gave none, or if the response was lost
	Before string     `json:"before,omitempty"` // version before the update
	At     time.Time  `json:"at,omitzero"`      // time of the request
	Reset  time.Time  `json:"reset,omitzero"`   // time of the last reset for this update
}

// updateOrder holds the updates that a host's specification asks for, and their state.
type updateOrder struct {
	hfc     *metal3.HostFirmwareComponents // nil if there is none
	attempt *updateAttempt                 // nil if nothing is in progress
	list    []metal3.FirmwareUpdate        // updates to install
	stale   bool
	valid   bool
}

func (p *Components) readWanted(ctx context.Context, h *metal3.BareMetalHost) (*updateOrder, error) {
	var hfc metal3.HostFirmwareComponents
	if err := p.r.read.Get(ctx, client.ObjectKeyFromObject(h), &hfc); err != nil {
		return &updateOrder{}, client.IgnoreNotFound(err)
	}
	return &updateOrder{
		hfc: &hfc, attempt: loadAttempt[updateAttempt](&hfc),
		list:  changedUpdates(hfc.Spec.Updates, hfc.Status.Updates),
		stale: !isObserved(hfc.Status.Conditions, hfc.Generation) && len(hfc.Spec.Updates) > 0,
		valid: isTrue(hfc.Status.Conditions, valid),
	}, nil
}

func (o *updateOrder) digest() string {
	var words []string
	for _, u := range o.hfc.Spec.Updates {
		words = append(words, u.Component, u.URL)
	}
	return digest(words...)
}

// aborted reports whether the attempt is at something that is no longer wanted.
func (o *updateOrder) aborted() bool { return o.attempt != nil && o.attempt.Of != o.digest() }

// Observe implements host.Part.
func (p *Components) Observe(ctx context.Context, s host.Server) (phase.PartState, string, error) {
	if s.Host.Status.Provisioning.State == metal3.StatePreparing && !p.r.wasRead(s.Host) {
		return phase.PartStale, "", nil // no host is available before its firmware objects exist (B-43, B-54)
	}
	o, err := p.readWanted(ctx, s.Host)
	switch {
	case err != nil || o.hfc == nil:
		return phase.PartSettled, "", err
	case o.stale:
		return phase.PartStale, "", nil
	case o.attempt == nil && (!o.valid || len(o.list) == 0):
		return phase.PartSettled, "", nil
	case o.attempt == nil, isIdle(s.Host):
		return phase.PartWanted, "", nil
	case o.attempt.Error != "" && !o.aborted():
		return phase.PartFailed, o.attempt.Error, nil
	case o.attempt.Error != "":
		return phase.PartWanted, "", nil
	}
	return phase.PartRunning, "", nil
}

// Begin implements host.Part. The attempt is recorded in the status of the
// components.
func (*Components) Begin(*metal3.BareMetalHost) {}

// Reset implements host.Part.
func (*Components) Reset(*metal3.BareMetalHost) {}

// Due implements host.Servicer (B-220).
func (p *Components) Due(ctx context.Context, h *metal3.BareMetalHost) (bool, error) {
	policy, err := p.r.policy(ctx, h)
	return policy.FirmwareUpdates == metal3.HostUpdatePolicyOnReboot, err
}

// Step implements host.Part.
func (p *Components) Step(ctx context.Context, s host.Server) error {
	o, err := p.readWanted(ctx, s.Host)
	if err != nil || o.hfc == nil {
		return err
	}
	u, err := updater(s.Client)
	if err != nil {
		return err
	}
	// An update that the BMC has begun cannot be cancelled: a new specification
	// waits for its end.
	if o.attempt == nil || o.attempt.Error != "" || o.aborted() && o.attempt.Step == stepNone {
		if !o.valid || o.attempt == nil && len(o.list) == 0 {
			return p.r.saveAttempt(ctx, o.hfc, nil)
		}
		if err := p.begin(ctx, s, o, u); err != nil {
			return err
		}
	}
	for o.attempt.Step == stepNone {
		if o.attempt.Done == len(o.attempt.List) {
			return p.r.saveAttempt(ctx, o.hfc, nil)
		}
		if err := p.start(ctx, s, o, u); err != nil || o.attempt.Error != "" {
			return err
		}
	}
	switch o.attempt.Step {
	case stepStarting:
		return p.resume(ctx, s, o, u)
	case stepTask:
		return p.pollTask(ctx, s, o, u)
	}
	return p.check(ctx, s, o, u)
}

// begin begins an attempt: first it saves the attempt, then it copies the
// requested updates to the status (B-212). An attempt at the same updates as a
// failed one continues where that ended.
func (p *Components) begin(ctx context.Context, s host.Server, o *updateOrder, u bmc.Updater) error {
	attempt := &updateAttempt{Of: o.digest(), List: o.list}
	if o.attempt != nil && o.attempt.Error != "" && o.attempt.Of == attempt.Of {
		attempt.List, attempt.Done = o.attempt.List, o.attempt.Done
	}
	o.attempt = attempt
	if err := p.r.saveAttempt(ctx, o.hfc, o.attempt); err != nil {
		return err
	}
	return p.recordVersions(ctx, s, o, u, func(st *metal3.HostFirmwareComponentsStatus) { st.Updates = o.hfc.Spec.Updates })
}

// recordVersions updates the status with the present versions.
func (p *Components) recordVersions(ctx context.Context, s host.Server, o *updateOrder, u bmc.Updater, edit func(*metal3.HostFirmwareComponentsStatus)) error {
	found, err := u.Components(ctx)
	if err != nil {
		return err
	}
	return p.r.writeComponents(ctx, s.Host, o.hfc, found, edit)
}

// start requests the next update. It saves the request and the present version
// first, so that a new controller can find out whether the update was installed.
func (p *Components) start(ctx context.Context, s host.Server, o *updateOrder, u bmc.Updater) error {
	next := o.attempt.List[o.attempt.Done]
	component, err := u.Component(ctx, next.Component)
	switch {
	case unsupported(err):
		return p.failAttempt(ctx, s, o, u, fmt.Sprintf("firmware component %s: %v", next.Component, err))
	case err != nil:
		return err
	case component.Updating: // an update by another client
		return p.pollTask(ctx, s, o, u)
	}
	o.attempt.Step, o.attempt.Task, o.attempt.Before, o.attempt.At, o.attempt.Reset = stepStarting, "", component.Version, p.r.Clock.Now().UTC(), time.Time{}
	if err := p.r.saveAttempt(ctx, o.hfc, o.attempt); err != nil {
		return err
	}
	return p.requestUpdate(ctx, s, o, u)
}

// requestUpdate sends the request to the BMC.
func (p *Components) requestUpdate(ctx context.Context, s host.Server, o *updateOrder, u bmc.Updater) error {
	next := o.attempt.List[o.attempt.Done]
	task, err := u.Update(ctx, next.Component, next.URL)
	if unsupported(err) {
		task, err = p.push(ctx, next, u)
	}
	switch {
	case errors.Is(err, bmc.ErrUnreachable) || ctx.Err() != nil:
		return err // the BMC may have understood the request: resume finds out
	case err != nil:
		return p.failAttempt(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s: %v", next.Component, redactURL(next.URL), err))
	}
	o.attempt.Step, o.attempt.Task = stepTask, task
	return p.r.saveAttempt(ctx, o.hfc, o.attempt)
}

// push uploads the image to a BMC that fetches none.
func (p *Components) push(ctx context.Context, next metal3.FirmwareUpdate, u bmc.Updater) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, next.URL, nil)
	if err != nil {
		return "", errors.New("its address is no URL")
	}
	resp, err := p.r.HTTP.Do(req)
	if e := new(url.Error); errors.As(err, &e) {
		err = e.Err // without the URL, which may contain a password
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

// redactURL returns a URL without its password.
func redactURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "an address that is no URL"
	}
	return u.Redacted()
}

// resume finds out whether the BMC has started a request whose response is lost.
func (p *Components) resume(ctx context.Context, s host.Server, o *updateOrder, u bmc.Updater) error {
	component, err := u.Component(ctx, o.attempt.List[o.attempt.Done].Component)
	switch {
	case err != nil:
		return err
	case component.Updating:
		o.attempt.Step = stepTask
		return p.r.saveAttempt(ctx, o.hfc, o.attempt)
	case component.Version != o.attempt.Before:
		o.attempt.Step = stepCheck
		return p.r.saveAttempt(ctx, o.hfc, o.attempt)
	}
	return p.requestUpdate(ctx, s, o, u)
}

// pollTask reads the task, or the component if there is no task.
func (p *Components) pollTask(ctx context.Context, s host.Server, o *updateOrder, u bmc.Updater) error {
	next := o.attempt.List[o.attempt.Done]
	task, err := bmc.Task{}, bmc.ErrNoTask
	if o.attempt.Task != "" {
		task, err = u.Task(ctx, o.attempt.Task)
	}
	lost := errors.Is(err, bmc.ErrNoTask)
	if lost {
		var component bmc.Component
		if component, err = u.Component(ctx, next.Component); err == nil {
			task.State = bmc.TaskDone
			if component.Updating {
				task.State = bmc.TaskRunning
			}
		}
	}
	switch {
	case err != nil:
		return err
	case task.State == bmc.TaskFailed:
		return p.failAttempt(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s failed: %s", next.Component, redactURL(next.URL), task.Text))
	case task.State == bmc.TaskDone && o.attempt.Step == stepTask:
		o.attempt.Step = stepCheck
		return p.r.saveAttempt(ctx, o.hfc, o.attempt)
	case !o.attempt.At.IsZero() && p.r.Clock.Since(o.attempt.At) > updateLimit:
		return p.failAttempt(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s: not done after %s", next.Component, redactURL(next.URL), updateLimit))
	case task.State == bmc.TaskWaiting, lost && task.State == bmc.TaskRunning && p.r.Clock.Since(o.attempt.At) > resetAgain:
		return p.reset(ctx, s, o)
	}
	return nil
}

// reset restarts the system for an update, unless it did so a short while ago: the
// POST may be writing the image.
func (p *Components) reset(ctx context.Context, s host.Server, o *updateOrder) error {
	if s.System.POST || s.System.Power != bmc.Off && !o.attempt.Reset.IsZero() && p.r.Clock.Since(o.attempt.Reset) < resetAgain {
		return nil
	}
	return advanceRestart(ctx, s.Client, s.System, func() error {
		o.attempt.Reset = p.r.Clock.Now().UTC()
		return p.r.saveAttempt(ctx, o.hfc, o.attempt)
	})
}

// check reads the result of an update. Some BMCs report the end while an image
// still waits for a reset.
func (p *Components) check(ctx context.Context, s host.Server, o *updateOrder, u bmc.Updater) error {
	next := o.attempt.List[o.attempt.Done]
	if s.System.POST {
		return nil
	}
	component, err := u.Component(ctx, next.Component)
	switch {
	case err != nil:
		return err
	case component.Updating:
		return nil
	case component.Health == "Critical":
		return p.failAttempt(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s: the component does not run afterwards", next.Component, redactURL(next.URL)))
	case component.Version == o.attempt.Before && o.attempt.Reset.IsZero() && next.Component != bmc.ComponentBMC:
		return p.reset(ctx, s, o)
	case component.Version == o.attempt.Before && !o.attempt.Reset.IsZero() && p.r.Clock.Since(o.attempt.Reset) < applyGrace:
		return nil // the new version may show with a delay
	case component.Version == o.attempt.Before && o.attempt.Task == "":
		return p.failAttempt(ctx, s, o, u, fmt.Sprintf("firmware update of %s from %s: the BMC has lost it", next.Component, redactURL(next.URL)))
	}
	err = p.recordVersions(ctx, s, o, u, func(st *metal3.HostFirmwareComponentsStatus) {
		for i := range st.Components {
			if c := &st.Components[i]; c.Component == next.Component {
				c.LastVersionFlashed, c.UpdatedAt = c.CurrentVersion, p.r.now()
			}
		}
	})
	if err != nil {
		return err
	}
	o.attempt.Done, o.attempt.Step, o.attempt.Task, o.attempt.Before, o.attempt.At, o.attempt.Reset = o.attempt.Done+1, stepNone, "", "", time.Time{}, time.Time{}
	if o.attempt.Done == len(o.attempt.List) && !o.aborted() {
		return p.r.saveAttempt(ctx, o.hfc, nil)
	}
	return p.r.saveAttempt(ctx, o.hfc, o.attempt)
}

// failAttempt ends an attempt. It removes the request from the status, so that it
// is made again (B-53, B-212).
func (p *Components) failAttempt(ctx context.Context, s host.Server, o *updateOrder, u bmc.Updater, why string) error {
	o.attempt.Error, o.attempt.Step = why, stepNone
	if err := p.r.saveAttempt(ctx, o.hfc, o.attempt); err != nil {
		return err
	}
	return p.recordVersions(ctx, s, o, u, func(st *metal3.HostFirmwareComponentsStatus) { st.Updates = nil })
}

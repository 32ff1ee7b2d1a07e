package lcm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/metalab-dev/metalab/agent/job"
	"github.com/metalab-dev/metalab/agent/kubeapi"
	"github.com/metalab-dev/metalab/agent/sys"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

const (
	minBackoff = 5 * time.Second // after an error of the API
	maxBackoff = time.Minute
)

// agent is a running agent.
type agent struct {
	Config
	api  *client
	boot sys.Boot

	state    state
	host     *lcmv1.HostInfo // host info of the last look, without the reboot request
	nics     []job.NIC
	hostName string
	reread   bool // the host info is to be found again
	seen     bool // the LCMMachine existed
	// synced are the SSH keys that authorized_keys has; nil: not known yet.
	synced    []string
	upgradeOf upgradeKey // key of the last attempt
	lastText  string     // text of the error that was logged last
}

// UpgradedError reports that the agent has replaced its program. The caller of Run must start
// the new program.
type UpgradedError struct {
	Version, SHA256 string
	Args            []string
}

// Error implements error.
func (e *UpgradedError) Error() string {
	return "lcm: the program was replaced by version " + e.Version + ": start it"
}

// Run reconciles the server with the LCMMachine until ctx ends, and then returns nil. It returns an
// *UpgradedError when it has replaced its program, and an error for an invalid Config; all
// other errors are logged and retried.
func Run(ctx context.Context, c Config) error {
	if err := c.complete(); err != nil {
		return err
	}
	boot, err := c.System.Boot()
	if err != nil {
		return err
	}
	a := &agent{Config: c, boot: boot, reread: true, api: newClient(c.Account, c.System, c.API)}
	defer a.api.Close()
	if a.state, err = loadState(c.System); err != nil {
		a.Log.Warn("the state file cannot be read: the agent begins anew", "error", err)
	}
	if err := a.System.Remove(runDir); err != nil { // files of plays that a killed agent has left
		a.Log.Warn("files of earlier plays cannot be removed", "error", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	changed := make(chan struct{}, 1)
	group.Go(func() { a.watch(ctx, changed) })
	backoff := minBackoff
	for {
		leave := a.Enter()
		wait, err := a.step(ctx)
		if upgraded := new(UpgradedError); errors.As(err, &upgraded) {
			leave()
			return upgraded
		}
		if err != nil && ctx.Err() == nil {
			a.report(err)
			wait = backoff
			backoff = min(2*backoff, maxBackoff)
		} else {
			backoff, a.lastText = minBackoff, ""
		}
		timer := a.Clock.NewTimer(wait)
		leave()
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		case <-changed:
			timer.Stop()
		}
	}
}

// report logs an error that differs from the last one.
func (a *agent) report(err error) {
	if text := err.Error(); text != a.lastText {
		a.lastText = text
		a.Log.Error("the agent tries again", "error", err)
	}
}

// watch sends to changed when the object may have changed. Without a watch the agent
// still looks at each Poll.
func (a *agent) watch(ctx context.Context, changed chan<- struct{}) {
	backoff := minBackoff
	for ctx.Err() == nil {
		err := a.api.watch(ctx, func() {
			backoff = minBackoff
			select {
			case changed <- struct{}{}:
			default: // a look at the object is due already
			}
		})
		if err == nil {
			backoff = minBackoff
		}
		timer := a.Clock.NewTimer(backoff)
		backoff = min(2*backoff, maxBackoff)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

// step reads the LCMMachine, executes at most one item, and returns the time until the next
// step.
func (a *agent) step(ctx context.Context) (time.Duration, error) {
	m, err := a.api.machine(ctx)
	switch {
	case kubeapi.HasStatus(err, http.StatusNotFound) && !a.seen:
		if err := a.api.create(ctx); err != nil {
			return 0, fmt.Errorf("lcm: LCMMachine %s/%s does not exist, and cannot be created: %w", a.Namespace, a.Machine, err)
		}
		return 0, nil
	case kubeapi.HasStatus(err, http.StatusNotFound): // it was deleted: its items are nobody's
		return a.Poll, nil
	case err != nil:
		return 0, fmt.Errorf("lcm: LCMMachine %s/%s: %w", a.Namespace, a.Machine, err)
	}
	a.seen = true
	if err := a.readHost(ctx); err != nil {
		return 0, err
	}
	if err := a.claimed(m); err != nil {
		return 0, err
	}
	keysErr := a.syncKeys(m)
	if m.Spec.HaltAgent {
		return a.Poll, keysErr
	}
	tokenErr := a.renewToken(ctx, m)
	components, componentsErr := a.components()
	if componentsErr != nil {
		components = m.Status.Components
	}
	switch m, err = a.writeStatus(ctx, m, components); {
	case kubeapi.HasStatus(err, http.StatusConflict): // the next look at the object shows the change
		return 0, nil
	case err != nil:
		return 0, err
	}
	if err := a.upgrade(ctx, m); err != nil {
		return 0, err
	}
	wait, err := a.runNext(ctx, m)
	if err == nil && wait != 0 {
		wait, err = a.reboot(ctx, m, wait)
	}
	return wait, errors.Join(err, keysErr, tokenErr, componentsErr)
}

// writeStatus writes the facts of the server, and the results that the API does not have yet.
// It removes the statuses of items that the object no longer has, since the controllers wait
// for their removal.
func (a *agent) writeStatus(ctx context.Context, m *lcmv1.LCMMachine, components lcmv1.Components) (*lcmv1.LCMMachine, error) {
	next := m.Status.DeepCopy()
	addresses, err := a.addresses(m)
	if err != nil {
		return nil, err
	}
	next.Addresses = addresses
	next.Interface = m.Spec.Interface
	next.AgentVersion, next.Components = a.version(m), components
	next.HostInfo = a.host.DeepCopy()
	if next.HostInfo.RebootRequired, next.HostInfo.RebootReason, err = a.rebootRequest(); err != nil {
		return nil, err
	}
	next.Distribution = distribution(next.HostInfo.OS)
	if next.StateItemStatuses == nil {
		next.StateItemStatuses = map[string]lcmv1.StateItemStatus{}
	}
	for name, result := range a.state.Results {
		next.StateItemStatuses[name] = result
	}
	exists := map[string]bool{}
	for _, it := range m.Spec.StateItems {
		exists[it.Name] = true
	}
	for name := range next.StateItemStatuses {
		if !exists[name] {
			delete(next.StateItemStatuses, name)
		}
	}
	if u := next.LCMAgentUpgradeStatus; u != nil && m.Spec.AgentConfig != nil && next.AgentVersion == m.Spec.AgentConfig.Version && u.FinishedAt == nil {
		u.FinishedAt, u.Error = a.now(), ""
	}
	a.rebootStatus(m, next)
	patch, err := statusPatch(m.Status, *next)
	if err != nil {
		return nil, fmt.Errorf("lcm: status: %w", err)
	}
	if len(patch) > 0 {
		version := ""
		if m.Status.HostInfo == nil { // when two agents report at once for the first time, one must see the other
			version = m.ResourceVersion
		}
		if m, err = a.api.patchStatus(ctx, patch, version); err != nil {
			return nil, fmt.Errorf("lcm: status: %w", err)
		}
	}
	return m, a.change(func(s *state) {
		s.Results = nil
		if r := m.Status.Reboot; !m.Spec.RebootRequired || r != nil && r.Completed {
			s.RebootFrom = ""
		}
	})
}

// version returns the version of the agent: that of spec.agentConfig if it is this program.
func (a *agent) version(m *lcmv1.LCMMachine) string {
	if c := m.Spec.AgentConfig; c != nil && c.SHA256 == a.SHA256 {
		return c.Version
	}
	return a.Version
}

// phases is the order in which items are executed. Those without a phase come last, as
// ComputeState does not wait for them.
var phases = []lcmv1.Phase{lcmv1.PhasePrepare, lcmv1.PhaseDeploy, lcmv1.PhaseReconfigure, ""}

// next returns the first item that is not done.
func next(m *lcmv1.LCMMachine) (lcmv1.LCMStateItem, bool) {
	for _, phase := range phases {
		for _, it := range m.Spec.StateItems {
			if it.Phase == phase && !item.Ready(it, m.Status.StateItemStatuses, m.Status.AgentVersion) {
				return it, true
			}
		}
	}
	return lcmv1.LCMStateItem{}, false
}

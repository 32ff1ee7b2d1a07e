package lcm

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/metalab-dev/metalab/agent/broker"
	"github.com/metalab-dev/metalab/agent/ledger"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

const (
	minRetry       = 10 * time.Second // after the first attempt; it doubles
	maxRetry       = 5 * time.Minute
	defaultTimeout = time.Hour // timeout of an item, in wall time
	maxMessage     = 2 << 10   // bytes of a message
)

// codeTimeout is the exit code of an item that exceeds its deadline, as of timeout(1).
const codeTimeout = 124

// result is the result of one execution of an item.
type result struct {
	code    int
	message string
	data    map[string]any // status.result; nil: none
}

// failed returns the result of an item whose runner could not begin or end it.
func failed(err error) result { return result{code: 1, message: err.Error()} }

// runners execute items, by their runner. They write the output of commands to the log.
var runners = map[lcmv1.Runner]func(*agent, context.Context, *lcmv1.LCMMachine, lcmv1.LCMStateItem, *itemLog) result{
	lcmv1.RunnerDownloader: (*agent).download,
	lcmv1.RunnerBash:       (*agent).bash,
	lcmv1.RunnerAnsible:    (*agent).ansible,
}

// now returns the time as objects have it.
func (a *agent) now() *metav1.Time {
	t := metav1.NewTime(a.Clock.Now().UTC().Truncate(time.Second))
	return &t
}

// retryDelay is how long an item waits after an attempt that has failed.
func retryDelay(attempt int) time.Duration {
	d := minRetry
	for ; attempt > 1 && d < maxRetry; attempt-- {
		d *= 2
	}
	return min(d, maxRetry)
}

// runNext executes the first item that is not done, unless it has failed a moment ago. It
// returns when to look again; 0 after an item.
func (a *agent) runNext(ctx context.Context, m *lcmv1.LCMMachine) (time.Duration, error) {
	it, ok := next(m)
	if !ok {
		return a.Poll, nil
	}
	hash := item.Hash(it, m.Status.AgentVersion)
	attempt := 1
	if s, before := m.Status.StateItemStatuses[it.Name]; before && s.Hash == hash {
		attempt = s.Attempt + 1
		if s.FinishedAt != nil { // else the agent was ended with the item
			delay := retryDelay(s.Attempt)
			// A clock that was set back must not delay it for longer.
			if left := s.FinishedAt.Add(delay).Sub(a.Clock.Now()); left > 0 && left <= delay {
				return min(left, a.Poll), nil
			}
		}
	}
	end, err := a.Broker.Try(broker.Operation{Family: broker.LCM, Name: "item " + it.Name})
	if err != nil {
		return min(minRetry, a.Poll), a.writeBlocked(ctx, m, it.Name, err)
	}
	defer end()
	status := lcmv1.StateItemStatus{Hash: hash, ExitCode: item.NotExited, Attempt: attempt, StartedAt: a.now()}
	m, err = a.writeItem(ctx, m, it.Name, status)
	if err != nil {
		return 0, err
	}
	a.Log.Info("item begins", "item", it.Name, "attempt", attempt)
	guard, err := ledger.NewGuard(a.System)
	if err != nil {
		return 0, err
	}
	r := a.run(ctx, m, it)
	if ctx.Err() != nil {
		return 0, ctx.Err() // the agent is ended: the item counts as one attempt
	}
	// A file that another family owns stays as the item has made it: its agent reports that, too.
	if err := guard.End(string(broker.LCM) + ": item " + it.Name); err != nil && r.code == 0 {
		r = failed(err)
	}
	a.reread = true // it may have changed the system
	status.ExitCode, status.Message, status.FinishedAt = r.code, shorten(r.message), a.now()
	if r.data != nil {
		raw, err := json.Marshal(r.data)
		if err != nil {
			return 0, fmt.Errorf("lcm: result of %s: %w", it.Name, err)
		}
		status.Result = &runtime.RawExtension{Raw: raw}
	}
	a.Log.Info("item ends", "item", it.Name, "attempt", attempt, "exitCode", r.code, "message", status.Message)
	// The result is stored first: an item that has succeeded is not executed again because
	// the API did not answer, or because the agent ends now.
	if err := a.change(func(s *state) { s.Results[it.Name] = status }); err != nil {
		a.report(err)
	}
	return 0, nil
}

// writeBlocked writes to the status of an item which operation of the host it waits for. A
// status without a hash is that of an item that has not begun.
func (a *agent) writeBlocked(ctx context.Context, m *lcmv1.LCMMachine, name string, reason error) error {
	status, executed := m.Status.StateItemStatuses[name]
	if !executed {
		status.ExitCode = item.NotExited
	}
	if status.Message == reason.Error() {
		return nil
	}
	status.Message = reason.Error()
	_, err := a.writeItem(ctx, m, name, status)
	return err
}

// writeItem writes the status of an item.
func (a *agent) writeItem(ctx context.Context, m *lcmv1.LCMMachine, name string, s lcmv1.StateItemStatus) (*lcmv1.LCMMachine, error) {
	to := m.Status.DeepCopy()
	if to.StateItemStatuses == nil {
		to.StateItemStatuses = map[string]lcmv1.StateItemStatus{}
	}
	to.StateItemStatuses[name] = s
	patch, err := statusPatch(m.Status, *to)
	if err != nil {
		return nil, fmt.Errorf("lcm: status of %s: %w", name, err)
	}
	m, err = a.api.patchStatus(ctx, patch, "")
	if err != nil {
		return nil, fmt.Errorf("lcm: status of %s: %w", name, err)
	}
	return m, nil
}

// run executes an item within its deadline.
func (a *agent) run(ctx context.Context, m *lcmv1.LCMMachine, it lcmv1.LCMStateItem) result {
	runner, known := runners[it.Runner]
	if !known {
		return failed(fmt.Errorf("runner %q is none of %v", it.Runner, slices.Sorted(maps.Keys(runners))))
	}
	timeout := defaultTimeout
	if text := it.Params[item.ParamTimeout]; text != "" {
		var err error
		if timeout, err = time.ParseDuration(text); err != nil || timeout <= 0 {
			return failed(fmt.Errorf("%s %q: give a duration above zero, like 30m", item.ParamTimeout, text))
		}
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	log := a.openLog(m, it)
	r := runner(a, limited, m, it, log)
	if limited.Err() != nil && r.code != 0 {
		r.code, r.message = codeTimeout, fmt.Sprintf("ended after %s, its deadline (%s): %s", timeout, setter(it), r.message)
	}
	log.end(r)
	return r
}

// setter names what sets the deadline of an item, with its value.
func setter(it lcmv1.LCMStateItem) string {
	name, text := item.ParamTimeout, it.Params[item.ParamTimeout]
	if item.IsHostOSName(it.Name) && it.Runner == lcmv1.RunnerAnsible {
		name = "annotation " + item.TimeoutAnnotation + " of its HostOSConfiguration"
	}
	if text == "" {
		return "the default; set another by the " + name
	}
	return name + ": " + text
}

// shorten cuts a message at its end.
func shorten(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return string([]rune(text[:maxMessage-len("…")])) + "…"
}

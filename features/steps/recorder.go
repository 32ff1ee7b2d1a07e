package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recorder watches one BareMetalHost from before it exists, so that steps do not
// miss states that pass quickly.
type recorder struct {
	done chan struct{}

	mu            sync.Mutex
	latest        *metal3.BareMetalHost   // nil while there is none
	versions      []*metal3.BareMetalHost // all that were seen
	states        []metal3.ProvisioningState
	lastAwaited   int // index in states of the one last waited for
	marked        int // index in states of the one at the last mark
	reports       []report
	causeStates   int             // number of states when the last cause began
	causeReports  int             // number of reports when the last cause began
	annotations   map[string]bool // names of all annotations that it had
	traps         []trap
	latestVersion uint64 // resourceVersion
	springing     int    // traps whose functions run
	trapErrors    []error
}

// report has the error fields of a host's status.
type report struct {
	status  metal3.OperationalStatus
	kind    metal3.ErrorType
	message string
}

// trap is a function that runs when the host is next seen in a state.
type trap struct {
	state  string
	spring func() error
}

// trap sets a trap.
func (r *recorder) trap(state string, spring func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traps = append(r.traps, trap{state, spring})
}

// takeTraps removes and returns the traps of a state.
func (r *recorder) takeTraps(state string) (out []trap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.traps = slices.DeleteFunc(r.traps, func(t trap) bool {
		if t.state == state {
			out = append(out, t)
		}
		return t.state == state
	})
	r.springing += len(out)
	return out
}

func (r *recorder) trapSprung(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.springing--
	if err != nil {
		r.trapErrors = append(r.trapErrors, err)
	}
}

// trapProblems returns an error for each trap that has failed, and for each whose state
// never came: what the scenario says would happen then has not.
func (r *recorder) trapProblems() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	problems := slices.Clone(r.trapErrors)
	for _, t := range r.traps {
		problems = append(problems, fmt.Errorf("as soon as the host is %q: it never was, or not since the step", t.state))
	}
	return errors.Join(problems...)
}

// trapsPending reports whether a trap is set or runs.
func (r *recorder) trapsPending() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.traps)+r.springing > 0
}

func (r *recorder) start(ctx context.Context, c client.WithWatch, name string) error {
	w, err := c.Watch(ctx, &metal3.BareMetalHostList{}, client.InNamespace("default"), client.MatchingFields{"metadata.name": name})
	if err != nil {
		return fmt.Errorf("watch %s: %w", name, err)
	}
	r.done = make(chan struct{})
	go func() {
		defer close(r.done)
		defer w.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case ev, ok := <-w.ResultChan():
				if !ok {
					return
				}
				if h, ok := ev.Object.(*metal3.BareMetalHost); ok {
					r.record(ev.Type, h)
					for _, t := range r.takeTraps(string(h.Status.Provisioning.State)) {
						r.trapSprung(t.spring())
					}
				}
			}
		}
	}()
	return nil
}

func (r *recorder) record(kind watch.EventType, h *metal3.BareMetalHost) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind == watch.Deleted {
		r.latest = nil
		return
	}
	r.latest = h
	r.versions = append(r.versions, h)
	if v, err := strconv.ParseUint(h.ResourceVersion, 10, 64); err == nil {
		r.latestVersion = max(r.latestVersion, v)
	}
	if s := h.Status.Provisioning.State; len(r.states) == 0 || r.states[len(r.states)-1] != s {
		r.states = append(r.states, s)
	}
	now := report{h.Status.OperationalStatus, h.Status.ErrorType, h.Status.ErrorMessage}
	if n := len(r.reports); n == 0 || r.reports[n-1] != now {
		r.reports = append(r.reports, now)
	}
	if r.annotations == nil {
		r.annotations = map[string]bool{}
	}
	for name := range h.Annotations {
		r.annotations[name] = true
	}
}

// beginCause remembers that a cause begins now.
func (r *recorder) beginCause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.causeStates, r.causeReports = len(r.states), len(r.reports)
}

// hasReported reports whether ok accepts the host's current report, or one since the last
// cause began.
func (r *recorder) hasReported(ok func(report) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := len(r.reports)
	return slices.ContainsFunc(r.reports[r.causeReports:], ok) || n > 0 && r.latest != nil && ok(r.reports[n-1])
}

// hasBegun reports whether the host is in a state, or came to it since the last cause
// began.
func (r *recorder) hasBegun(state metal3.ProvisioningState) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.states[r.causeStates:], state) || r.latest != nil && r.latest.Status.Provisioning.State == state
}

// errorsSince returns the errors among the reports after the first n.
func (r *recorder) errorsSince(n int) (out []report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.reports[min(n, len(r.reports)):] {
		if one.kind != "" || one.status == metal3.OperationalStatusError {
			out = append(out, one)
		}
	}
	return out
}

// messages returns the error messages that the host has had.
func (r *recorder) messages() (out []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.reports {
		if one.message != "" {
			out = append(out, one.message)
		}
	}
	return out
}

// reportCount returns the number of reports so far.
func (r *recorder) reportCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.reports)
}

// hadAnnotation reports whether the host has ever had an annotation.
func (r *recorder) hadAnnotation(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.annotations[name]
}

// any reports whether ok accepts a version of the host that was seen.
func (r *recorder) any(ok func(*metal3.BareMetalHost) bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.versions, ok)
}

// existed reports whether the host has been seen.
func (r *recorder) existed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.states) > 0
}

func (r *recorder) wait() {
	if r.done != nil {
		<-r.done
	}
}

// host returns the host as last seen; nil when there is none.
func (r *recorder) host() *metal3.BareMetalHost {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest
}

// passedThrough reports whether the host had these states in this order, possibly
// with others in between.
func (r *recorder) passedThrough(want []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states {
		if len(want) > 0 && string(s) == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

// forget drops all that was recorded, before another object of the same name.
func (r *recorder) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latest, r.versions, r.states, r.reports, r.annotations = nil, nil, nil, nil, nil
	r.lastAwaited, r.marked, r.causeStates, r.causeReports = 0, 0, 0, 0
}

// caughtUp reports whether this version of the host, or a later one, has been seen.
func (r *recorder) caughtUp(version string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	want, err := strconv.ParseUint(version, 10, 64)
	return err == nil && r.latestVersion >= want
}

// mark remembers the state that the host is in now.
func (r *recorder) mark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marked = max(0, len(r.states)-1)
}

// statesSinceMark returns the state at the last mark, or the one last waited for if that
// came later, and all states since.
func (r *recorder) statesSinceMark() []metal3.ProvisioningState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.states[min(len(r.states), max(r.marked, r.lastAwaited)):])
}

// reached reports whether the host is in a state, or was since the state that was
// last waited for.
func (r *recorder) reached(state string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := r.lastAwaited + 1; i < len(r.states); i++ {
		if string(r.states[i]) == state {
			r.lastAwaited = i
			return true
		}
	}
	if last := len(r.states) - 1; last >= 0 && r.latest != nil && string(r.states[last]) == state {
		r.lastAwaited = last
		return true
	}
	return false
}

// String returns the record as text, for the report of a failed scenario. It has each message once.
func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "states: %q\n", r.states)
	told := map[report]bool{}
	for _, one := range r.reports {
		if !told[one] && (one.kind != "" || one.message != "") {
			told[one] = true
			fmt.Fprintf(&b, "reported: %s, %s: %s\n", one.status, one.kind, one.message)
		}
	}
	if r.latest != nil && !told[report{r.latest.Status.OperationalStatus, r.latest.Status.ErrorType, r.latest.Status.ErrorMessage}] {
		fmt.Fprintf(&b, "status: %s, %s: %s\n", r.latest.Status.OperationalStatus, r.latest.Status.ErrorType, r.latest.Status.ErrorMessage)
	}
	return b.String()
}

package steps

import (
	"context"
	"fmt"
	"strings"
	"sync"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recorder watches one host from before it exists: what passes quickly at full
// speed is not missed.
type recorder struct {
	done chan struct{}

	mu     sync.Mutex
	latest *metal3.BareMetalHost // nil while there is none
	states []metal3.ProvisioningState
	errors []metal3.ErrorType
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
				if h, is := ev.Object.(*metal3.BareMetalHost); is {
					r.note(ev.Type, h)
				}
			}
		}
	}()
	return nil
}

func (r *recorder) note(kind watch.EventType, h *metal3.BareMetalHost) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if kind == watch.Deleted {
		r.latest = nil
		return
	}
	r.latest = h
	if s := h.Status.Provisioning.State; len(r.states) == 0 || r.states[len(r.states)-1] != s {
		r.states = append(r.states, s)
	}
	if e := h.Status.ErrorType; e != "" {
		r.errors = append(r.errors, e)
	}
}

func (r *recorder) wait() {
	if r.done != nil {
		<-r.done
	}
}

// host is the host as it was last seen; nil when there is none.
func (r *recorder) host() *metal3.BareMetalHost {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest
}

// passed tells whether the host went through the states in this order, with
// others in between or not.
func (r *recorder) passed(want []string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.states {
		if len(want) > 0 && string(s) == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func (r *recorder) failed(kind string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.errors {
		if string(e) == kind {
			return true
		}
	}
	return false
}

// String tells the story for the report of a failed scenario.
func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "states: %q\nerrors: %q\n", r.states, r.errors)
	if r.latest != nil {
		fmt.Fprintf(&b, "status: %s, %s: %s\n", r.latest.Status.OperationalStatus, r.latest.Status.ErrorType, r.latest.Status.ErrorMessage)
	}
	return b.String()
}

package steps

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/lab"
)

// executions watches the LCMMachines, and lists the items that the agents execute, in
// their order. An agent writes the beginning of each execution before it begins.
type executions struct {
	watch watch.Interface
	ended sync.WaitGroup

	mu       sync.Mutex
	machines map[string]*executed
}

// executed lists the items that the agent of one machine has executed.
type executed struct {
	version uint64 // resourceVersion of the latest LCMMachine
	latest  lcmv1.LCMMachine
	begun   []string
	checked int // how many of them a step has checked
}

// watchExecutions begins to watch. No LCMMachine exists yet.
func watchExecutions(kube client.WithWatch) (*executions, error) {
	w, err := kube.Watch(context.Background(), &lcmv1.LCMMachineList{}, client.InNamespace(lab.Namespace)) // until stop
	if err != nil {
		return nil, err
	}
	e := &executions{watch: w, machines: map[string]*executed{}}
	e.ended.Go(func() {
		for ev := range w.ResultChan() {
			if m, ok := ev.Object.(*lcmv1.LCMMachine); ok {
				e.saw(m)
			}
		}
	})
	return e, nil
}

func (e *executions) stop() {
	e.watch.Stop()
	e.ended.Wait()
}

func (e *executions) of(name string) *executed {
	if e.machines[name] == nil {
		e.machines[name] = &executed{}
	}
	return e.machines[name]
}

// saw adds the items whose execution has begun in a version of an LCMMachine.
func (e *executions) saw(m *lcmv1.LCMMachine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.of(m.Name)
	for _, it := range m.Spec.StateItems { // an agent begins one at a time
		before, after := x.latest.Status.StateItemStatuses[it.Name], m.Status.StateItemStatuses[it.Name]
		if after.StartedAt == nil || after.FinishedAt != nil {
			continue
		}
		if before.StartedAt == nil || before.FinishedAt != nil || before.Attempt != after.Attempt || before.Hash != after.Hash {
			x.begun = append(x.begun, it.Name)
		}
	}
	x.latest = *m
	if n, err := strconv.ParseUint(m.ResourceVersion, 10, 64); err == nil {
		x.version = n
	}
}

// since returns the items that were begun since the last confirm, and the status of the
// last of them. An item that is tried again counts once.
func (e *executions) since(name string) (begun []string, last lcmv1.StateItemStatus) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.of(name)
	begun = slices.Compact(slices.Clone(x.begun[x.checked:]))
	if len(begun) > 0 {
		last = x.latest.Status.StateItemStatuses[begun[len(begun)-1]]
	}
	return begun, last
}

// confirm begins a new list. One that has failed is the first of it: the agent tries it
// again.
func (e *executions) confirm(name string, failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.of(name)
	x.checked = len(x.begun)
	if failed {
		x.checked--
	}
}

// catchUp waits until the watch has brought the LCMMachine as it is stored.
func (e *executions) catchUp(ctx context.Context, kube client.Client, name string) error {
	m := &lcmv1.LCMMachine{ObjectMeta: day2Meta(name)}
	if err := kube.Get(ctx, client.ObjectKeyFromObject(m), m); err != nil {
		return err
	}
	stored, err := strconv.ParseUint(m.ResourceVersion, 10, 64)
	if err != nil {
		return err
	}
	return eventually(ctx, "the watch brings the LCMMachine", func(context.Context) (bool, string, error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.of(name).version >= stored, fmt.Sprint(e.of(name).version), nil
	})
}

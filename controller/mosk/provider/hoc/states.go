package hoc

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// itemStates are the states of machinesStates.
var itemStates = map[item.Progress]kaasv1.ItemState{
	item.NotStarted: kaasv1.ItemNotStarted,
	item.Running:    kaasv1.ItemRunning,
	item.Succeeded:  kaasv1.ItemSuccess,
	item.Failed:     kaasv1.ItemFailed,
}

// statusOf returns the state of an item on the machine. before is its last one: the agent
// replaces the result of a failure when it tries the item again.
func (t target) statusOf(it lcmv1.LCMStateItem, before kaasv1.ConfigItemStatus) kaasv1.ConfigItemStatus {
	s := kaasv1.ConfigItemStatus{State: kaasv1.ItemNotStarted, LastFailure: before.LastFailure}
	if len(it.Params) == 0 { // the machine does not have it yet
		return s
	}
	s.State = itemStates[item.ProgressOf(it, t.lcm.Status.StateItemStatuses, t.lcm.Status.AgentVersion)]
	switch result := t.lcm.Status.StateItemStatuses[it.Name]; s.State {
	case kaasv1.ItemSuccess:
		s.Hash, s.LastFailure = result.Hash, nil
	case kaasv1.ItemFailed:
		s.LastFailure = &kaasv1.ItemFailure{Attempt: result.Attempt, Message: item.FailureMessage(result), FinishedAt: result.FinishedAt}
	}
	return s
}

// state returns the machine's entry in machinesStates, nil when it has none. exclusive are
// the recorded names of items that no other object has.
func (t target) state(o *kaasv1.HostOSConfiguration, exclusive map[string]bool) *kaasv1.ConfigMachineState {
	before, exists := o.Status.MachinesStates[t.key()]
	if stageOf(o) == waiting && !validated(o) {
		if !exists {
			return nil
		}
		return t.refreshed(before)
	}
	if plan := t.planUnlessRemoved(o); plan != nil {
		return t.selectedState(o, before, plan)
	}
	if !exists || len(left(t.lcm, exclusive)) == 0 {
		return nil
	}
	s := t.refreshed(before)
	s.Selected, s.SecretValuesChanged, s.Message = false, false, "the agent has not removed the results yet"
	return s
}

func (t target) planUnlessRemoved(o *kaasv1.HostOSConfiguration) []planned {
	if stageOf(o) == removed {
		return nil
	}
	return t.plan(o, true)
}

// selectedState returns the entry of a machine that the object selects.
func (t target) selectedState(o *kaasv1.HostOSConfiguration, before kaasv1.ConfigMachineState, plan []planned) *kaasv1.ConfigMachineState {
	s := &kaasv1.ConfigMachineState{Selected: true, ObservedGeneration: o.Generation, ConfigStateItemsStatuses: map[string]map[string]kaasv1.ConfigItemStatus{}}
	var reasons []string
	for _, p := range plan {
		key := moduleKey(p.config)
		if p.reason != "" {
			s.ObservedGeneration = before.ObservedGeneration
			reason := p.reason
			if strings.HasPrefix(reason, unsupported) {
				reason = key + ": " + reason
			}
			if !slices.Contains(reasons, reason) {
				reasons = append(reasons, reason)
			}
		}
		statuses := map[string]kaasv1.ConfigItemStatus{}
		for _, it := range p.items {
			statuses[it.Name] = t.statusOf(it, before.ConfigStateItemsStatuses[key][it.Name])
		}
		if len(statuses) > 0 {
			s.ConfigStateItemsStatuses[key] = statuses
		}
		for _, it := range p.wanted {
			changed := secretChanged(t.lcm.Spec.StateItemsOverwrites[it.Name], it.Params)
			waits := before.SecretValuesChanged && it.Params[item.ParamSecretVersion] != "" && t.statusOf(it, kaasv1.ConfigItemStatus{}).State != kaasv1.ItemSuccess
			s.SecretValuesChanged = s.SecretValuesChanged || changed || waits
		}
	}
	s.Message = strings.Join(reasons, "; ")
	return s
}

// refreshed returns an entry with the states of the items as the machine has them.
func (t target) refreshed(s kaasv1.ConfigMachineState) *kaasv1.ConfigMachineState {
	out := s.DeepCopy()
	for _, statuses := range out.ConfigStateItemsStatuses {
		for name, was := range statuses {
			statuses[name] = kaasv1.ConfigItemStatus{State: kaasv1.ItemNotStarted, LastFailure: was.LastFailure}
			for _, it := range t.lcm.Spec.StateItems {
				if it.Name == name {
					statuses[name] = t.statusOf(it, was)
				}
			}
		}
	}
	return out
}

// left returns which of the names an LCMMachine still has, in its overwrites, its items or
// its results.
func left(m *lcmv1.LCMMachine, named map[string]bool) []string {
	found := map[string]bool{}
	add := func(name string) {
		if named[name] {
			found[name] = true
		}
	}
	for name := range m.Spec.StateItemsOverwrites {
		add(name)
	}
	for name := range m.Status.StateItemStatuses {
		add(name)
	}
	for _, it := range m.Spec.StateItems {
		add(it.Name)
	}
	return slices.Sorted(maps.Keys(found))
}

// maxStates limits machinesStates, in bytes of JSON: etcd takes requests of 1.5 MiB.
const maxStates = 1 << 20

// details remove details from an entry, each more than the one before.
var details = []func(*kaasv1.ConfigMachineState){
	func(*kaasv1.ConfigMachineState) {},
	func(s *kaasv1.ConfigMachineState) {
		for _, statuses := range s.ConfigStateItemsStatuses {
			for name, status := range statuses {
				status.Hash = ""
				statuses[name] = status
			}
		}
	},
	func(s *kaasv1.ConfigMachineState) {
		for key, statuses := range s.ConfigStateItemsStatuses {
			maps.DeleteFunc(statuses, func(_ string, status kaasv1.ConfigItemStatus) bool {
				return status.State == kaasv1.ItemSuccess || status.State == kaasv1.ItemNotStarted
			})
			if len(statuses) == 0 {
				delete(s.ConfigStateItemsStatuses, key)
			}
		}
	},
	func(s *kaasv1.ConfigMachineState) {
		for _, statuses := range s.ConfigStateItemsStatuses {
			for name, status := range statuses {
				status.LastFailure = nil
				statuses[name] = status
			}
		}
	},
}

// fit removes details from all entries until they have at most limit bytes.
func fit(states map[string]kaasv1.ConfigMachineState, limit int) map[string]kaasv1.ConfigMachineState {
	const atMost = 500 + 2*item.MaxLine // bytes of an item with the longest names and a failure
	for _, reduce := range details {
		count := 0
		for key, s := range states {
			reduce(&s) // the maps are shared with the entry
			if len(s.ConfigStateItemsStatuses) == 0 {
				s.ConfigStateItemsStatuses = nil
			}
			states[key] = s
			count++
			for _, statuses := range s.ConfigStateItemsStatuses {
				count += len(statuses) + 1
			}
		}
		if count*atMost <= limit {
			break
		}
		if b, err := json.Marshal(states); err == nil && len(b) <= limit {
			break
		}
	}
	return states
}

// isState reports whether an entry equals another one with all details or with fewer.
func isState(entry, state *kaasv1.ConfigMachineState) bool {
	if entry == nil || state == nil {
		return entry == state
	}
	state = state.DeepCopy()
	for _, reduce := range details {
		reduce(state)
		if equality.Semantic.DeepEqual(entry, state) {
			return true
		}
	}
	return false
}

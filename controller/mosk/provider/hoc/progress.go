package hoc

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// maxModules limits the text of all modules, in bytes.
const maxModules = 1024

// The reasons of the conditions.
const (
	reasonNotValidated = "NotValidated"
	reasonInvalid      = "Invalid"
	reasonValid        = "Valid"
	reasonNoMachines   = "NoMachines"
	reasonFailed       = "Failed"
	reasonWithheld     = "Withheld"
	reasonInProgress   = "InProgress"
	reasonApplied      = "Applied"
	reasonDeleting     = "Deleting"
)

// summarized reports whether the summary follows the present spec. While the spec is not
// validated, the summary of the generation before stays, as its observedGeneration says: the
// validation follows at once, and both are one write then.
func summarized(o *kaasv1.HostOSConfiguration) bool {
	return stageOf(o) == removed || o.Status.ObservedGeneration == o.Generation || len(o.Status.Conditions) == 0
}

// summarize writes what an operator looks for first: how many machines are done, the latest
// failure and the conditions. states have all details; now is the time of a condition's change.
func summarize(o *kaasv1.HostOSConfiguration, states map[string]kaasv1.ConfigMachineState, now metav1.Time) {
	s := &o.Status
	s.MachinesTotal, s.MachinesDone = 0, 0
	for _, state := range states {
		if !state.Selected {
			continue
		}
		s.MachinesTotal++
		if done(o, state) {
			s.MachinesDone++
		}
	}
	s.Progress = fmt.Sprintf("%d/%d", s.MachinesDone, s.MachinesTotal)
	s.ModulesText, s.LastFailure = modulesText(o), lastFailure(states)
	conditions := slices.Clone(s.Conditions)
	for _, c := range []metav1.Condition{validCondition(o), appliedCondition(o, states)} {
		c.ObservedGeneration, c.LastTransitionTime = o.Generation, now
		meta.SetStatusCondition(&conditions, c)
	}
	s.Conditions = conditions
}

// done reports whether all items of the present spec have succeeded on a machine.
func done(o *kaasv1.HostOSConfiguration, s kaasv1.ConfigMachineState) bool {
	if s.ObservedGeneration != o.Generation || s.SecretValuesChanged || len(s.ConfigStateItemsStatuses) == 0 {
		return false
	}
	for _, c := range o.Spec.Configs {
		statuses := s.ConfigStateItemsStatuses[moduleKey(c)]
		for _, it := range items(o, c) {
			if statuses[it.Name].State != kaasv1.ItemSuccess {
				return false
			}
		}
	}
	return true
}

// moduleKey returns the key of a config in configStateItemsStatuses.
func moduleKey(c kaasv1.Config) string { return string(c.Module) + "-" + string(c.ModuleVersion) }

// modulesText lists the modules in the order of the spec. A column of kubectl shows one value
// of a list, thus the list is a text.
func modulesText(o *kaasv1.HostOSConfiguration) string {
	var out strings.Builder
	for i, c := range o.Spec.Configs {
		rest := fmt.Sprintf(" and %d more", len(o.Spec.Configs)-i)
		text := moduleKey(c)
		if i > 0 {
			text = ", " + text
		}
		if out.Len()+len(text)+len(rest) > maxModules {
			out.WriteString(rest)
			break
		}
		out.WriteString(text)
	}
	return out.String()
}

// failure is a failed item of a machine.
type failure struct {
	machine, item string
	kaasv1.ItemFailure
}

func (f failure) String() string {
	return f.machine + ": " + item.FailureText(f.item, f.Attempt, f.Message)
}

// failures returns the last failure of each item of a selected machine that has not succeeded
// since, the latest first.
func failures(states map[string]kaasv1.ConfigMachineState) (out []failure) {
	for _, key := range slices.Sorted(maps.Keys(states)) {
		if !states[key].Selected {
			continue
		}
		_, machine, _ := strings.Cut(key, "/")
		for _, statuses := range states[key].ConfigStateItemsStatuses {
			for name, s := range statuses {
				if s.LastFailure != nil {
					out = append(out, failure{machine, name, *s.LastFailure})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b failure) int {
		var order int
		if a.FinishedAt != nil && b.FinishedAt != nil {
			order = b.FinishedAt.Compare(a.FinishedAt.Time)
		}
		return cmp.Or(order, strings.Compare(a.machine, b.machine), strings.Compare(a.item, b.item))
	})
	return out
}

func lastFailure(states map[string]kaasv1.ConfigMachineState) string {
	if all := failures(states); len(all) > 0 {
		return all[0].String()
	}
	return ""
}

// validCondition shows the result of the validation, which another controller writes.
func validCondition(o *kaasv1.HostOSConfiguration) metav1.Condition {
	c := metav1.Condition{Type: kaasv1.ConditionValid}
	switch {
	case o.Status.IsValid == nil || o.Status.ObservedGeneration != o.Generation:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, reasonNotValidated, "the present spec is not validated yet"
	case *o.Status.IsValid:
		c.Status, c.Reason = metav1.ConditionTrue, reasonValid
	default:
		c.Status, c.Reason = metav1.ConditionFalse, reasonInvalid
		for _, config := range o.Status.Configs {
			if config.Error != "" {
				c.Message = item.Line(fmt.Sprintf("%s-%s: %s", config.ModuleName, config.ModuleVersion, config.Error))
				break
			}
		}
	}
	return c
}

// appliedCondition says what an object still waits for, by the words of what blocks it.
func appliedCondition(o *kaasv1.HostOSConfiguration, states map[string]kaasv1.ConfigMachineState) metav1.Condition {
	c := metav1.Condition{Type: kaasv1.ConditionApplied, Status: metav1.ConditionFalse}
	valid, withheld := validCondition(o), withheld(states)
	switch s := o.Status; {
	case stageOf(o) == removed:
		c.Reason, c.Message = reasonDeleting, "the object exists until the agents have removed the results of its items"
		if withheld != "" {
			c.Message = withheld
		}
	case valid.Status != metav1.ConditionTrue:
		c.Reason, c.Message = valid.Reason, valid.Message
	case s.MachinesTotal == 0:
		c.Reason, c.Message = reasonNoMachines, "machineSelector selects no Machine of the namespace"
	case s.MachinesDone == s.MachinesTotal:
		c.Status, c.Reason = metav1.ConditionTrue, reasonApplied
	case s.LastFailure != "":
		c.Reason, c.Message = reasonFailed, s.LastFailure
	case withheld != "":
		c.Reason, c.Message = reasonWithheld, withheld
	default:
		c.Reason, c.Message = reasonInProgress, s.Progress+" machines are done"
	}
	return c
}

// withheld names the first machine whose items are withheld, and the reason; "" for none.
func withheld(states map[string]kaasv1.ConfigMachineState) string {
	for _, key := range slices.Sorted(maps.Keys(states)) {
		if _, machine, _ := strings.Cut(key, "/"); states[key].Message != "" {
			return item.Line(machine + ": " + states[key].Message)
		}
	}
	return ""
}

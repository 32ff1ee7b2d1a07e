package machines

import (
	"cmp"
	"fmt"
	"strings"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
)

// lcmCondition says what a machine that LCM deploys to waits for: an item that fails, with the
// attempt and the reason, or the step that it is on. was are the conditions of before.
func lcmCondition(f *facts, _ decision, was []baremetalv1.Condition) *baremetalv1.Condition {
	if !deploying(f) {
		return nil
	}
	l := f.lcm
	c := &baremetalv1.Condition{Ready: l.Status.State == lcmv1.StateReady}
	if c.Ready {
		return c
	}
	before := ""
	for _, w := range was {
		if w.Type == baremetalv1.ConditionLCM {
			before = w.Message
		}
	}
	c.Message = fmt.Sprintf("the LCMMachine is %s", cmp.Or(l.Status.State, lcmv1.StateUninitialized))
	if why := lcmWaits(l, before); why != "" {
		c.Message += ": " + why
	}
	return c
}

// lcmWaits returns why an LCMMachine is not Ready, "" when nothing says so.
func lcmWaits(l *lcmv1.LCMMachine, before string) string {
	if l.Annotations[item.PreparingAnnotation] == item.AwaitsPreparation {
		return "it waits to be prepared: maxWorkerPrepareCount of the Cluster bounds how many workers are at a time"
	}
	switch l.Status.State {
	case lcmv1.StateUninitialized, "":
		if l.Status.RHELLicenseError != "" {
			return item.Line(l.Status.RHELLicenseError)
		}
		if len(l.Status.Addresses) == 0 {
			return "its agent has not reported yet"
		}
	case lcmv1.StateReboot:
		if r := l.Status.Reboot; r != nil && r.ErrorMessage != "" {
			return item.Line(r.ErrorMessage)
		}
	}
	if it, ok := nextItem(l); ok {
		return itemWaits(l, it, before)
	}
	return item.ComponentsWait(l)
}

// phases are the phases of items in the order in which agents execute them.
var phases = []lcmv1.Phase{lcmv1.PhasePrepare, lcmv1.PhaseDeploy, lcmv1.PhaseReconfigure}

// nextItem returns the first item that is not done: those after it wait.
func nextItem(l *lcmv1.LCMMachine) (lcmv1.LCMStateItem, bool) {
	for _, phase := range phases {
		for _, it := range l.Spec.StateItems {
			if it.Phase == phase && !item.Ready(it, l.Status.StateItemStatuses, l.Status.AgentVersion) {
				return it, true
			}
		}
	}
	return lcmv1.LCMStateItem{}, false
}

// itemWaits describes how far an item is. While a failed item is tried again, the text of its last
// failure stays: the agent has replaced it in the LCMMachine. An item before and during its first
// attempt has one text, so that a Machine is written once for each.
func itemWaits(l *lcmv1.LCMMachine, it lcmv1.LCMStateItem, before string) string {
	s := l.Status.StateItemStatuses[it.Name]
	switch item.ProgressOf(it, l.Status.StateItemStatuses, l.Status.AgentVersion) {
	case item.Failed:
		return item.FailureText(it.Name, s.Attempt, item.FailureMessage(s))
	case item.Running:
		if i := strings.Index(before, "item "+it.Name+", attempt "); s.Attempt > 1 && i >= 0 {
			return before[i:]
		}
	case item.NotStarted:
		if line := item.Line(s.Message); s.Hash == "" && line != "" { // another operation of the host goes first
			return fmt.Sprintf("item %s is %s", it.Name, line)
		}
	}
	return "it waits for item " + it.Name
}

// failing reports whether the next item of an LCMMachine has failed.
func failing(l *lcmv1.LCMMachine) bool {
	if l == nil {
		return false
	}
	it, ok := nextItem(l)
	return ok && item.ProgressOf(it, l.Status.StateItemStatuses, l.Status.AgentVersion) == item.Failed
}

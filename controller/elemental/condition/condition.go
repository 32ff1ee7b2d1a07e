// Package condition sets the conditions of Elemental objects as Cluster API's contract v1beta1
// has them: with a severity where the status is False, in the order of their types, and with
// Ready as the summary of the others. It knows no kind and no reason.
package condition

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
)

// Object has conditions.
type Object interface {
	GetConditions() capi.Conditions
	SetConditions(capi.Conditions)
}

// True returns a condition that holds.
func True(t capi.ConditionType) capi.Condition {
	return capi.Condition{Type: t, Status: corev1.ConditionTrue}
}

// False returns a condition that does not hold.
func False(t capi.ConditionType, reason string, severity capi.ConditionSeverity, message string) capi.Condition {
	return capi.Condition{Type: t, Status: corev1.ConditionFalse, Reason: reason, Severity: severity, Message: message}
}

// Set adds a condition, or replaces the one of its type, and the summary. The time of the
// transition is that of the condition that it replaces where nothing else differs, else the
// condition's own, else now.
func Set(o Object, c capi.Condition, now time.Time) {
	list := put(o.GetConditions(), c, now)
	if s, ok := summary(list); ok {
		list = put(list, s, now)
	}
	o.SetConditions(list)
}

// Get returns the condition of a type, nil when there is none.
func Get(o Object, t capi.ConditionType) *capi.Condition {
	list := o.GetConditions()
	if i := slices.IndexFunc(list, func(c capi.Condition) bool { return c.Type == t }); i >= 0 {
		return &list[i]
	}
	return nil
}

// IsTrue reports whether a condition holds.
func IsTrue(o Object, t capi.ConditionType) bool {
	c := Get(o, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

// put returns a list with the condition. It does not change list.
func put(list capi.Conditions, c capi.Condition, now time.Time) capi.Conditions {
	list = slices.Clone(list)
	i := slices.IndexFunc(list, func(old capi.Condition) bool { return old.Type == c.Type })
	if i >= 0 && same(list[i], c) {
		return list
	}
	if c.LastTransitionTime.IsZero() {
		c.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
	}
	if i >= 0 {
		list[i] = c
		return list
	}
	list = append(list, c)
	slices.SortStableFunc(list, func(a, b capi.Condition) int {
		return cmp.Or(cmp.Compare(rankOfType(a.Type), rankOfType(b.Type)), cmp.Compare(a.Type, b.Type))
	})
	return list
}

// rankOfType puts Ready before all others.
func rankOfType(t capi.ConditionType) int {
	if t == capi.ReadyCondition {
		return 0
	}
	return 1
}

// same reports whether two conditions differ in their time at most.
func same(a, b capi.Condition) bool {
	a.LastTransitionTime, b.LastTransitionTime = metav1.Time{}, metav1.Time{}
	return a == b
}

// rank orders conditions by how much they say about the readiness of an object: what fails
// first, by severity, then what holds.
func rank(c capi.Condition) int {
	switch c.Status {
	case corev1.ConditionFalse:
		switch c.Severity {
		case capi.ConditionSeverityError:
			return 0
		case capi.ConditionSeverityWarning:
			return 1
		}
		return 2
	case corev1.ConditionTrue:
		return 3
	}
	return 4
}

// summary returns the condition Ready of a list; false when the list has no other condition.
func summary(list capi.Conditions) (capi.Condition, bool) {
	first := -1
	for i, c := range list {
		if c.Type != capi.ReadyCondition && (first < 0 || rank(c) < rank(list[first])) {
			first = i
		}
	}
	if first < 0 {
		return capi.Condition{}, false
	}
	c := list[first]
	s := capi.Condition{Type: capi.ReadyCondition, Status: c.Status}
	if c.Status != corev1.ConditionTrue {
		s.Reason, s.Severity, s.Message = c.Reason, c.Severity, c.Message
	}
	return s, true
}

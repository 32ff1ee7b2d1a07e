package condition

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	capi "sigs.k8s.io/cluster-api/api/v1beta1"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 5e8, time.UTC)

type list struct{ capi.Conditions }

func (l *list) GetConditions() capi.Conditions  { return l.Conditions }
func (l *list) SetConditions(c capi.Conditions) { l.Conditions = c }

// Ready is the worst of the others: an error before a warning before information.
func TestReadyIsTheSummary(t *testing.T) {
	failed := func(typ string, s capi.ConditionSeverity) capi.Condition {
		return False(capi.ConditionType(typ), "Of"+typ, s, "message of "+typ)
	}
	for _, tt := range []struct {
		name string
		set  []capi.Condition
		want string
	}{
		{"all hold", []capi.Condition{True("B"), True("A")}, "True   "},
		{"one waits", []capi.Condition{True("A"), failed("B", capi.ConditionSeverityInfo)}, "False OfB Info message of B"},
		{"a warning before information", []capi.Condition{failed("A", capi.ConditionSeverityInfo), failed("B", capi.ConditionSeverityWarning)}, "False OfB Warning message of B"},
		{"an error before a warning", []capi.Condition{failed("A", capi.ConditionSeverityWarning), failed("B", capi.ConditionSeverityError)}, "False OfB Error message of B"},
		{"the first by type", []capi.Condition{failed("C", capi.ConditionSeverityError), failed("B", capi.ConditionSeverityError)}, "False OfB Error message of B"},
		{"unknown comes last", []capi.Condition{{Type: "A", Status: corev1.ConditionUnknown, Reason: "R"}, True("B")}, "True   "},
		{"only unknown", []capi.Condition{{Type: "A", Status: corev1.ConditionUnknown, Reason: "R"}}, "Unknown R  "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var l list
			for _, c := range tt.set {
				Set(&l, c, now)
			}
			c := Get(&l, capi.ReadyCondition)
			if got := fmt.Sprint(c.Status, " ", c.Reason, " ", c.Severity, " ", c.Message); got != tt.want {
				t.Errorf("Ready is %q, want %q", got, tt.want)
			}
		})
	}
}

func TestConditionsAreInOrderOfTheirTypes(t *testing.T) {
	var l list
	for _, typ := range []capi.ConditionType{"Z", "A", "M"} {
		Set(&l, True(typ), now)
	}
	var got []capi.ConditionType
	for _, c := range l.Conditions {
		got = append(got, c.Type)
	}
	if diff := cmp.Diff([]capi.ConditionType{capi.ReadyCondition, "A", "M", "Z"}, got); diff != "" {
		t.Errorf("types (-want +got):\n%s", diff)
	}
}

// The time of a condition is that of its last change, in seconds, unless it brings one.
func TestTransitionTime(t *testing.T) {
	var l list
	at := func(want time.Time) {
		t.Helper()
		if got := Get(&l, "A").LastTransitionTime; !got.Time.Equal(want) {
			t.Errorf("lastTransitionTime %s, want %s", got, want)
		}
	}
	Set(&l, True("A"), now)
	at(now.Truncate(time.Second))
	Set(&l, True("A"), now.Add(time.Hour))
	at(now.Truncate(time.Second))
	Set(&l, False("A", "R", capi.ConditionSeverityInfo, ""), now.Add(time.Hour))
	at(now.Add(time.Hour).Truncate(time.Second))
	c := False("A", "R", capi.ConditionSeverityInfo, "another message")
	c.LastTransitionTime = metav1.NewTime(now.Add(-time.Hour).Truncate(time.Second))
	Set(&l, c, now)
	at(now.Add(-time.Hour).Truncate(time.Second))
	if IsTrue(&l, "A") || IsTrue(&l, "B") {
		t.Errorf("IsTrue of a condition that is false, and of none")
	}
}

// A list that a cache shares is not changed.
func TestSetCopiesTheList(t *testing.T) {
	shared := capi.Conditions{True("A")}
	l := list{shared}
	Set(&l, False("A", "R", capi.ConditionSeverityInfo, ""), now)
	if shared[0].Status != corev1.ConditionTrue {
		t.Errorf("Set changes the list that it was given")
	}
}

package machineconfig

import (
	"slices"

	mcv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Condition returns a condition of a pool, nil when it has none of the type.
func Condition(p *mcv1.MachineConfigPool, conditionType mcv1.MachineConfigPoolConditionType) *mcv1.MachineConfigPoolCondition {
	for i := range p.Status.Conditions {
		if p.Status.Conditions[i].Type == conditionType {
			return &p.Status.Conditions[i]
		}
	}
	return nil
}

// ConditionIsTrue reports whether a pool has a condition with the status True.
func ConditionIsTrue(p *mcv1.MachineConfigPool, conditionType mcv1.MachineConfigPoolConditionType) bool {
	c := Condition(p, conditionType)
	return c != nil && c.Status == corev1.ConditionTrue
}

// SetCondition sets a condition of a pool. It returns false when the pool has it already.
func SetCondition(p *mcv1.MachineConfigPool, conditionType mcv1.MachineConfigPoolConditionType, status corev1.ConditionStatus, reason, message string, now metav1.Time) bool {
	c := Condition(p, conditionType)
	if c != nil && c.Status == status && c.Reason == reason && c.Message == message {
		return false
	}
	after := mcv1.MachineConfigPoolCondition{Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: now}
	if c == nil {
		p.Status.Conditions = append(slices.Clip(p.Status.Conditions), after)
		return true
	}
	if c.Status == status {
		after.LastTransitionTime = c.LastTransitionTime
	}
	*c = after
	return true
}

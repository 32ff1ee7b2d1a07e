package v1alpha1

// ConditionChange is a condition that has changed. Before is nil when there was none of its type.
type ConditionChange struct {
	Before *Condition
	After  Condition
}

// Changed returns the conditions that are new, or have another message or readiness than before,
// in their order.
func Changed(before, after []Condition) (out []ConditionChange) {
	for _, c := range after {
		change := ConditionChange{After: c}
		for i := range before {
			if before[i].Type == c.Type {
				change.Before = &before[i]
			}
		}
		if change.Before == nil || *change.Before != c {
			out = append(out, change)
		}
	}
	return out
}

// Became reports whether the condition has become ready.
func (c ConditionChange) Became() bool { return c.Before != nil && !c.Before.Ready && c.After.Ready }

// Lost reports whether the condition was ready, and is not any more.
func (c ConditionChange) Lost() bool { return c.Before != nil && c.Before.Ready && !c.After.Ready }

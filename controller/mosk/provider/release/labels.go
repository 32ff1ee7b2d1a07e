package release

import (
	"fmt"
	"slices"
	"strings"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// CheckNodeLabel returns why a release does not allow a label of Nodes, "" when it does. A release
// without allowedNodeLabels allows all; an entry without a value allows each value of its key.
func CheckNodeLabel(r *kaasv1.ClusterRelease, l baremetalv1.KeyValue) string {
	allowed := r.Spec.AllowedNodeLabels
	if len(allowed) == 0 || slices.ContainsFunc(allowed, func(a kaasv1.AllowedNodeLabel) bool {
		return a.Key == l.Key && (a.Value == "" || a.Value == l.Value)
	}) {
		return ""
	}
	var names []string
	for _, a := range allowed {
		if a.Value == "" {
			names = append(names, a.Key)
		} else {
			names = append(names, a.Key+"="+a.Value)
		}
	}
	return fmt.Sprintf("ClusterRelease %q does not allow the label %s=%s: give one of %s", r.Name, l.Key, l.Value, strings.Join(names, ", "))
}

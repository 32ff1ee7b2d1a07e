package clusters

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
)

// component is the source of the Events.
const component = "cluster"

// publish publishes what a pass has changed in the status of a Cluster. before is nil when there
// was no status. The message of the condition Machines counts them: 1,000 Machines are not 1,000
// Events.
func (r *Reconciler) publish(ctx context.Context, c *clusterv1.Cluster, before *baremetalv1.ClusterProviderStatus) {
	if before == nil {
		before = &baremetalv1.ClusterProviderStatus{}
	}
	p := c.Status.ProviderStatus
	event := func(kind, reason, message string) { r.events.About(ctx, component, c, kind, reason, message) }
	if now, was := p.ReleaseRefs.Current, before.ReleaseRefs.Current; now != nil && (was == nil || was.Name != now.Name) {
		message := "the Cluster has the ClusterRelease " + now.Name
		if was != nil {
			message += ", it had " + was.Name
		}
		event(corev1.EventTypeNormal, "ReleaseChanged", message)
	}
	for _, change := range baremetalv1.Changed(before.Conditions, p.Conditions) {
		x := change.After
		switch {
		case change.Became():
			event(corev1.EventTypeNormal, x.Type+"Ready", "the condition "+x.Type+" is ready")
		case x.Ready || x.Message == "" || x.Type == ConditionMachines && !change.Lost() && change.Before != nil:
		case c.DeletionTimestamp.IsZero() && failed(x):
			event(corev1.EventTypeWarning, x.Type+"Failed", x.Message)
		default:
			event(corev1.EventTypeNormal, x.Type+"NotReady", x.Message)
		}
	}
	if p.Ready != before.Ready {
		reason, message := "NotReady", "a condition of the Cluster is not ready"
		if p.Ready {
			reason, message = "Ready", "all conditions of the Cluster are ready"
		}
		event(corev1.EventTypeNormal, reason, message)
	}
}

// failed reports whether a condition that is not ready shows a mistake or a failure, rather than
// a step that takes its time.
func failed(c baremetalv1.Condition) bool {
	switch c.Type {
	case ConditionRelease, ConditionCredentials, ConditionProxy:
		return true
	case ConditionHelm:
		return strings.HasPrefix(c.Message, failedRelease)
	}
	return false
}

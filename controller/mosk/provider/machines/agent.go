package machines

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// A server fetches its agent as the user data of its installation say, which no later change
// reaches: where the agent of the release cannot be installed, a corrected release needs another
// installation. A machine whose agent has reported upgrades it by spec.agentConfig.

// agentAnnotation of the Secret with the user data has the agent that they install.
const agentAnnotation = "metalab.dev/agent"

// agentKey identifies the file of the release's agent; "" means that the image has it.
func agentKey(f *facts) string {
	if a := f.release.Spec.Agent; a != nil {
		return a.SHA256 + " " + a.DownloadURL
	}
	return ""
}

// reported reports whether the agent of a machine has written a status.
func reported(l *lcmv1.LCMMachine) bool {
	return len(l.Status.Addresses) > 0 || l.Status.HostInfo != nil
}

// observeAgent finds out whether the user data of a server whose agent has never reported name
// another agent than the release.
func (r *Reconciler) observeAgent(ctx context.Context, f *facts) error {
	if f.release == nil || f.lcm == nil || reported(f.lcm) || f.host == nil || !claimedBy(f.host, f.machine) || !provisioned(f.host) {
		return nil
	}
	var s corev1.Secret
	if err := r.Reader.Get(ctx, client.ObjectKey{Namespace: f.machine.Namespace, Name: userDataName(f.machine)}, &s); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("machines: user data: %w", err)
	}
	key, known := s.Annotations[agentAnnotation]
	f.agentChanged = known && key != agentKey(f)
	return nil
}

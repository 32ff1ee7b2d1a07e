package clusters

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
)

// reboot returns nodesRebootRequired of the LCMCluster. It stays between two upgrades: machines that
// come late to the present release are rebooted, too. A further upgrade reboots the machines when
// its own path says so, when that from the release of any machine does, or when a machine has missed
// the reboot of the upgrade before.
func (r *Reconciler) reboot(ctx context.Context, c *clusterv1.Cluster, l *lcmv1.LCMCluster, w release.Wanted) (bool, error) {
	if l == nil || l.Spec.Release == "" {
		return false, nil
	}
	was, from := l.Spec.NodesRebootRequired, l.Spec.Release
	if from == w.Name {
		return was, nil
	}
	if release.RebootRequired(w, from) {
		return true, nil
	}
	var all lcmv1.LCMMachineList
	if err := r.Client.List(ctx, &all, client.InNamespace(c.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("LCMMachines: %w", err)
	}
	for _, m := range all.Items {
		if has := m.Status.Release; has != "" && has != from && (was || release.RebootRequired(w, has)) {
			return true, nil
		}
	}
	return false, nil
}

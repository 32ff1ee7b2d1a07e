package clusters

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
)

// replicasOfHA are the pods of a Helm controller with helmControllerHAEnabled: one acts, elected by a
// Lease of the management cluster, and one stands by.
const replicasOfHA = 2

// controllerChart has the part of a Cluster in the chart of its Helm controller.
type controllerChart struct {
	url      string // the chart of a release that names none; "" means none
	sharedBy string // the Cluster, where it shares its API with others; "" in an API of its own
	ha       bool   // LCMCluster.spec.helmControllerHAEnabled
}

// controllerChart returns that of a Cluster. kubeconfig is the Secret of its own API. A cluster of the
// user's gets no default chart: its nodes have no image of the lab.
func (r *Reconciler) controllerChart(ctx context.Context, c *clusterv1.Cluster, l *lcmv1.LCMCluster, kubeconfig string) (controllerChart, error) {
	out := controllerChart{url: r.HelmChart, ha: l != nil && l.Spec.HelmControllerHAEnabled}
	switch {
	case kubeconfig == "":
		out.sharedBy = c.Name
	case out.url != "":
		s := new(corev1.Secret)
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: kubeconfig}, s)
		if err != nil && !apierrors.IsNotFound(err) {
			return out, err
		}
		if err == nil && !metav1.IsControlledBy(s, c) {
			out.url = ""
		}
	}
	return out, nil
}

// first returns the chart of the Helm controller, which is the first of a release, or nothing.
func (h controllerChart) first(r kaasv1.ReleaseHelm) (out []kaasv1.ReleaseChart, err error) {
	ofChart := func(c kaasv1.ReleaseChart) bool { return helmcontroller.Is(c.Chart, c.ChartURL) }
	switch {
	case r.Controller != nil:
		out = []kaasv1.ReleaseChart{*r.Controller}
	case h.url != "" && !slices.ContainsFunc(r.Releases, ofChart):
		out = []kaasv1.ReleaseChart{{Name: helmcontroller.Chart, ChartURL: h.url}}
	}
	if len(out) == 0 || !h.ha {
		return out, nil
	}
	values, err := json.Marshal(helmcontroller.Values{Replicas: replicasOfHA})
	if err != nil {
		return nil, err
	}
	if out[0].Values, err = mergeValues(&runtime.RawExtension{Raw: values}, out[0].Values); err != nil {
		return nil, release.Mistake("values of the chart %q of the release: %v", out[0].Name, err)
	}
	return out, nil
}

// rename gives the releases of the chart names of the Cluster's own, where others share its API:
// Helm would take those of two Clusters for one.
func (h controllerChart) rename(b *lcmv1.HelmBundleSpec) {
	if h.sharedBy == "" {
		return
	}
	for i := range b.Releases {
		x := &b.Releases[i]
		if !helmcontroller.Is(x.Chart, x.ChartURL) {
			continue
		}
		was := x.Name
		x.Name = helmcontroller.SharedRelease(was, h.sharedBy)
		for j := range b.Releases {
			if k := slices.Index(b.Releases[j].Requires, was); k >= 0 {
				b.Releases[j].Requires = slices.Clone(b.Releases[j].Requires) // the ClusterRelease's, in the cache
				b.Releases[j].Requires[k] = x.Name
			}
		}
	}
}

// controllerRelease returns the release of the chart in a bundle, nil when there is none.
func controllerRelease(b *lcmv1.HelmBundle) *lcmv1.HelmRelease {
	if b == nil {
		return nil
	}
	i := slices.IndexFunc(b.Spec.Releases, func(x lcmv1.HelmRelease) bool { return helmcontroller.Is(x.Chart, x.ChartURL) })
	if i < 0 {
		return nil
	}
	return &b.Spec.Releases[i]
}

// deployed reports whether a release of a bundle is installed, and its pods run.
func deployed(b *lcmv1.HelmBundle, r *lcmv1.HelmRelease) bool {
	s := b.Status.ReleaseStatuses[r.Name]
	return s.Success && s.Ready
}

// recordController writes whether the Cluster has its Helm controller to the status of the
// LCMCluster. A mistake in the Cluster, without a bundle, leaves it as it is.
func (r *Reconciler) recordController(ctx context.Context, l *lcmv1.LCMCluster, b *lcmv1.HelmBundle) error {
	if l == nil || b == nil {
		return nil // the watch reports it
	}
	x := controllerRelease(b)
	is := x != nil && deployed(b, x)
	if l.Status.HelmControllerDeployed == is {
		return nil
	}
	after := l.DeepCopy()
	after.Status.HelmControllerDeployed = is
	return client.IgnoreNotFound(r.Client.Status().Patch(ctx, after, client.MergeFrom(l)))
}

package lab

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/controller/mosk/helmcontroller"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// release waits until the status of a release of the HelmBundle is ok.
func (l handover) release(what, name string, ok func(lcmv1.HelmReleaseStatus) bool) {
	l.t.Helper()
	b := new(lcmv1.HelmBundle)
	patience.Await(l.t, what, func() bool {
		return l.Get(l.t.Context(), l.key("c1"), b) == nil && ok(b.Status.ReleaseStatuses[name])
	}, b)
}

// TestHelmChartOfTheControllerNeedsTheRightsOfCharts installs the chart of a Cluster's Helm controller,
// and uninstalls it with the Cluster, as the service account that the controllers have in a cluster: it
// has no object of the cluster, and no more rights than charts have.
func TestHelmChartOfTheControllerNeedsTheRightsOfCharts(t *testing.T) {
	w, admin := startWithoutControllers(t, config.HOC)
	grant(t, admin, withComponent(t, "hoc"))
	var refused refusals
	as := asManifests(t, w)
	as.Wrap(refused.watch)
	defer runController(t, w, as, manager.Config{Controllers: []string{"provider", "helm"}, HelmChart: w.helmChart()})()
	l := handover{hocLab{t, admin}}
	l.create(serveChart(t))
	name := helmcontroller.SharedRelease(helmcontroller.Chart, "c1")
	l.release("another chart is installed", "settings", func(s lcmv1.HelmReleaseStatus) bool { return s.Success })
	// Its pod is not ready, since no controllers of the lab run; the look at it is no mistake.
	l.release("the chart is installed", name, func(s lcmv1.HelmReleaseStatus) bool { return s.Success && s.Message == "" })
	secret := &corev1.Secret{ObjectMeta: l.meta(helmcontroller.SecretName(name))}
	patience.Await(t, "the account is in its Secret", func() bool {
		return admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret) == nil && len(secret.Data[helmcontroller.TokenKey]) > 0
	}, secret)
	c := &clusterv1.Cluster{ObjectMeta: l.meta("c1")}
	if err := admin.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	patience.Await(t, "the Cluster is gone", func() bool { return apierrors.IsNotFound(admin.Get(t.Context(), l.key("c1"), c)) }, c)
	if err := admin.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret of the account after the Cluster: %v", err)
	}
	refused.mu.Lock()
	defer refused.mu.Unlock()
	if refused.list != nil {
		t.Errorf("the service account was refused:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
	}
}

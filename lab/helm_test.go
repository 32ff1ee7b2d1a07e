package lab

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/config"
	"github.com/metalab-dev/metalab/controller/manager"
	"github.com/metalab-dev/metalab/scenarios/patience"
)

// TestHelmWorksWithTheRightsOfTheManifests installs, upgrades and uninstalls a chart as the
// service account that the controllers have in a cluster.
func TestHelmWorksWithTheRightsOfTheManifests(t *testing.T) {
	w, admin := startWithoutControllers(t, config.HOC)
	grant(t, admin, withComponent(t, "hoc"))
	var refused refusals
	as := asManifests(t, w)
	as.Wrap(refused.watch)
	end := runController(t, w, as, manager.Config{Controllers: []string{"helm"}})
	defer end()
	l := hocLab{t, admin}
	b := &lcmv1.HelmBundle{ObjectMeta: l.meta("c1"), Spec: lcmv1.HelmBundleSpec{Release: "mosk-1", Releases: []lcmv1.HelmRelease{{Name: "settings", ChartURL: serveChart(t)}}}}
	if err := admin.Create(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	revision := func(want int) {
		t.Helper()
		patience.Await(t, "the chart is installed", func() bool {
			err := admin.Get(t.Context(), l.key("c1"), b)
			s := b.Status.ReleaseStatuses["settings"]
			return err == nil && s.Success && s.Ready && s.Revision == want
		}, b)
	}
	revision(1)
	m := new(corev1.ConfigMap)
	key := l.key("settings")
	if err := admin.Get(t.Context(), key, m); err != nil || m.Data["text"] != "default" {
		t.Errorf("the chart's ConfigMap: %v, %v", m.Data, err)
	}
	before := b.DeepCopy()
	b.Spec.Releases[0].Values = &runtime.RawExtension{Raw: []byte(`{"text":"another"}`)}
	if err := admin.Patch(t.Context(), b, client.MergeFrom(before)); err != nil { // the controller writes the status meanwhile
		t.Fatal(err)
	}
	revision(2)
	if err := admin.Delete(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	patience.Await(t, "the bundle is deleted", func() bool { return apierrors.IsNotFound(admin.Get(t.Context(), l.key("c1"), b)) }, b)
	if err := admin.Get(t.Context(), key, m); !apierrors.IsNotFound(err) {
		t.Errorf("the ConfigMap of a chart that is uninstalled: %v", err)
	}
	refused.mu.Lock()
	defer refused.mu.Unlock()
	if refused.list != nil {
		t.Errorf("the service account was refused:\n%s", strings.Join(slices.Compact(slices.Sorted(slices.Values(refused.list))), "\n"))
	}
}

// asManifests returns the API for the service account of the manifests, by a token: an impersonated user
// impersonates no other, as the controller helm does.
func asManifests(t *testing.T, w *Lab) *rest.Config {
	t.Helper()
	as := rest.AnonymousClientConfig(w.kube.api)
	as.BearerToken, as.QPS = tokenOf(t, w, "lab-controller"), -1
	return as
}

// serveChart serves the archive of a chart with a ConfigMap, and returns its URL.
func serveChart(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range []struct{ name, text string }{
		{"Chart.yaml", "apiVersion: v2\nname: settings\nversion: 1.0.0\n"},
		{"values.yaml", "text: default\n"},
		{"templates/configmap.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {text: {{ .Values.text }}}\n"},
	} {
		err := w.WriteHeader(&tar.Header{Name: "settings/" + f.name, Mode: 0o644, Size: int64(len(f.text))})
		if err == nil {
			_, err = w.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(out.Bytes()) }))
	t.Cleanup(s.Close)
	return s.URL + "/settings-1.0.0.tgz"
}

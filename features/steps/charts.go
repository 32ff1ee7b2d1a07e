package steps

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing/fstest"

	"github.com/cucumber/godog"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/lab"
	"github.com/metalab-dev/metalab/scenarios/charts"
)

// registerCharts binds the steps on HelmBundles and the lab's repository of charts.
func (s *scenario) registerCharts(sc *stepRegistry) {
	sc.Step(`^the operator creates the HelmBundle "([^"]*)" with the lab's repository and the releases:$`, "creates a HelmBundle whose repository lab is the lab's, with this list of releases, in YAML", s.createBundle)
	sc.Step(`^the release "([^"]*)" of the HelmBundle "([^"]*)" is the chart "([^"]*)", and (ready|not ready)$`, "waits until Helm has installed this chart, NAME VERSION, and the release is ready, or is not as its workloads do not run", s.releaseIs)
	sc.Step(`^the release "([^"]*)" of the HelmBundle "([^"]*)" fails: '([^']*)'$`, "waits until the message of a release that is not installed contains this text; URL stands for the URL of the repository", s.releaseFails)
	sc.Step(`^the operator puts (the chart|a damaged archive of the chart) "([^"]*)" in the directory of charts$`, "writes the archive of a chart, NAME VERSION, with a ConfigMap, or one that is cut off", s.putChart)
}

func (s *scenario) createBundle(ctx context.Context, name string, text *godog.DocString) error {
	b := &lcmv1.HelmBundle{ObjectMeta: day2Meta(name)}
	if err := yaml.UnmarshalStrict([]byte(text.Content), &b.Spec.Releases); err != nil {
		return fmt.Errorf("the step's releases: %w", err)
	}
	st, err := s.lab.Control().Status(ctx)
	if err != nil {
		return err
	}
	b.Spec.Repositories = []lcmv1.HelmRepository{{Name: "lab", URL: st.Charts}}
	return s.create(ctx, b)
}

// awaitRelease waits until ok accepts the status of a release.
func (s *scenario) awaitRelease(ctx context.Context, name, bundle string, ok func(lcmv1.HelmReleaseStatus) bool) error {
	return eventually(ctx, "the release "+name, func(ctx context.Context) (bool, string, error) {
		b := &lcmv1.HelmBundle{ObjectMeta: day2Meta(bundle)}
		err := s.kube.Get(ctx, client.ObjectKeyFromObject(b), b)
		status := b.Status.ReleaseStatuses[name]
		return ok(status), fmt.Sprintf("%+v", status), client.IgnoreNotFound(err) // the provider makes that of a Cluster
	})
}

func (s *scenario) releaseIs(ctx context.Context, name, bundle, chart, ready string) error {
	return s.awaitRelease(ctx, name, bundle, func(status lcmv1.HelmReleaseStatus) bool {
		return status.Success && status.Chart+" "+status.Version == chart && status.Ready == (ready == "ready")
	})
}

func (s *scenario) releaseFails(ctx context.Context, name, bundle, text string) error {
	text = strings.ReplaceAll(text, "URL", s.lab.ChartsURL())
	return s.awaitRelease(ctx, name, bundle, func(status lcmv1.HelmReleaseStatus) bool {
		return !status.Success && strings.Contains(status.Message, text)
	})
}

func (s *scenario) putChart(what, chart string) error {
	name, version, ok := strings.Cut(chart, " ")
	if !ok {
		return fmt.Errorf("the step's chart %q: give NAME VERSION", chart)
	}
	text, err := charts.Pack(fstest.MapFS{
		name + "/Chart.yaml":               {Data: fmt.Appendf(nil, "apiVersion: v2\nname: %s\nversion: %s\n", name, version)},
		name + "/templates/configmap.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n")},
	}, name)
	if err != nil {
		return err
	}
	if what != "the chart" {
		text = text[:len(text)/2]
	}
	return os.WriteFile(filepath.Join(s.dir, lab.ChartsDir, name+"-"+version+".tgz"), text, 0o600)
}

// deleteCharts deletes all HelmBundles, whose releases are then uninstalled, and the files of
// the directory of charts.
func (b *testLab) deleteCharts(ctx context.Context) error {
	files, err := fs.Glob(os.DirFS(b.dir), lab.ChartsDir+"/*")
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range files {
		errs = append(errs, os.Remove(filepath.Join(b.dir, name)))
	}
	errs = append(errs, b.kube.DeleteAllOf(ctx, &lcmv1.HelmBundle{}, client.InNamespace(lab.Namespace)))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, pollInterval, resetTimeout, true, func(ctx context.Context) (bool, error) {
		var l lcmv1.HelmBundleList
		err := b.kube.List(ctx, &l)
		return meta.LenList(&l) == 0, err
	})
}

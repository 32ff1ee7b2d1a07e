package clusters

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
	"github.com/metalab-dev/metalab/controller/mosk/lcm/item"
	"github.com/metalab-dev/metalab/controller/mosk/provider/release"
)

// bundle makes the HelmBundle of a Cluster, and returns it. Until the step of a
// ClusterUpdatePlan that updates the charts begins, the bundle has the charts of its previous
// release.
func (r *Reconciler) bundle(ctx context.Context, c *clusterv1.Cluster, w release.Wanted, to *kaasv1.ClusterRelease, h controllerChart) (*lcmv1.HelmBundle, error) {
	current, err := r.readBundle(ctx, c)
	if err != nil {
		return nil, err
	}
	if current != nil && current.Spec.Release != "" && current.Spec.Release != to.Name {
		plan, err := release.PlanOf(ctx, r.Client, client.ObjectKeyFromObject(c), to.Name)
		if err == nil && release.Withheld(plan, kaasv1.StepComponents) {
			to, err = release.Get(ctx, r.Client, current.Spec.Release)
		}
		if err != nil {
			return nil, err
		}
	}
	spec, err := bundleSpec(w, to, c.Spec.ProviderSpec.Value, h)
	if err != nil {
		return nil, err
	}
	if current == nil {
		current = &lcmv1.HelmBundle{Spec: spec}
		current.Namespace, current.Name = c.Namespace, c.Name
		current.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(c, clusterv1.GroupVersion.WithKind("Cluster"))}
		return current, r.Client.Create(ctx, current)
	}
	if !metav1.IsControlledBy(current, c) {
		return nil, release.Mistake("HelmBundle %q exists, and is not the Cluster's: remove it", current.Name)
	}
	if equality.Semantic.DeepEqual(current.Spec, spec) {
		return current, nil
	}
	before := current.DeepCopy()
	current.Spec = spec
	return current, r.patch(ctx, before, current)
}

// readBundle returns the HelmBundle of a Cluster, nil when there is none.
func (r *Reconciler) readBundle(ctx context.Context, c *clusterv1.Cluster) (*lcmv1.HelmBundle, error) {
	b := new(lcmv1.HelmBundle)
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(c), b); apierrors.IsNotFound(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("HelmBundle: %w", err)
	}
	return b, nil
}

// failedRelease is the beginning of a message of the condition Helm whose first release has failed.
const failedRelease = "release "

// helmCondition returns the condition Helm of a Cluster: whether all releases of its bundle
// are installed as they are wanted, and run.
func helmCondition(b *lcmv1.HelmBundle) baremetalv1.Condition {
	out := baremetalv1.Condition{Type: ConditionHelm, Ready: true}
	var failed, not []string // what has failed comes first: others wait for it
	for _, s := range b.Spec.Releases {
		switch status := b.Status.ReleaseStatuses[s.Name]; {
		case status.Success && status.Ready && b.Status.ObservedGeneration == b.Generation:
		case !status.Success && status.Attempt > 0 && status.Message != "":
			failed = append(failed, fmt.Sprintf("%s%s, attempt %d: %s", failedRelease, s.Name, status.Attempt, item.Line(status.Message)))
		case status.Message != "":
			not = append(not, s.Name+": "+item.Line(status.Message))
		default:
			not = append(not, s.Name+" is not ready")
		}
	}
	if all := append(failed, not...); len(all) > 0 {
		out.Ready, out.Message = false, strings.Join(all, "; ")
	}
	return out
}

// bundleSpec returns the charts of a cluster: the chart of the Helm controller, the charts of
// the ClusterRelease and, in a management cluster, the charts of the KaaSRelease. Each layer
// is merged over the one before, and the values of the Cluster over all of them.
func bundleSpec(w release.Wanted, to *kaasv1.ClusterRelease, value baremetalv1.ClusterProviderSpec, h controllerChart) (lcmv1.HelmBundleSpec, error) {
	out := lcmv1.HelmBundleSpec{Release: to.Name}
	repositories := to.Spec.Helm.Repositories
	if w.Management {
		repositories = slices.Concat(repositories, w.KaaS.Spec.HelmRepositories)
	}
	for _, r := range repositories {
		if !slices.ContainsFunc(out.Repositories, func(known lcmv1.HelmRepository) bool { return known.Name == r.Name }) {
			out.Repositories = append(out.Repositories, lcmv1.HelmRepository{Name: r.Name, URL: r.URL, AuthSecret: r.AuthSecret})
		}
	}
	charts, err := h.first(to.Spec.Helm)
	if err != nil {
		return out, err
	}
	charts = append(charts, to.Spec.Helm.Releases...)
	var values []baremetalv1.HelmRelease
	if w.Management {
		charts = slices.Concat(charts, w.KaaS.Spec.Management.HelmReleases, w.KaaS.Spec.RegionalHelmReleases)
		for _, r := range w.KaaS.Spec.Regional {
			if r.Provider == clusterv1.ProviderBareMetal {
				charts = append(charts, r.HelmReleases...)
			}
		}
		values = slices.Concat(values, value.KaaS.Management.HelmReleases, value.KaaS.RegionalHelmReleases)
		for _, r := range value.KaaS.Regional {
			if r.Provider == clusterv1.ProviderBareMetal {
				values = append(values, r.HelmReleases...)
			}
		}
	}
	values = append(values, value.HelmReleases...)
	for _, c := range charts {
		if err := addChart(&out, c); err != nil {
			return out, err
		}
	}
	disabled := map[string]bool{}
	for _, v := range values {
		i := slices.IndexFunc(out.Releases, func(r lcmv1.HelmRelease) bool { return r.Name == v.Name })
		if i < 0 {
			return out, release.Mistake("spec.providerSpec.value: helmReleases: %q is no chart of ClusterRelease %q: correct the name, or remove it", v.Name, to.Name)
		}
		merged, err := mergeValues(out.Releases[i].Values, v.Values)
		if err != nil {
			return out, release.Mistake("spec.providerSpec.value: helmReleases: values of %q: %v", v.Name, err)
		}
		out.Releases[i].Values = merged
		if v.Enabled != nil {
			disabled[v.Name] = !*v.Enabled
		}
	}
	if err := withoutDisabled(&out, disabled); err != nil {
		return out, err
	}
	h.rename(&out)
	return out, nil
}

// withoutDisabled removes the charts that a Cluster disables, unless another chart requires
// one.
func withoutDisabled(b *lcmv1.HelmBundleSpec, disabled map[string]bool) error {
	b.Releases = slices.DeleteFunc(b.Releases, func(r lcmv1.HelmRelease) bool { return disabled[r.Name] })
	for _, r := range b.Releases {
		for _, name := range r.Requires {
			if disabled[name] {
				return release.Mistake("spec.providerSpec.value: helmReleases: %q is not enabled, but %q requires it: enable it, or disable %q, too", name, r.Name, r.Name)
			}
		}
	}
	return nil
}

// addChart adds a chart, or merges it over the one of its name.
func addChart(to *lcmv1.HelmBundleSpec, c kaasv1.ReleaseChart) error {
	i := slices.IndexFunc(to.Releases, func(r lcmv1.HelmRelease) bool { return r.Name == c.Name })
	if i < 0 {
		to.Releases, i = append(to.Releases, lcmv1.HelmRelease{Name: c.Name}), len(to.Releases)
	}
	r := &to.Releases[i]
	if c.Chart != "" || c.ChartURL != "" {
		r.Chart, r.ChartURL = c.Chart, c.ChartURL
	}
	if r.ChartURL != "" {
		r.Chart = ""
	} else {
		r.Chart = cmp.Or(r.Chart, c.Name)
	}
	r.Version, r.Namespace = cmp.Or(c.Version, r.Version), cmp.Or(c.Namespace, r.Namespace)
	if c.Requires != nil {
		r.Requires = c.Requires
	}
	if c.Labels != nil {
		r.Labels = c.Labels
	}
	merged, err := mergeValues(r.Values, c.Values)
	if err != nil {
		return release.Mistake("values of the chart %q of the release: %v", c.Name, err)
	}
	r.Values = merged
	return nil
}

// mergeValues merges values as Helm does: objects by their names, all else is replaced, and
// null removes.
func mergeValues(below, above *runtime.RawExtension) (*runtime.RawExtension, error) {
	if above == nil || len(above.Raw) == 0 {
		return below, nil
	}
	var over map[string]any
	if err := decode(above.Raw, &over); err != nil {
		return nil, err
	}
	under := map[string]any{}
	if below != nil && len(below.Raw) > 0 {
		if err := decode(below.Raw, &under); err != nil {
			return nil, err
		}
	}
	b, err := json.Marshal(merge(under, over))
	return &runtime.RawExtension{Raw: b}, err
}

func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber() // with all digits
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("give an object: %w", err)
	}
	return nil
}

func merge(under, over map[string]any) map[string]any {
	out := maps.Clone(under)
	for name, value := range over { // in any order: each key is merged alone
		below, both := out[name].(map[string]any)
		above, object := value.(map[string]any)
		switch {
		case value == nil:
			delete(out, name)
		case both && object:
			out[name] = merge(below, above)
		default:
			out[name] = value
		}
	}
	return out
}

// Package release finds the parts of a release for a cluster and its machines. It changes no
// object.
package release

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetalv1 "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	clusterv1 "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// Error is a mistake that the user has to correct. Its text names the field.
type Error struct{ text string }

// Error implements error.
func (e *Error) Error() string { return e.text }

// Mistake returns an Error.
func Mistake(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Wanted is the release that a Cluster asks for.
type Wanted struct {
	Name string // name of the ClusterRelease
	KaaS *kaasv1.KaaSRelease
	// Management reports whether the Cluster is a management cluster.
	Management bool
}

const field = "spec.providerSpec.value"

// Of returns the release that a Cluster asks for. That of a management cluster follows
// from its KaaSRelease. Another cluster takes one of those that the KaaSRelease of the
// management cluster supports; without a management cluster, the newest KaaSRelease counts.
func Of(ctx context.Context, r client.Reader, c *clusterv1.Cluster) (Wanted, error) {
	spec := c.Spec.ProviderSpec.Value
	if spec.KaaS != nil && spec.KaaS.Release != "" {
		k, err := kaasRelease(ctx, r, spec.KaaS.Release)
		if err != nil {
			return Wanted{}, err
		}
		if spec.Release != "" && spec.Release != k.Spec.ClusterRelease {
			return Wanted{}, Mistake("%s.release: %q is not the ClusterRelease of KaaSRelease %q: remove it, or give %q", field, spec.Release, k.Name, k.Spec.ClusterRelease)
		}
		return Wanted{k.Spec.ClusterRelease, k, true}, nil
	}
	if spec.Release == "" {
		return Wanted{}, Mistake("%s.release: give the name of a ClusterRelease", field)
	}
	k, err := management(ctx, r)
	if err != nil {
		return Wanted{}, err
	}
	if supported(k, spec.Release) == nil {
		var names []string
		for _, s := range k.Spec.SupportedClusterReleases {
			if forProvider(&s) {
				names = append(names, s.Name)
			}
		}
		return Wanted{}, Mistake("%s.release: KaaSRelease %q does not support %q: give one of %s", field, k.Name, spec.Release, list(names))
	}
	return Wanted{spec.Release, k, false}, nil
}

func kaasRelease(ctx context.Context, r client.Reader, name string) (*kaasv1.KaaSRelease, error) {
	k := new(kaasv1.KaaSRelease)
	if err := r.Get(ctx, client.ObjectKey{Name: name}, k); apierrors.IsNotFound(err) {
		return nil, Mistake("%s.kaas.release: there is no KaaSRelease %q", field, name)
	} else if err != nil {
		return nil, err
	}
	return k, nil
}

// management returns the KaaSRelease of the management cluster.
func management(ctx context.Context, r client.Reader) (*kaasv1.KaaSRelease, error) {
	var clusters clusterv1.ClusterList
	if err := r.List(ctx, &clusters, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	for _, c := range clusters.Items {
		if k := c.Spec.ProviderSpec.Value.KaaS; k != nil && k.Release != "" && c.DeletionTimestamp.IsZero() {
			return kaasRelease(ctx, r, k.Release)
		}
	}
	var all kaasv1.KaaSReleaseList
	if err := r.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, err
	}
	if len(all.Items) == 0 {
		return nil, Mistake("there is no KaaSRelease: create one that lists the ClusterRelease among supportedClusterReleases")
	}
	newest := slices.MaxFunc(all.Items, func(a, b kaasv1.KaaSRelease) int { return compare(a.Spec.Version, b.Spec.Version) })
	return newest.DeepCopy(), nil
}

// compare compares versions, numerically where they are those of Semantic Versioning.
func compare(a, b string) int {
	x, errX := semver.NewVersion(a)
	y, errY := semver.NewVersion(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return x.Compare(y)
}

func supported(k *kaasv1.KaaSRelease, name string) *kaasv1.SupportedClusterRelease {
	for i := range k.Spec.SupportedClusterReleases {
		if s := &k.Spec.SupportedClusterReleases[i]; s.Name == name && forProvider(s) {
			return s
		}
	}
	return nil
}

// forProvider reports whether the bare metal provider supports a release.
func forProvider(s *kaasv1.SupportedClusterRelease) bool {
	return len(s.Providers.Supported) == 0 || slices.Contains(s.Providers.Supported, clusterv1.ProviderBareMetal)
}

// Upgrades returns the supported releases that a cluster with a release can be upgraded
// to. A management cluster is upgraded with its KaaSRelease alone.
func Upgrades(w Wanted, from string) (out []baremetalv1.ReleaseRef) {
	current := supported(w.KaaS, from)
	if w.Management || current == nil {
		return nil
	}
	for _, to := range w.KaaS.Spec.SupportedClusterReleases {
		i := slices.IndexFunc(current.AvailableUpgrades, func(u kaasv1.AvailableUpgrade) bool { return u.Version == to.Version })
		if i >= 0 && forProvider(&to) {
			out = append(out, baremetalv1.ReleaseRef{Name: to.Name, Version: to.Version, RebootRequired: current.AvailableUpgrades[i].RebootRequired})
		}
	}
	return out
}

// RebootRequired reports whether the path from a release to the one that a cluster asks for reboots the
// machines. A path that a KaaSRelease does not list reboots none.
func RebootRequired(w Wanted, from string) bool {
	current, to := supported(w.KaaS, from), supported(w.KaaS, w.Name)
	return current != nil && to != nil && slices.ContainsFunc(current.AvailableUpgrades, func(u kaasv1.AvailableUpgrade) bool {
		return u.Version == to.Version && u.RebootRequired
	})
}

// Check returns a Mistake when a cluster with the release from cannot get the one that it
// asks for: a cluster is upgraded along the supported path only, one step after the other,
// and a management cluster to a higher version that supports all other clusters.
func Check(ctx context.Context, r client.Reader, c *clusterv1.Cluster, w Wanted, from, to *kaasv1.ClusterRelease) error {
	if from == nil || from.Name == to.Name {
		return nil
	}
	if err := checkPath(w, from, to); err != nil {
		return err
	}
	if w.Management {
		return checkOthers(ctx, r, c, w)
	}
	return checkMachines(ctx, r, c, w, from, to)
}

func checkPath(w Wanted, from, to *kaasv1.ClusterRelease) error {
	if w.Management {
		if compare(to.Spec.Version, from.Spec.Version) <= 0 {
			return Mistake("%s.kaas.release: ClusterRelease %q has version %s, and the cluster %s: a release never goes back", field, to.Name, to.Spec.Version, from.Spec.Version)
		}
		return nil
	}
	path := Upgrades(w, from.Name)
	if slices.ContainsFunc(path, func(r baremetalv1.ReleaseRef) bool { return r.Name == to.Name }) {
		return nil
	}
	var names []string
	for _, r := range path {
		names = append(names, fmt.Sprintf("%s (%s)", r.Name, r.Version))
	}
	return Mistake("%s.release: %q (%s) cannot be upgraded to %q: give one of %s", field, from.Name, from.Spec.Version, to.Name, list(names))
}

// checkMachines returns a Mistake when a machine of the cluster has not reached the release
// from yet, and would leave the path: its own release has no upgrade to the next one. When a
// release is broken, so that no machine reaches it, the next one has to follow both.
func checkMachines(ctx context.Context, r client.Reader, c *clusterv1.Cluster, w Wanted, from, to *kaasv1.ClusterRelease) error {
	var all lcmv1.LCMMachineList
	if err := r.List(ctx, &all, client.InNamespace(c.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: c.Name}); err != nil {
		return fmt.Errorf("LCMMachines: %w", err)
	}
	var behind []string
	for _, m := range all.Items {
		has := m.Status.Release
		follows := slices.ContainsFunc(Upgrades(w, has), func(u baremetalv1.ReleaseRef) bool { return u.Name == to.Name })
		if has != "" && has != from.Name && has != to.Name && !follows {
			behind = append(behind, fmt.Sprintf("%s has %q", m.Name, has))
		}
	}
	if len(behind) == 0 {
		return nil
	}
	slices.Sort(behind)
	return Mistake("%s.release: %q can follow once all machines have %q: machine %s", field, to.Name, from.Name, strings.Join(behind, ", "))
}

// checkOthers returns a Mistake when a KaaSRelease does not support the release of another
// cluster: that one could not be changed any more.
func checkOthers(ctx context.Context, r client.Reader, c *clusterv1.Cluster, w Wanted) error {
	var all clusterv1.ClusterList
	if err := r.List(ctx, &all); err != nil {
		return fmt.Errorf("Clusters: %w", err)
	}
	for _, other := range all.Items {
		spec, status := other.Spec.ProviderSpec.Value, other.Status.ProviderStatus
		if other.UID == c.UID || spec.KaaS != nil && spec.KaaS.Release != "" || status == nil || status.ReleaseRefs.Current == nil || !other.DeletionTimestamp.IsZero() {
			continue
		}
		if current := status.ReleaseRefs.Current.Name; supported(w.KaaS, current) == nil {
			return Mistake("%s.kaas.release: KaaSRelease %q does not support %q, the release of Cluster %s/%s: upgrade that one first", field, w.KaaS.Name, current, other.Namespace, other.Name)
		}
	}
	return nil
}

// Admit returns a Mistake when a Cluster cannot get the release that it asks for, because
// another one is deployed. A Cluster to which nothing is deployed can ask for any: its
// condition Release reports what is missing.
func Admit(ctx context.Context, r client.Reader, c *clusterv1.Cluster) error {
	var l lcmv1.LCMCluster
	if err := r.Get(ctx, client.ObjectKeyFromObject(c), &l); apierrors.IsNotFound(err) || err == nil && l.Spec.Release == "" {
		return nil
	} else if err != nil {
		return fmt.Errorf("LCMCluster: %w", err)
	}
	from, err := Get(ctx, r, l.Spec.Release)
	if err != nil {
		return err
	}
	w, err := Of(ctx, r, c)
	if err != nil {
		return err
	}
	to, err := Get(ctx, r, w.Name)
	if err != nil {
		return err
	}
	return Check(ctx, r, c, w, from, to)
}

// Credentials returns an error when a Cluster names a credential that cannot be used: its
// backend takes no new server then.
func Credentials(c *clusterv1.Cluster) error {
	name := c.Spec.ProviderSpec.Value.Credentials
	if name == "" {
		return nil
	}
	if p := c.Status.ProviderStatus; p != nil {
		for _, x := range p.Conditions {
			if x.Type == baremetalv1.ConditionCredentials && x.Ready {
				return nil
			}
			if x.Type == baremetalv1.ConditionCredentials {
				return Mistake("Cluster %q: %s", c.Name, x.Message)
			}
		}
	}
	return Mistake("Cluster %q: BareMetalHostCredential %q is not ready yet", c.Name, name)
}

// Kubernetes returns an error while a Cluster's own Kubernetes API cannot be used: its servers
// become Nodes there.
func Kubernetes(c *clusterv1.Cluster) error {
	if p := c.Status.ProviderStatus; p != nil {
		for _, x := range p.Conditions {
			if x.Type == baremetalv1.ConditionKubernetes && !x.Ready {
				return Mistake("Cluster %q: %s", c.Name, x.Message)
			}
		}
	}
	return nil
}

// Get returns a ClusterRelease.
func Get(ctx context.Context, r client.Reader, name string) (*kaasv1.ClusterRelease, error) {
	out := new(kaasv1.ClusterRelease)
	if err := r.Get(ctx, client.ObjectKey{Name: name}, out); apierrors.IsNotFound(err) {
		return nil, Mistake("there is no ClusterRelease %q", name)
	} else if err != nil {
		return nil, err
	}
	return out, nil
}

// Image returns the image of a machine: its own, else that of its distribution in the
// release.
func Image(r *kaasv1.ClusterRelease, m baremetalv1.MachineProviderSpec) (baremetalv1.Image, error) {
	if m.Image != nil && m.Image.URL != "" {
		return *m.Image, nil
	}
	d, err := distribution(r, m.Distribution)
	if err != nil {
		return baremetalv1.Image{}, err
	}
	if d.Image.URL == "" {
		return baremetalv1.Image{}, Mistake("ClusterRelease %q has no image of the distribution %q: give spec.providerSpec.value.image", r.Name, d.ID)
	}
	return baremetalv1.Image(d.Image), nil
}

func distribution(r *kaasv1.ClusterRelease, id string) (kaasv1.Distribution, error) {
	var ids []string
	for _, d := range r.Spec.AllowedDistributions {
		if d.ID == id || id == "" && d.Default {
			return d, nil
		}
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	if id == "" {
		return kaasv1.Distribution{}, Mistake("ClusterRelease %q has no default distribution: give spec.providerSpec.value.distribution, one of %s", r.Name, list(ids))
	}
	return kaasv1.Distribution{}, Mistake("spec.providerSpec.value.distribution: %q is not one of ClusterRelease %q: give one of %s", id, r.Name, list(ids))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none, as it has none"
	}
	return strings.Join(names, ", ")
}

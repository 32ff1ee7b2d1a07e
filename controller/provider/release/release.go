// Package release finds what a release has for a cluster and its machines. It changes no
// object.
package release

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	baremetal "github.com/metalab-dev/metalab/controller/api/baremetal/v1alpha1"
	cluster "github.com/metalab-dev/metalab/controller/api/cluster/v1alpha1"
	kaas "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// Error is a mistake that the user has to correct. Its text names the field.
type Error struct{ text string }

// Error implements error.
func (e *Error) Error() string { return e.text }

// Mistake returns an Error.
func Mistake(format string, args ...any) error { return &Error{fmt.Sprintf(format, args...)} }

// Name returns the name of the ClusterRelease that a Cluster asks for. That of a management
// cluster follows from its KaaSRelease.
func Name(ctx context.Context, r client.Reader, c *cluster.Cluster) (string, error) {
	const field = "spec.providerSpec.value"
	spec := c.Spec.ProviderSpec.Value
	if spec.KaaS == nil || spec.KaaS.Release == "" {
		if spec.Release == "" {
			return "", Mistake("%s.release: give the name of a ClusterRelease", field)
		}
		return spec.Release, nil
	}
	var k kaas.KaaSRelease
	if err := r.Get(ctx, client.ObjectKey{Name: spec.KaaS.Release}, &k); apierrors.IsNotFound(err) {
		return "", Mistake("%s.kaas.release: there is no KaaSRelease %q", field, spec.KaaS.Release)
	} else if err != nil {
		return "", err
	}
	if spec.Release != "" && spec.Release != k.Spec.ClusterRelease {
		return "", Mistake("%s.release: %q is not the ClusterRelease of KaaSRelease %q: remove it, or give %q", field, spec.Release, k.Name, k.Spec.ClusterRelease)
	}
	return k.Spec.ClusterRelease, nil
}

// Get returns a ClusterRelease.
func Get(ctx context.Context, r client.Reader, name string) (*kaas.ClusterRelease, error) {
	out := new(kaas.ClusterRelease)
	if err := r.Get(ctx, client.ObjectKey{Name: name}, out); apierrors.IsNotFound(err) {
		return nil, Mistake("there is no ClusterRelease %q", name)
	} else if err != nil {
		return nil, err
	}
	return out, nil
}

// Image returns the image of a machine: its own, else that of its distribution in the
// release.
func Image(r *kaas.ClusterRelease, m baremetal.MachineProviderSpec) (baremetal.Image, error) {
	if m.Image != nil && m.Image.URL != "" {
		return *m.Image, nil
	}
	d, err := distribution(r, m.Distribution)
	if err != nil {
		return baremetal.Image{}, err
	}
	if d.Image.URL == "" {
		return baremetal.Image{}, Mistake("ClusterRelease %q has no image of the distribution %q: give spec.providerSpec.value.image", r.Name, d.ID)
	}
	return baremetal.Image(d.Image), nil
}

func distribution(r *kaas.ClusterRelease, id string) (kaas.Distribution, error) {
	var ids []string
	for _, d := range r.Spec.AllowedDistributions {
		if d.ID == id || id == "" && d.Default {
			return d, nil
		}
		ids = append(ids, d.ID)
	}
	slices.Sort(ids)
	if id == "" {
		return kaas.Distribution{}, Mistake("ClusterRelease %q has no default distribution: give spec.providerSpec.value.distribution, one of %s", r.Name, list(ids))
	}
	return kaas.Distribution{}, Mistake("spec.providerSpec.value.distribution: %q is not one of ClusterRelease %q: give one of %s", id, r.Name, list(ids))
}

func list(names []string) string {
	if len(names) == 0 {
		return "none, as it has none"
	}
	return strings.Join(names, ", ")
}

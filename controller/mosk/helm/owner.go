package helm

import (
	"crypto/sha256"
	"encoding/hex"

	"helm.sh/helm/v3/pkg/release"

	lcmv1 "github.com/metalab-dev/metalab/controller/api/lcm/v1alpha1"
)

// Labels of a Helm release: the bundle that has installed it. Helm finds a release by its name and
// namespace alone, so that two bundles in one API would share those of equal names, and the end of
// one would uninstall the other's.
const (
	bundleNamespaceLabel = "metalab.dev/bundle-namespace"
	bundleLabel          = "metalab.dev/bundle"
)

// owner is the bundle of a release, as its labels have it.
type owner struct{ namespace, name string }

// ownerOf returns the labels of a bundle. A name that is too long for a label's value ends with a
// checksum.
func ownerOf(b *lcmv1.HelmBundle) owner {
	const most, digits = 63, 16
	name := b.Name
	if len(name) > most {
		sum := sha256.Sum256([]byte(name))
		name = name[:most-digits] + hex.EncodeToString(sum[:])[:digits]
	}
	return owner{b.Namespace, name}
}

// foreign returns the bundle, as NAMESPACE/NAME, that a release is of; "" when there is no release,
// and for one of this bundle. A release without the labels was installed by hand: the bundle takes
// it over.
func (i *installer) foreign(r *release.Release) string {
	if r == nil || r.Labels[bundleLabel] == "" {
		return ""
	}
	if by := (owner{r.Labels[bundleNamespaceLabel], r.Labels[bundleLabel]}); by != i.owner {
		return by.namespace + "/" + by.name
	}
	return ""
}

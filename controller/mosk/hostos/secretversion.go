package hostos

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	kaasv1 "github.com/metalab-dev/metalab/controller/api/kaas/v1alpha1"
)

// secretVersions are the versions of the data of Secrets, by the configuration that refers to them.
// An item that uses a Secret has such a version in its params, so that it is executed again when the
// data change and not when labels do.
//
// A version is the resourceVersion with which the data were first seen. So it shows nothing of
// them: a digest in a status could be compared with guessed passwords by those who may not read
// Secrets, salted or not, as the salt would be beside it. And agents can still tell that the Secret
// which they have read is not older than the data that an item needs. The digests by which two data
// are compared are in the memory of this process alone. After a start the status tells which
// resourceVersion its data version is for; a Secret that was changed meanwhile counts as new data,
// as one execution too many is harmless.
type secretVersions struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]map[kaasv1.SecretReference]seenData
}

// seenData are the data of a Secret as they were last seen.
type seenData struct {
	digest  [sha256.Size]byte
	version string
}

// observe returns the versions of the data of all Secrets that an object refers to, which replace
// those that were seen before.
func (v *secretVersions) observe(o *kaasv1.HostOSConfiguration, secrets map[kaasv1.SecretReference]*corev1.Secret) map[kaasv1.SecretReference]string {
	v.mu.Lock()
	defer v.mu.Unlock()
	key := types.NamespacedName{Namespace: o.Namespace, Name: o.Name}
	now, out := map[kaasv1.SecretReference]seenData{}, map[kaasv1.SecretReference]string{}
	for ref, s := range secrets {
		data := seenData{digest: digest(s.Data)}
		if before, seen := v.seen[key][ref]; !seen {
			data.version = recordedVersion(o, s.ResourceVersion)
		} else if before.digest == data.digest {
			data.version = before.version
		} else {
			data.version = s.ResourceVersion
		}
		now[ref], out[ref] = data, data.version
	}
	if v.seen == nil {
		v.seen = map[types.NamespacedName]map[kaasv1.SecretReference]seenData{}
	}
	v.seen[key] = now
	if len(now) == 0 {
		delete(v.seen, key)
	}
	return out
}

// forget drops what was seen for an object that is gone.
func (v *secretVersions) forget(key types.NamespacedName) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.seen, key)
}

// recordedVersion returns the version of the data of a Secret with a resourceVersion, which is that
// of the status if it was written for this one. No two objects have the same.
func recordedVersion(o *kaasv1.HostOSConfiguration, version string) string {
	for _, c := range o.Status.Configs {
		if c.SecretObjectVersion == version && c.SecretDataVersion != "" {
			return c.SecretDataVersion
		}
	}
	return version
}

// digest returns a digest of data, with the lengths of names and values, so that no two data are
// written alike.
func digest(data map[string][]byte) (out [sha256.Size]byte) {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(data)) {
		for _, b := range [][]byte{[]byte(name), data[name]} {
			h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
			h.Write(b)
		}
	}
	h.Sum(out[:0])
	return out
}

package bmc

import (
	"bytes"
	"sync"
)

// maxRegistries bounds the number of stored registries (models times BIOS
// versions). A registry has up to 2 MB.
const maxRegistries = 48

// Registries stores the attribute registries that BMCs have sent, each content
// once: a thousand servers of one model share one parsed registry, which can be
// compared by its address. Drivers share registries through a common Registries.
// The zero value is ready to use; a nil Registries stores nothing.
type Registries struct {
	mu      sync.Mutex
	entries []*registryEntry // the most recently used last
}

// RegistryKey identifies the BMCs that have the same registry.
type RegistryKey struct {
	ID           string // name of the registry in the Bios resource
	Manufacturer string
	Model        string
	Version      string // BIOS version
}

type registryEntry struct {
	keys     map[RegistryKey]string // ETags
	body     []byte
	registry *AttributeRegistry
}

// Lookup returns the registry that a BMC with this key sent last, and its ETag. It
// returns nil if there is none, or if the registry had no ETag.
func (r *Registries) Lookup(key RegistryKey) (*AttributeRegistry, string) {
	if r == nil {
		return nil, ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, k := range r.entries {
		if tag := k.keys[key]; tag != "" {
			r.markUsed(i)
			return k.registry, tag
		}
	}
	return nil, ""
}

// Store returns the registry in body. It calls parse only if no stored registry
// has the same bytes.
func (r *Registries) Store(key RegistryKey, tag string, body []byte, parse func([]byte) (*AttributeRegistry, error)) (*AttributeRegistry, error) {
	if r == nil {
		return parse(body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.entries {
		delete(k.keys, key)
	}
	for i, k := range r.entries {
		if bytes.Equal(k.body, body) {
			k.keys[key] = tag
			r.markUsed(i)
			return k.registry, nil
		}
	}
	registry, err := parse(body) // under the lock: a thousand BMCs may send the same registry at once
	if err != nil {
		return nil, err
	}
	if len(r.entries) >= maxRegistries {
		r.entries = append(r.entries[:0], r.entries[1:]...)
	}
	r.entries = append(r.entries, &registryEntry{keys: map[RegistryKey]string{key: tag}, body: body, registry: registry})
	return registry, nil
}

// markUsed moves an entry to the end of the list.
func (r *Registries) markUsed(i int) {
	k := r.entries[i]
	copy(r.entries[i:], r.entries[i+1:])
	r.entries[len(r.entries)-1] = k
}

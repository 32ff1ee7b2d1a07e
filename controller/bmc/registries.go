package bmc

import (
	"bytes"
	"sync"
)

// maxRegistries bounds how many registries are kept: models times versions of
// their BIOS. One has up to 2 MB.
const maxRegistries = 48

// Registries keep the attribute registries that BMCs have sent, each once: a
// thousand servers of one model have one, which is parsed once and can be told
// from others by its address. Drivers that work with the same Registries share
// them. The zero value is ready, and a nil one keeps nothing.
type Registries struct {
	mu   sync.Mutex
	kept []*kept // the most recently used last
}

// RegistryKey is what BMCs whose registries are alike have in common.
type RegistryKey struct {
	ID           string // by which the BIOS names its registry
	Manufacturer string
	Model        string
	Version      string // of the BIOS
}

type kept struct {
	keys     map[RegistryKey]string // ETags
	body     []byte
	registry *AttributeRegistry
}

// Known is the registry that a BMC of this kind has sent last, and the ETag
// that it had; nil when none has, or it had none.
func (r *Registries) Known(key RegistryKey) (*AttributeRegistry, string) {
	if r == nil {
		return nil, ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, k := range r.kept {
		if tag := k.keys[key]; tag != "" {
			r.use(i)
			return k.registry, tag
		}
	}
	return nil, ""
}

// Keep is the registry that body holds, which parse reads unless it is known.
func (r *Registries) Keep(key RegistryKey, tag string, body []byte, parse func([]byte) (*AttributeRegistry, error)) (*AttributeRegistry, error) {
	if r == nil {
		return parse(body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kept {
		delete(k.keys, key)
	}
	for i, k := range r.kept {
		if bytes.Equal(k.body, body) {
			k.keys[key] = tag
			r.use(i)
			return k.registry, nil
		}
	}
	registry, err := parse(body) // with the lock: a thousand BMCs may send it at once
	if err != nil {
		return nil, err
	}
	if len(r.kept) >= maxRegistries {
		r.kept = append(r.kept[:0], r.kept[1:]...)
	}
	r.kept = append(r.kept, &kept{keys: map[RegistryKey]string{key: tag}, body: body, registry: registry})
	return registry, nil
}

// use moves one to the end.
func (r *Registries) use(i int) {
	k := r.kept[i]
	copy(r.kept[i:], r.kept[i+1:])
	r.kept[len(r.kept)-1] = k
}

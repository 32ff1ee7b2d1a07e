// Package cache is a bounded cache.
package redfish

import "sync"

// cache is a bounded cache of two generations: when the younger one is full it
// becomes the older one, and what was in that is dropped. An entry of the older
// generation that is read moves to the younger. Unlike a least recently used list
// it keeps no links between entries, and readers share one lock. It is safe for
// concurrent use.
type cache[K comparable, V any] struct {
	mu         sync.RWMutex
	young, old map[K]V
	limit      int // of the younger generation, in what size counts
	used       int
	size       func(V) int
}

func newCache[K comparable, V any](limit int, size func(V) int) *cache[K, V] {
	return &cache[K, V]{young: map[K]V{}, limit: limit, size: size}
}

func (c *cache[K, V]) get(k K) (V, bool) {
	c.mu.RLock()
	v, young := c.young[k]
	old := false
	if !young {
		v, old = c.old[k]
	}
	c.mu.RUnlock()
	if old {
		c.put(k, v)
	}
	return v, young || old
}

func (c *cache[K, V]) put(k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.young[k]; ok {
		c.used -= c.size(was)
	} else if c.used >= c.limit {
		c.young, c.old, c.used = map[K]V{}, c.young, 0
	}
	c.young[k] = v
	c.used += c.size(v)
}

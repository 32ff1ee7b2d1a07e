// Package cache holds a bounded cache that is cheap to read from many goroutines.
package cache

import "sync"

// Cache is a bounded cache of two generations: when the younger one is full it
// becomes the older one, and what was in that is dropped. An entry of the older
// generation that is read moves to the younger. Unlike a least recently used list
// it keeps no links between entries, and readers share one lock. It is safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	mu         sync.RWMutex
	young, old map[K]V
	limit      int // of the younger generation, in what size counts
	used       int
	size       func(V) int
}

// New returns a cache that holds at least limit of what size counts, and at most
// about twice as much.
func New[K comparable, V any](limit int, size func(V) int) *Cache[K, V] {
	return &Cache[K, V]{young: map[K]V{}, limit: limit, size: size}
}

// Get returns the value of a key; false when it is not there.
func (c *Cache[K, V]) Get(k K) (V, bool) {
	c.mu.RLock()
	v, young := c.young[k]
	old := false
	if !young {
		v, old = c.old[k]
	}
	c.mu.RUnlock()
	if old {
		c.Put(k, v)
	}
	return v, young || old
}

// Put adds a value, or replaces that of its key.
func (c *Cache[K, V]) Put(k K, v V) {
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

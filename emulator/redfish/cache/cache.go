// Package cache provides a bounded in-memory cache that many goroutines read at
// little cost.
package cache

import "sync"

// Cache is a bounded cache of two generations. When the younger generation is full
// it becomes the older one, and the entries of that are dropped. Reading an entry of
// the older generation moves it to the younger. In contrast to a least recently used
// list, entries have no links and readers share a lock. It is safe for concurrent
// use.
type Cache[K comparable, V any] struct {
	mu         sync.RWMutex
	young, old map[K]V
	limit      int // size limit of the younger generation, in the unit of size
	used       int // size of the younger generation's entries, likewise
	size       func(V) int
}

// New returns an empty cache. It holds entries whose sizes, as size returns them, add
// up to at least limit and to about twice that at most.
func New[K comparable, V any](limit int, size func(V) int) *Cache[K, V] {
	return &Cache[K, V]{young: map[K]V{}, limit: limit, size: size}
}

// Get returns the value of a key; false when the cache has none.
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

// Put adds a value under a key, or replaces the value of that key.
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

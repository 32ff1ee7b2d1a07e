// Package cache is a bounded cache.
package cache

import "sync"

// Cache is a bounded cache of two generations: when the younger one is full it
// becomes the older one, and what was in that is dropped. An entry of the older
// generation that is read moves to the younger. Unlike a least recently used list
// it keeps no links between entries, and readers share one lock. It is safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	mu         sync.RWMutex
	Young, Old map[K]V
	limit      int // of the younger generation, in what size counts
	used       int
	size       func(V) int
}

func New[K comparable, V any](limit int, size func(V) int) *Cache[K, V] {
	return &Cache[K, V]{Young: map[K]V{}, limit: limit, size: size}
}

func (c *Cache[K, V]) Get(k K) (V, bool) {
	c.mu.RLock()
	v, young := c.Young[k]
	old := false
	if !young {
		v, old = c.Old[k]
	}
	c.mu.RUnlock()
	if old {
		c.Put(k, v)
	}
	return v, young || old
}

func (c *Cache[K, V]) Put(k K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if was, ok := c.Young[k]; ok {
		c.used -= c.size(was)
	} else if c.used >= c.limit {
		c.Young, c.Old, c.used = map[K]V{}, c.Young, 0
	}
	c.Young[k] = v
	c.used += c.size(v)
}

// Package readafterwrite reads Kubernetes objects through a cache, but never returns
// an object that is older than this process's own last write of it. A reconciler that
// saw the object as it was before its own write would start the same work twice.
// Reading every object past the cache would be as safe, but would cost more than the
// rest of a reconcile. The package does not know the kinds of the objects.
package readafterwrite

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads an object from the cache, or from the API when the cache is known to
// be older than the last write that Wrote recorded. It is safe for concurrent use.
type Reader struct {
	Cached, Live client.Reader
	// ReadMissesLive makes Get ask the API for an object that the cache does not have.
	// Without it, the cache's error is returned.
	ReadMissesLive bool

	mu      sync.Mutex
	written map[types.UID]uint64 // resource version after our last write
}

// Get reads the object with the given key into o.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, o client.Object) error {
	err := r.Cached.Get(ctx, key, o)
	if err == nil && !r.Stale(o) {
		return nil
	}
	if err != nil && !r.ReadMissesLive {
		return err
	}
	return r.Live.Get(ctx, key, o)
}

// Stale reports whether o, as the cache has it, is older than our last write. The event of
// that write is still to come: a reconciler that each update enqueues need not read past
// the cache, and can leave the object to that event.
func (r *Reader) Stale(o client.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrote, ok := r.written[o.GetUID()]
	if !ok {
		return false
	}
	has, err := resourceVersion(o)
	if err == nil && has >= wrote {
		delete(r.written, o.GetUID()) // the cache has caught up: objects at rest take no memory
		return false
	}
	return true
}

// Wrote records the resource version of an object that a write has returned.
func (r *Reader) Wrote(o client.Object) {
	v, err := resourceVersion(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written == nil {
		r.written = map[types.UID]uint64{}
	}
	if err == nil && v > r.written[o.GetUID()] {
		r.written[o.GetUID()] = v
	}
}

// Forget drops the record of an object that is deleted.
func (r *Reader) Forget(o client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, o.GetUID())
}

// resourceVersion parses an object's resource version, which grows with each write
// (Kubernetes API concepts, resource versions).
func resourceVersion(o client.Object) (uint64, error) {
	return strconv.ParseUint(o.GetResourceVersion(), 10, 64)
}

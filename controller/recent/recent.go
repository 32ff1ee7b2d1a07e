// Package recent owns reads of objects that are no older than what this process
// has written of them: a pass that saw an object as it was before its own last
// write would begin things a second time. To read past the cache always would be
// as safe, and costs more than all the rest of a pass. The package refuses to know
// what the objects are.
package recent

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads through the cache, unless the cache is known to be behind. It is
// safe for concurrent use.
type Reader struct {
	Cached, Live client.Reader
	// Hidden: what the cache has not got may be there all the same.
	Hidden bool

	mu      sync.Mutex
	written map[types.UID]uint64 // resource version after our last write
}

// Get reads an object.
func (r *Reader) Get(ctx context.Context, key client.ObjectKey, o client.Object) error {
	err := r.Cached.Get(ctx, key, o)
	if err == nil && !r.behind(o) {
		return nil
	}
	if err != nil && !r.Hidden {
		return err
	}
	return r.Live.Get(ctx, key, o)
}

func (r *Reader) behind(o client.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrote, ok := r.written[o.GetUID()]
	if !ok {
		return false
	}
	has, err := version(o)
	if err == nil && has >= wrote {
		delete(r.written, o.GetUID()) // it has caught up: nothing is kept of objects at rest
		return false
	}
	return true
}

// Wrote notes an object as a write has returned it.
func (r *Reader) Wrote(o client.Object) {
	v, err := version(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written == nil {
		r.written = map[types.UID]uint64{}
	}
	if err == nil && v > r.written[o.GetUID()] {
		r.written[o.GetUID()] = v
	}
}

// Forget drops what is kept of an object that goes.
func (r *Reader) Forget(o client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, o.GetUID())
}

// version is an object's resource version, which grows with each write
// (Kubernetes API concepts, resource versions).
func version(o client.Object) (uint64, error) {
	return strconv.ParseUint(o.GetResourceVersion(), 10, 64)
}

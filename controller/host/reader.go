package host

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader reads through the cache, unless the cache is known to be behind what
// this process has written: a pass that saw the status before its own last
// write would begin things a second time. Reading past the cache always would
// be as safe, and costs more than all the rest of a pass.
type reader struct {
	cached client.Reader
	live   client.Reader

	mu      sync.Mutex
	written map[types.UID]uint64 // resource version after our last write
}

func newReader(cached, live client.Reader) *reader {
	return &reader{cached: cached, live: live, written: map[types.UID]uint64{}}
}

func (r *reader) get(ctx context.Context, key client.ObjectKey, o client.Object) error {
	// What the cache has not got may still be there: it is asked for rarely.
	if err := r.cached.Get(ctx, key, o); err == nil && !r.behind(o) {
		return nil
	}
	return r.live.Get(ctx, key, o)
}

func (r *reader) behind(o client.Object) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrote, ok := r.written[o.GetUID()]
	if !ok {
		return false
	}
	has, err := version(o)
	return err != nil || has < wrote
}

// wrote notes an object as a write has returned it.
func (r *reader) wrote(o client.Object) {
	v, err := version(o)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && v > r.written[o.GetUID()] {
		r.written[o.GetUID()] = v
	}
}

func (r *reader) forget(o client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, o.GetUID())
}

// version is an object's resource version, which grows with each write
// (Kubernetes API concepts, resource versions).
func version(o client.Object) (uint64, error) {
	return strconv.ParseUint(o.GetResourceVersion(), 10, 64)
}

package firmware

import (
	"context"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reader reads through the cache, unless the cache is known to be behind what
// this process has written: who saw an attempt that it had ended itself would
// carry it on.
type reader struct {
	cached, live client.Reader

	mu      sync.Mutex
	written map[types.UID]uint64 // resource version after our last write
}

func newReader(cached, live client.Reader) *reader {
	return &reader{cached: cached, live: live, written: map[types.UID]uint64{}}
}

func (r *reader) get(ctx context.Context, key client.ObjectKey, o client.Object) error {
	err := r.cached.Get(ctx, key, o)
	if err != nil || !r.behind(o) {
		return err
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
	has, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err == nil && has >= wrote {
		delete(r.written, o.GetUID()) // it has caught up: nothing is kept of objects at rest
		return false
	}
	return true
}

// wrote notes an object as a write has returned it.
func (r *reader) wrote(o client.Object) {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && v > r.written[o.GetUID()] {
		r.written[o.GetUID()] = v
	}
}

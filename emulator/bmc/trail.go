package bmc

import "context"

// Trail is what a request that can change something leaves in the audit log of
// its BMC. Whoever carries out the first command of the request writes it there
// in the same step, as it will most likely be answered, and notes the entry's
// ID: so no change is without its entry, and the entry costs nothing to store.
type Trail struct {
	Act Act
	ID  uint64 // of the entry; 0: not written yet
}

type trailKey struct{}

// WithTrail is the context of a request that leaves t; nil leaves none.
func WithTrail(ctx context.Context, t *Trail) context.Context {
	return context.WithValue(ctx, trailKey{}, t)
}

// TrailOf is the trail of the request that a context is of; nil when there is
// none.
func TrailOf(ctx context.Context) *Trail {
	t, _ := ctx.Value(trailKey{}).(*Trail)
	return t
}

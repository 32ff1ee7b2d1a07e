package bmc

import "context"

// AuditContext is what a request that can change something leaves in the audit log of
// its BMC. Whoever carries out the first command of the request writes it there
// in the same step, as it will most likely be answered, and notes the entry's
// ID: so no change is without its entry, and the entry costs nothing to store.
type AuditContext struct {
	Record AuditRecord
	ID     uint64 // of the entry; 0: not written yet
}

type trailKey struct{}

// WithAudit is the context of a request that leaves t; nil leaves none.
func WithAudit(ctx context.Context, t *AuditContext) context.Context {
	return context.WithValue(ctx, trailKey{}, t)
}

// AuditOf is the trail of the request that a context is of; nil when there is
// none.
func AuditOf(ctx context.Context) *AuditContext {
	t, _ := ctx.Value(trailKey{}).(*AuditContext)
	return t
}

package bmc

import "context"

// AuditContext is the audit log entry of a request that can change something.
// Whoever applies the request's first command writes the entry in the same
// step, with the expected status, and stores its ID: no change is without its
// entry, and the entry costs no additional write.
type AuditContext struct {
	Record AuditRecord
	ID     uint64 // the entry's ID; 0: not written yet
}

type auditContextKey struct{}

// WithAudit returns a context with a request's audit entry; nil means none.
func WithAudit(ctx context.Context, t *AuditContext) context.Context {
	return context.WithValue(ctx, auditContextKey{}, t)
}

// AuditOf returns the audit entry of a context's request; nil when there is
// none.
func AuditOf(ctx context.Context) *AuditContext {
	t, _ := ctx.Value(auditContextKey{}).(*AuditContext)
	return t
}

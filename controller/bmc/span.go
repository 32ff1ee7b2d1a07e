package bmc

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// StartSpan begins a span of a request to a BMC in the trace that ctx is in. It costs next to
// nothing when ctx is in none.
func StartSpan(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, parent // whose methods do nothing
	}
	return parent.TracerProvider().Tracer("github.com/metalab-dev/metalab/controller/bmc").
		Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attributes...))
}

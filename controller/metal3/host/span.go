package host

import (
	"context"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
)

// startSpan begins a span of the reconciler's traces.
func (r *Reconciler) startSpan(ctx context.Context, name string, attributes ...attribute.KeyValue) (context.Context, oteltrace.Span) {
	return r.Traces.Tracer("github.com/metalab-dev/metalab/controller/metal3/host").Start(ctx, name, oteltrace.WithAttributes(attributes...))
}

// performTraced performs an action in a span of its name.
func (r *Reconciler) performTraced(ctx context.Context, h *metal3.BareMetalHost, o *observation, a phase.Action) error {
	if performers[a] == nil {
		return r.perform(ctx, h, o, a)
	}
	ctx, span := r.startSpan(ctx, string(a))
	defer span.End()
	err := r.perform(ctx, h, o, a)
	if err != nil {
		span.SetStatus(codes.Error, "the action has failed")
	}
	return err
}

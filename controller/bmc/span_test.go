package bmc

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

func TestSpansOfRequestsAreBelowTheSpanOfTheirContext(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	ctx, parent := sdk.NewTracerProvider(sdk.WithSyncer(spans)).Tracer("test").Start(t.Context(), "pass")
	_, span := StartSpan(ctx, "GET /redfish/v1/", attribute.String("server.address", "192.0.2.1"))
	span.End()
	parent.End()
	got := spans.GetSpans()
	if len(got) != 2 || got[0].Name != "GET /redfish/v1/" || got[0].Parent.SpanID() != parent.SpanContext().SpanID() || got[0].SpanKind != trace.SpanKindClient || len(got[0].Attributes) != 1 {
		t.Errorf("spans = %+v, want a client's with its attribute below the pass", got)
	}
	if _, span := StartSpan(t.Context(), "GET /redfish/v1/"); span.IsRecording() {
		t.Error("a request outside of a trace is recorded")
	}
}

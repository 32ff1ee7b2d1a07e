package redfish_test

import (
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/metalab-dev/metalab/controller/bmc/redfish"
)

func TestRequestsAreTraced(t *testing.T) {
	s := newServer(t)
	spans := tracetest.NewInMemoryExporter()
	ctx, pass := sdk.NewTracerProvider(sdk.WithSyncer(spans)).Tracer("test").Start(t.Context(), "pass")
	c, err := redfish.Open(ctx, s.config(systemPath))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found := false
	for _, span := range spans.GetSpans() {
		if span.Name != "GET "+systemPath {
			continue
		}
		found = true
		has := attribute.NewSet(span.Attributes...)
		if v, ok := has.Value("http.response.status_code"); !ok || v.AsInt64() != 200 || span.Parent.SpanID() != pass.SpanContext().SpanID() || span.Status.Code != codes.Unset {
			t.Errorf("span = %+v, want status 200 below the pass", span)
		}
		for _, a := range span.Attributes {
			if a.Key == "http.request.header.authorization" || a.Value.String() == "secret" {
				t.Errorf("the span has %s", a.Key)
			}
		}
	}
	if !found {
		t.Errorf("spans = %+v, want GET %s", spans.GetSpans(), systemPath)
	}
}

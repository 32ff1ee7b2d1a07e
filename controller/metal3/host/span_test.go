package host

import (
	"slices"
	"testing"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	oteltrace "go.opentelemetry.io/otel/trace"

	"github.com/metalab-dev/metalab/controller/metal3/host/phase"
	"github.com/metalab-dev/metalab/controller/tracing"
)

// All passes over one change of a host are one trace, with the actions in spans below them.
func TestChangesOfAHostAreTraced(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	b := newBench(t, 1, withImage)
	c := b.r.Config
	c.Traces = sdk.NewTracerProvider(sdk.WithSyncer(spans))
	var err error
	if b.r, err = New(c); err != nil {
		t.Fatal(err)
	}
	b.until("provisioned", in(metal3.StateProvisioned))
	uid, generation := string(b.host().UID), b.host().Generation
	want := oteltrace.SpanContextFromContext(tracing.Object(t.Context(), uid, generation)).TraceID()
	passes, actions := map[oteltrace.SpanID]bool{}, []string{}
	for _, s := range spans.GetSpans() {
		if s.SpanContext.TraceID() != want {
			t.Fatalf("span %s is of the trace %s, want %s of generation %d", s.Name, s.SpanContext.TraceID(), want, generation)
		}
		if s.Name == "pass" {
			passes[s.SpanContext.SpanID()] = true
		}
	}
	for _, s := range spans.GetSpans() {
		if s.Name != "pass" {
			if !passes[s.Parent.SpanID()] {
				t.Errorf("span %s is not below a pass", s.Name)
			}
			actions = append(actions, s.Name)
		}
	}
	if len(passes) < 5 || !slices.ContainsFunc(actions, func(a string) bool { return a == string(phase.PowerOn) }) {
		t.Errorf("%d passes with the actions %q, want several, and the server powered on", len(passes), actions)
	}
}

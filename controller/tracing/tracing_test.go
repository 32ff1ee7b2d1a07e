package tracing

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
)

// receiver is an OpenTelemetry collector that keeps the names of spans and services.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu       sync.Mutex
	spans    map[string]string // trace ID by name
	services []string
}

// Export implements collector.TraceServiceServer.
func (r *receiver) Export(_ context.Context, q *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, spans := range q.GetResourceSpans() {
		for _, a := range spans.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				r.services = append(r.services, a.GetValue().GetStringValue())
			}
		}
		for _, scope := range spans.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				r.spans[s.GetName()] = string(s.GetTraceId())
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// receive starts a receiver and returns its URL.
func receive(t *testing.T) (*receiver, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{spans: map[string]string{}}
	s := grpc.NewServer()
	collector.RegisterTraceServiceServer(s, r)
	var running sync.WaitGroup
	running.Go(func() { _ = s.Serve(l) }) // until Stop
	t.Cleanup(func() { s.Stop(); running.Wait() })
	return r, "http://" + l.Addr().String()
}

func TestSpansReachTheCollectorThatTheEnvironmentNames(t *testing.T) {
	r, url := receive(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
	p, stop, err := Start(t.Context(), "lab-controller", "v1")
	if err != nil {
		t.Fatal(err)
	}
	_, span := p.Tracer("test").Start(Object(t.Context(), "uid-1", 3), "pass")
	id := span.SpanContext().TraceID()
	span.End()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spans["pass"] != string(id[:]) || len(r.services) == 0 || r.services[0] != "lab-controller" {
		t.Errorf("the collector has spans %q of services %q, want pass of %s of lab-controller", r.spans, r.services, id)
	}
}

func TestTracingIsOffByDefault(t *testing.T) {
	for name, variables := range map[string]map[string]string{
		"nothing": {}, "disabled": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
		"no exporter": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"},
	} {
		t.Run(name, func(t *testing.T) {
			for k, v := range variables {
				t.Setenv(k, v)
			}
			p, stop, err := Start(t.Context(), "lab", "v1")
			if err != nil {
				t.Fatal(err)
			}
			if _, span := p.Tracer("test").Start(t.Context(), "pass"); span.IsRecording() {
				t.Error("a span is recorded")
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownProtocolIsRefused(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	if _, _, err := Start(t.Context(), "lab", "v1"); err == nil || !strings.Contains(err.Error(), `OTEL_EXPORTER_OTLP_PROTOCOL "http/protobuf" is not built in: use grpc`) {
		t.Errorf("Start() = %v, want the variable, its value and what is allowed", err)
	}
}

func TestATraceIsOfOneChangeOfAnObject(t *testing.T) {
	id := func(uid string, generation int64) trace.TraceID {
		return trace.SpanContextFromContext(Object(t.Context(), uid, generation)).TraceID()
	}
	if a := id("a", 1); a != id("a", 1) || a == id("a", 2) || a == id("b", 1) || !a.IsValid() {
		t.Errorf("traces of a/1, a/1, a/2, b/1 = %s, %s, %s, %s", a, id("a", 1), id("a", 2), id("b", 1))
	}
}

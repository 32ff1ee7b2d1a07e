// Package tracing sends OpenTelemetry traces of the controllers' work on hosts: each change
// of a host's object is a trace, from the passes over it to the requests to its BMC. It is off
// unless the environment names an endpoint (OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT); the other OTEL_* variables have the meaning of the
// OpenTelemetry specification. It knows nothing about hosts.
package tracing

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// endpoints are the variables that switch tracing on.
var endpoints = []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"}

// protocols are the variables of the protocol, of which grpc is built in.
var protocols = []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"}

// first returns the first variable that is set and its value.
func first(names []string) (name, value string) {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return name, value
		}
	}
	return "", ""
}

// enabled reports whether the environment switches tracing on.
func enabled() bool {
	_, endpoint := first(endpoints)
	return endpoint != "" && !strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") && os.Getenv("OTEL_TRACES_EXPORTER") != "none"
}

// stopTimeout bounds how long stop waits for a collector, in real time.
const stopTimeout = 3 * time.Second

// Start returns the provider of tracers that the environment configures, for a service of
// that name and version; one that does nothing when tracing is off. stop sends the spans that are left.
func Start(ctx context.Context, service, version string) (_ trace.TracerProvider, stop func() error, err error) {
	if !enabled() {
		return noop.NewTracerProvider(), func() error { return nil }, nil
	}
	if name, p := first(protocols); p != "" && p != "grpc" {
		return nil, nil, fmt.Errorf("%s %q is not built in: use grpc", name, p)
	}
	exporter, err := otlptracegrpc.New(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := resource.New(ctx, resource.WithAttributes(attribute.String("service.name", service), attribute.String("service.version", version)),
		resource.WithHost(), resource.WithFromEnv(), resource.WithTelemetrySDK()) // OTEL_SERVICE_NAME wins
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	p := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about))
	return p, func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		if err := p.Shutdown(ctx); err != nil {
			return fmt.Errorf("tracing: %w", err)
		}
		return nil
	}, nil
}

// Object returns a context in the trace of one change of an object: all that is done for the
// same generation of it is one trace, whichever process and pass does it.
func Object(ctx context.Context, uid string, generation int64) context.Context {
	sum := sha256.Sum256([]byte(uid + "/" + strconv.FormatInt(generation, 10)))
	c := trace.SpanContextConfig{TraceFlags: trace.FlagsSampled, Remote: true}
	copy(c.TraceID[:], sum[:])
	copy(c.SpanID[:], sum[len(c.TraceID):])
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(c))
}

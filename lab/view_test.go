package lab

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	metal3 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/metalab-dev/metalab/scenarios/patience"
	"github.com/metalab-dev/metalab/scenarios/view"
)

// A lab's page shows the provisioning state of its hosts and their objects, without secrets,
// and the passes over a generation of a host are in one trace with the requests to its BMC.
func TestPageShowsTheObjectsOfHosts(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	s := DefaultSettings()
	s.Hosts, s.Speed = 2, "max"
	w, err := Start(t.Context(), Config{Dir: t.TempDir(), Settings: s, Listen: AnyPort, Traces: sdk.NewTracerProvider(sdk.WithSyncer(spans))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Stop(); err != nil {
			t.Error(err)
		}
	}()
	link, err := url.Parse(w.info().View)
	if err != nil {
		t.Fatal(err)
	}
	ctx := patience.Within(t, 2*time.Minute)
	get := func(path string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+link.Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+link.Query().Get("token"))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	c, err := w.Kubernetes()
	if err != nil {
		t.Fatal(err)
	}
	secret, host := Objects(w.Hosts()[1])
	host.Spec.Image = &metal3.Image{URL: "http://me:hunter-5731@127.0.0.1:1/none.img", Checksum: "http://127.0.0.1:1/none.sha256", ChecksumType: metal3.SHA256}
	host.Name = "mine"                        // the page finds the server by the address of its BMC
	password := secret.StringData["password"] // the API server returns the object without it
	for _, create := range []error{c.Create(ctx, secret), c.Create(ctx, host)} {
		if create != nil {
			t.Fatal(create)
		}
	}
	states := map[string]bool{}
	for lines := bufio.NewScanner(get("/events").Body); lines.Scan() && !states["inspecting"] && !states["available"]; {
		var tiles []view.Tile
		if text, ok := strings.CutPrefix(lines.Text(), "data: ["); ok && json.Unmarshal([]byte("["+text), &tiles) == nil {
			for _, tile := range tiles {
				if tile.Name == "node-0" && tile.State != "" {
					t.Errorf("node-0 has state %q, and no object", tile.State)
				}
				states[tile.State] = states[tile.State] || tile.Name == "node-1"
			}
		}
	}
	if !states["registering"] && !states["inspecting"] && !states["available"] {
		t.Fatalf("the tile of node-1 has shown the states %v", states)
	}
	text, err := io.ReadAll(get("/hosts/node-1/objects").Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"kind":"BareMetalHost"`, "default/mine", "me:xxxxx@127.0.0.1", `"kind":"HostFirmwareSettings"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the objects of node-1 lack %s: %.2000s", want, text)
		}
	}
	for _, not := range []string{password, "hunter-5731", "managedFields"} {
		if strings.Contains(string(text), not) {
			t.Errorf("the objects of node-1 have %q", not)
		}
	}
	if text, err := io.ReadAll(get("/hosts/node-0/objects").Body); err != nil || strings.TrimSpace(string(text)) != "[]" {
		t.Errorf("the objects of node-0 = %s, %v, want none", text, err)
	}

	// A trace is one generation of the object: a machine that is slow sees more than the first.
	if err := c.Get(ctx, client.ObjectKeyFromObject(host), host); err != nil {
		t.Fatal(err)
	}
	requests := map[string]int{} // by trace
	for _, span := range spans.GetSpans() {
		if span.Name == "pass" {
			requests[span.SpanContext.TraceID().String()] = 0
		}
	}
	most := 0
	for _, span := range spans.GetSpans() {
		trace := span.SpanContext.TraceID().String()
		if _, passes := requests[trace]; passes && strings.HasPrefix(span.Name, "GET /redfish/v1") {
			requests[trace]++
			most = max(most, requests[trace])
		}
	}
	if len(requests) > int(host.Generation) || most < 3 {
		t.Errorf("traces with %v requests to the BMC, want at most %d, one of them with several", requests, host.Generation)
	}
}

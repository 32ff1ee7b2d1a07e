package racktest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/emulator/rack"
	"github.com/metalab-dev/metalab/emulator/rack/rackfile"
)

// Behavior is a behavior of a model's BMC, with its evidence: a Redfish request, its response,
// and properties that are read afterwards.
type Behavior struct {
	Source             string // the evidence
	Method, Path, Body string // IMAGE stands for the URL of an image
	Match              string // If-Match; ETAG stands for the resource's ETag
	Status             int
	Says               string // in the response
	// Shows lists properties after the request: "URI#Boot/BootSourceOverrideTarget". The value
	// of an object is "map"; nil means absent or null.
	Shows map[string]any
	Wait  time.Duration // lab time before the request
}

// CheckBehaviors starts a rack with one server of a model, and checks behaviors of its BMC in
// their order.
func CheckBehaviors(t *testing.T, model string, all []Behavior) {
	t.Helper()
	images := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<16)) }))
	defer images.Close()
	image := strings.NewReplacer("IMAGE", images.URL+"/live.iso")
	r := rackfile.Default(1)
	r.Hosts[0].Profile = model
	l := Start(t, rack.Config{Rack: &r})
	for _, b := range all {
		if b.Wait > 0 {
			l.Advance(b.Wait)
		}
		match := b.Match
		if match == "ETAG" {
			_, _, match = l.request(t, "GET", b.Path, "", "")
		}
		status, text, _ := l.request(t, b.Method, b.Path, image.Replace(b.Body), match)
		l.Settle()
		if status != b.Status || !strings.Contains(text, b.Says) {
			t.Errorf("%s: %s %s %s = %d %s, want %d %s", b.Source, b.Method, b.Path, b.Body, status, text, b.Status, b.Says)
		}
		for at, want := range b.Shows { // in any order: each property is read by a request of its own
			uri, path, _ := strings.Cut(at, "#")
			_, text, _ := l.request(t, "GET", uri, "", "")
			if got := property(t, text, path); fmt.Sprint(got) != image.Replace(fmt.Sprint(want)) {
				t.Errorf("%s: after %s %s %s is %v, want %v", b.Source, b.Method, b.Path, at, got, want)
			}
		}
	}
}

// request sends a request to the BMC of the rack's first host.
func (l *Rack) request(t *testing.T, method, path, body, match string) (status int, text, etag string) {
	t.Helper()
	h := l.First()
	req, err := http.NewRequestWithContext(t.Context(), method, h.URL()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth(l.Credentials(h))
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if match != "" {
		req.Header.Set("If-Match", match)
	}
	resp, err := l.Client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(raw), resp.Header.Get("Etag")
}

// property returns the value at a path of a JSON text, or nil when there is none. A segment
// may be an index.
func property(t *testing.T, text, path string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for name := range strings.SplitSeq(path, "/") {
		switch x := v.(type) {
		case map[string]any:
			v = x[name]
		case []any:
			i := -1
			if _, err := fmt.Sscan(name, &i); err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	if _, object := v.(map[string]any); object {
		return "map"
	}
	return v
}

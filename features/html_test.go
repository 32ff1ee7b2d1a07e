package features

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/metalab-dev/metalab/features/steps"
)

// ranOnce is what godog's cucumber formatter writes for two scenarios, of which one
// fails, and for a feature without scenarios.
const ranOnce = `[
 {"uri": "a.feature", "name": "First", "description": "  About <it>.", "elements": [
  {"name": "Good", "tags": [{"name": "@B-01"}], "steps": [
   {"keyword": "Given ", "name": "a lab", "result": {"status": "passed", "duration": 1500000000}}]},
  {"name": "Bad", "steps": [
   {"keyword": "Then ", "name": "<script>", "result": {"status": "failed", "error_message": "it is \"not\" & never was"}},
   {"keyword": "And ", "name": "more", "result": {"status": "skipped"}}]}]},
 {"uri": "b.feature", "name": "Second", "elements": []}
]`

func TestReportShowsFailedStepsAndErrors(t *testing.T) {
	var b bytes.Buffer
	if err := writeHTML(&b, []byte(ranOnce), nil, "."); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	for _, want := range []string{
		`<h1 class="failed">1 of 2 scenarios failed</h1>`, "1 features, 1.5s", "About &lt;it&gt;.", "@B-01", "&lt;script&gt;",
		"it is &#34;not&#34; &amp; never was", `<li class="skipped">`, "<details open>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
	for _, not := range []string{"Second", "<script", "http://", "https://", "src="} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %q in it", not)
		}
	}
	if err := writeHTML(&b, []byte("{"), nil, "."); err == nil {
		t.Error("writeHTML of invalid JSON = nil error")
	}
}

// A failed step leads to its moment in the page of the recording, relative to the report.
func TestReportLinksFailedStepsToTheirMoments(t *testing.T) {
	const ran = `[{"uri": "a.feature", "name": "First", "elements": [{"name": "Bad", "steps": [
	  {"keyword": "Then ", "name": "one", "result": {"status": "failed", "error_message": "after scenario hook failed: recorded until now: labctl view out/a b.zip, step error: no"}},
	  {"keyword": "Then ", "name": "two", "result": {"status": "failed", "error_message": "recorded until now: labctl view out/b.zip"}},
	  {"keyword": "Then ", "name": "three", "result": {"status": "failed", "error_message": "recorded until now: labctl view out/bb.zip"}}]}]}]`
	var all []feature
	if err := json.Unmarshal([]byte(ran), &all); err != nil {
		t.Fatal(err)
	}
	recorded := []steps.Recorded{
		{File: "out/a b.zip", View: "labctl view out/a b.zip", Page: "out/a b.html", Fragment: "#/?at=1"},
		{File: "out/b.zip", View: "labctl view out/b.zip", Page: "out/b.html", Fragment: "#/?at=2"},
		{File: "b.zip", View: "labctl view b.zip", Page: "b.html", Fragment: "#/?at=3"},
	}
	if err := link(all, recorded, "reports"); err != nil {
		t.Fatal(err)
	}
	want := []string{"../out/a%20b.html#/?at=1", "../out/b.html#/?at=2", ""}
	for i, s := range all[0].Elements[0].Steps {
		if s.Link != want[i] {
			t.Errorf("step %s: link = %q, want %q", s.Name, s.Link, want[i])
		}
	}
	var b bytes.Buffer
	if err := writeHTML(&b, []byte(ran), recorded, "reports"); err != nil || !strings.Contains(b.String(), `<a href="../out/b.html#/?at=2">replay</a>`) {
		t.Errorf("writeHTML() = %v; the page has no link:\n%s", err, &b)
	}
}

func TestRunReturnsUsageErrors(t *testing.T) {
	for name, o := range map[string]Options{
		"format":     {Format: "pdf"},
		"path":       {Format: Pretty, Paths: []string{"nowhere.feature"}},
		"tags":       {Format: Pretty, Tags: "@nobody-has-this"},
		"no feature": {Format: Pretty, Paths: []string{"features_test.go"}},
	} {
		var out bytes.Buffer
		o.Out = &out
		err := Run(t.Context(), o)
		if bad := new(UsageError); !errors.As(err, &bad) {
			t.Errorf("%s: Run = %v, want a UsageError", name, err)
		}
		if out.Len() > 0 {
			t.Errorf("%s: something was run: %s", name, &out)
		}
	}
}

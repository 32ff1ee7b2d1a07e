package features

import (
	"bytes"
	"errors"
	"strings"
	"testing"
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
	if err := writeHTML(&b, []byte(ranOnce)); err != nil {
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
	if err := writeHTML(&b, []byte("{")); err == nil {
		t.Error("writeHTML of invalid JSON = nil error")
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

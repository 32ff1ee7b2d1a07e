package features

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/metalab-dev/metalab/scenarios/patience"
)

// A step that never comes true fails at the limit in the lab's time. Its failure, with what the host
// has reported, is in each format once.
func TestStepFailsAtTheLimitOfTheLabsTime(t *testing.T) {
	t.Setenv(patience.Env, "0.1") // 18 s of real time, of which 3 s at rest
	dir := t.TempDir()
	file, page := filepath.Join(dir, "stuck.feature"), filepath.Join(dir, "page.html")
	const stuck = `
Feature: Stuck
  Scenario: A password that nobody corrects
    Given a lab with 1 server
    And the operator registers the server with a wrong password
    And the host reports "registration error"
    Then the host becomes "available"
    And the server is off
`
	if err := os.WriteFile(file, []byte(stuck), 0o600); err != nil {
		t.Fatal(err)
	}
	results := map[string]string{}
	for _, format := range []Format{Pretty, JUnit} {
		var out bytes.Buffer
		err := Run(t.Context(), Options{Paths: []string{file}, Format: format, Page: page, Out: &out, Limit: time.Second})
		if !errors.Is(err, ErrFailed) {
			t.Errorf("%s: Run() = %v, want %v", format, err, ErrFailed)
		}
		results[string(format)] = out.String()
	}
	if problems := checkJUnit([]byte(results[string(JUnit)])); len(problems) > 0 {
		t.Errorf("the document has %q", problems)
	}
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	results["page"] = string(b)
	for format, text := range results {
		for _, want := range []string{
			`the host becomes available: waited for \S+s of the lab('|&#39;)s time, \S+s of real time: patience has run out: the step('|&#39;)s limit is 1s of the lab('|&#39;)s time`,
			"the BMC refused the credentials",
		} {
			if n := len(regexp.MustCompile(want).FindAllString(text, -1)); n != 1 {
				t.Errorf("%s: %s is there %d times, want once:\n%s", format, want, n, text)
			}
		}
	}
}
